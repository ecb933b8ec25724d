"""Cells of a table as clients see them, and how their numbers are printed."""

import math
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from typing import Any, Final

from pydantic import BaseModel, Field

from orchestrator.spec.axes import Unit
from orchestrator.views.pages import Remark
from orchestrator.views.runs import Statistic
from orchestrator.views.states import TrialState


class CellTrial(BaseModel):
    """A trial of a cell with the provenance of its training."""

    trial: int
    uid: str
    repeat: int
    labels: dict[str, str]
    """Of the repeat axes."""
    state: TrialState
    diverged: bool
    reused: bool
    score: float | None
    """The metric that the sweep selects by, of this trial alone."""
    training: str
    fingerprint: str
    """The hash of its completed recipe: trials that share it share the training."""
    dataset: str
    data_hash: str | None
    """Of the content of the data set."""
    git_commit: str | None
    """Of the code that trained it; `-dirty` where that was changed."""
    versions: dict[str, str]
    outdated: list[str] = Field(default_factory=list)
    """What has other numbers today than when it was planned, such as `metric 'map' (version 1, now 2)`."""
    device: str | None
    host: str | None
    seconds: float | None
    error: str | None
    reason: str | None
    """Why it was pruned."""
    url: str  # /v1/trials/<id>
    mlflow_url: str | None


class CellCandidate(BaseModel):
    """A candidate of a cell: the selected one, or one that lost."""

    index: int
    labels: dict[str, str]
    selected: bool
    status: str
    """complete, pending, diverged, failed, cancelled or pruned; only a complete one can be selected."""
    score: float | None
    """Mean over the repeats of what is selected by."""
    std: float | None
    n: int
    trials: list[CellTrial]


class CellNumber(BaseModel):
    """One number of a table that the cell fills."""

    table: str
    metric: str
    title: str
    text: str
    """As the table prints it, in the table's unit."""
    mean: float | None
    """As a fraction."""
    std: float | None
    n: int | None
    published: str | None = None
    """The table of a paper that it is compared with, such as SEC-T3; null where the paper has no such number."""
    printed: str | None = None
    """The paper's number, in its own characters."""
    difference: float | None = None
    tolerance: float | None = None
    verdict: str | None = None
    source: str | None = None
    """Where the paper has it from, if not from its own trainings."""


class CellView(BaseModel):
    """A cell of a sweep and everything behind its numbers."""

    sweep: int
    sweep_name: str
    index: int
    labels: dict[str, str]
    status: str
    """complete, partial, failed, diverged or missing."""
    selection_key: str
    """What candidates are selected by: checkpoint/split/metric."""
    numbers: list[CellNumber]
    candidates: list[CellCandidate]
    """The selected one first, then the others in their order."""
    mixed: list[str] = Field(default_factory=list)
    """In which data, code and versions of parts the runs of the selected candidate differ."""
    mlflow_url: str | None = None
    remark: Remark = Field(default_factory=Remark)


class ComparedCell(BaseModel):
    """A cell as it stands beside others: its selected candidate, and what that measured."""

    sweep: int
    sweep_name: str
    index: int
    labels: dict[str, str]
    status: str
    """complete, partial, failed, diverged or missing."""
    selection_key: str
    candidates: int
    """How many compete in it."""
    selected: dict[str, str] | None
    """The labels of the selected candidate; of a cell with one candidate always that one's; none: none is chosen."""
    trials: dict[str, int]
    """How many of that candidate's trials are in each state; of all trials where none is chosen."""
    recipe: Mapping[str, Any]
    """Of that candidate's trainings, without what its repeats differ by; empty where none is chosen."""
    metrics: dict[str, Statistic]
    """By checkpoint/split/metric; of a candidate that is not complete, over the repeats that have finished so far."""


_LONG: Final = Decimal("1e7")  # from here on a number is printed with an exponent
_SHORT: Final = Decimal("1e-6")  # and below, where its decimals would not show it
_NOISE: Final = Decimal("1e-12")  # what two floats that mean the same may differ by
_FIRST_DIGIT: Final = Context(prec=1)
DECIMALS: Final = 2
"""Of percents, and of numbers from 1 on without a deviation."""
_MOST_DECIMALS: Final = 6


def decimals_of(values: Iterable[float], deviations: Iterable[float]) -> int:
    """How many decimals numbers that are no percents are printed with, together: in one column, for one comparison.

    Their median deviation gets two significant digits. Numbers without deviations get three decimals where all of
    them are below 1, else two.
    """
    spreads = sorted(one for one in deviations if math.isfinite(one) and one > _NOISE)
    if spreads:
        usual = spreads[(len(spreads) - 1) // 2]
        return min(max(1 - math.floor(math.log10(usual)), 0), _MOST_DECIMALS)
    sizes = [abs(one) for one in values if math.isfinite(one)]
    return DECIMALS + 1 if sizes and max(sizes) < 1 else DECIMALS


def printed(value: float, unit: Unit, decimals: int, *, signed: bool = False) -> str:
    """`value` (a fraction, or a plain number) with fixed decimals; percent are multiplied by 100, without a sign.

    A number that is not zero never reads as zero: it gets as many decimals as its first digit needs. `signed` writes
    the plus of what is more than zero.
    """
    # From the shortest decimal that names the float, so that 0.59855 rounds as a reader of the JSON would round it.
    exact = Decimal(repr(float(value)))
    if abs(exact) < _NOISE:
        exact = Decimal(0)
    if unit == "percent":
        exact = exact.scaleb(2)
    text = _text(exact, decimals)
    return f"+{text}" if signed and Decimal(text) > 0 else text


def _text(exact: Decimal, decimals: int) -> str:
    if abs(exact) >= _LONG:
        return f"{exact:.{decimals}e}"
    rounded = exact.quantize(Decimal(1).scaleb(-decimals))
    if rounded == 0 != exact:
        return f"{exact:.0e}" if abs(exact) < _SHORT else f"{_FIRST_DIGIT.plus(exact):f}"
    return f"{abs(rounded) if rounded == 0 else rounded:f}"  # never -0.00
