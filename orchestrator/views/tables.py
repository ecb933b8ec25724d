"""Cells of a table as clients see them, and the printing of their numbers."""

import math
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from typing import Any, Final

from pydantic import BaseModel, Field

from orchestrator.spec.layouts import Deviation, Unit
from orchestrator.views.pages import Annotation
from orchestrator.views.runs import Statistic
from orchestrator.views.states import TrialState


class CellTrial(BaseModel):
    """A trial of a cell with its numbers and the provenance of its training."""

    trial: int
    uid: str
    repeat: int
    labels: dict[str, str]  # of the repeat axes
    state: TrialState
    diverged: bool
    reused: bool
    score: float | None  # the metric by which the sweep selects, of this trial alone
    training: str
    fingerprint: str  # the hash of its completed recipe: trials with the same one share the training
    dataset: str
    data_hash: str | None  # of the content of the data set
    git_commit: str | None  # of the code that trained it; with `-dirty` if that had changes
    versions: dict[str, str]
    outdated: list[str] = Field(default_factory=list)
    """Parts and metrics whose numbers have changed since it was planned: `metric 'map' (version 1, now 2)`."""
    device: str | None
    host: str | None
    seconds: float | None
    error: str | None
    reason: str | None  # why it was pruned
    url: str  # /v1/trials/<id>
    mlflow_url: str | None


class CellCandidate(BaseModel):
    """A candidate of a cell with its trials and score."""

    index: int
    labels: dict[str, str]
    selected: bool
    status: str  # complete, pending, diverged, failed, cancelled or pruned; only a complete one can be selected
    score: float | None  # the mean over the repeats
    std: float | None
    n: int
    trials: list[CellTrial]


class CellNumber(BaseModel):
    """A number in a table that is computed from a cell."""

    table: str
    metric: str
    title: str
    text: str  # as the table prints it, in the table's unit
    mean: float | None  # as a fraction
    std: float | None
    n: int | None
    published: str | None = None  # the table of a paper with such a number, such as SEC-T3
    printed: str | None = None  # the paper's number, in its own characters
    difference: float | None = None
    tolerance: float | None = None
    verdict: str | None = None
    source: str | None = None  # where the paper took it from, if not from its own trainings


class CellView(BaseModel):
    """A cell of a sweep and everything behind its numbers."""

    sweep: int
    sweep_name: str
    index: int
    labels: dict[str, str]
    status: str  # complete, partial, failed, diverged or missing
    selection_key: str  # what selects candidates: checkpoint/split/metric
    numbers: list[CellNumber]
    candidates: list[CellCandidate]  # the selected one first
    mixed: list[str] = Field(default_factory=list)
    """In which data, code and versions of parts the runs of the selected candidate differ."""
    mlflow_url: str | None = None
    annotation: Annotation = Field(default_factory=Annotation)


class ComparedCell(BaseModel):
    """A cell in a comparison: its selected candidate and the results."""

    sweep: int
    sweep_name: str
    index: int
    labels: dict[str, str]
    status: str  # complete, partial, failed, diverged or missing
    selection_key: str
    candidates: int  # that compete in it
    selected: dict[str, str] | None
    """The labels of the selected candidate, or of the only one; null if none is selected."""
    trials: dict[str, int]  # how many trials of the selected candidate, else of the cell, are in each state
    recipe: Mapping[str, Any]
    """Of the selected candidate, without what its repeats differ by; empty if none is selected."""
    metrics: dict[str, Statistic]
    """By checkpoint/split/metric; of a candidate that is not complete, over the repeats that have finished."""


_LONG: Final = Decimal("1e7")  # from here on, numbers are printed with an exponent
_SHORT: Final = Decimal("1e-6")  # and below, where decimals would not show the number
_NOISE: Final = Decimal("1e-12")  # the largest difference of two floats that mean the same
_FIRST_DIGIT: Final = Context(prec=1)
DECIMALS: Final = 2  # of percents, and of numbers from 1 without a deviation
_MOST_DECIMALS: Final = 6


def decimals_of(values: Iterable[float], deviations: Iterable[float]) -> int:
    """How many decimals the numbers of a column or a comparison have, if they are not percents.

    Their median deviation gets two significant digits. Without deviations, numbers get three decimals if all are below
    1, else two.
    """
    spreads = sorted(spread for spread in deviations if math.isfinite(spread) and spread > _NOISE)
    if spreads:
        usual = spreads[(len(spreads) - 1) // 2]
        return min(max(1 - math.floor(math.log10(usual)), 0), _MOST_DECIMALS)
    sizes = [abs(value) for value in values if math.isfinite(value)]
    return DECIMALS + 1 if sizes and max(sizes) < 1 else DECIMALS


def printed(value: float, unit: Unit, decimals: int, *, signed: bool = False) -> str:
    """`value` with fixed decimals; fractions in percent are multiplied by 100, without a percent sign.

    A number that is not zero gets the decimals that its first digit needs. `signed` adds a plus to positive numbers.
    """
    # From the shortest decimal of the float, so that 0.59855 rounds as a reader of the JSON would round it.
    exact = Decimal(repr(float(value)))
    if abs(exact) < _NOISE:
        exact = Decimal(0)
    if unit == "percent":
        exact = exact.scaleb(2)
    text = _text(exact, decimals)
    return f"+{text}" if signed and Decimal(text) > 0 else text


def printed_spread(spread: float | None, unit: Unit, decimals: int, form: Deviation | None) -> str | None:
    """The spread after a number with that unit and decimals, unless `form` has others; None where nothing is shown."""
    if form is None or spread is None:
        return None
    return printed(spread, form.unit or unit, decimals if form.decimals is None else form.decimals)


def _text(exact: Decimal, decimals: int) -> str:
    if abs(exact) >= _LONG:
        return f"{exact:.{decimals}e}"
    rounded = exact.quantize(Decimal(1).scaleb(-decimals))
    if rounded == 0 != exact:
        return f"{exact:.0e}" if abs(exact) < _SHORT else f"{_FIRST_DIGIT.plus(exact):f}"
    return f"{abs(rounded) if rounded == 0 else rounded:f}"  # never -0.00
