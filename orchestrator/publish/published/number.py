"""One number of a printed table: where it stands, its characters, and what they mean."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from orchestrator.spec.unit import Unit
from orchestrator.views.planned import Labels

_PERCENT: Final = -2  # 66.92 percent is the fraction 0.6692
_DECIMAL: Final = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)")
_SIGN: Final = "±"


@dataclass(frozen=True, slots=True)
class Number:
    """A printed number; shares are fractions, as everywhere in the project."""

    labels: Labels  # of the axes that apply to its row
    tuned: Labels  # what the authors chose in that cell, as far as they say
    metric: str  # as a spec names it; delta:<metric> for a printed difference
    printed: str  # as it stands in the paper, with its deviation
    value: float | None  # none for words
    std: float | None
    bold: bool
    unit: Unit = "percent"  # in which the value is printed
    std_unit: Unit = "percent"  # and its deviation
    source: str = ""  # where the paper took it from; empty for its own

    @property
    def decimals(self) -> int:
        """How many decimals are printed."""
        return len(self.printed.partition(_SIGN)[0].partition(".")[2])

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit: how far the value may lie from what was rounded."""
        return float(Decimal("0.5").scaleb(-self.decimals + (_PERCENT if self.unit == "percent" else 0)))


@dataclass(frozen=True, slots=True)
class PrintedPlace:
    """Where a number stands in its table."""

    labels: Labels
    tuned: Labels
    metric: str


@dataclass(frozen=True, slots=True)
class Units:
    """In which units a table prints a metric and its deviation."""

    value: Unit
    std: Unit


def read(cell: str, place: PrintedPlace, units: Units, source: str = "") -> Number:
    """The number that a cell holds: `60.82`, `*60.82*` where bold, `66.92±0.002`, or a word."""
    bold = len(cell) > 2 and cell.startswith("*") and cell.endswith("*")
    printed = cell[1:-1] if bold else cell
    mean, _, std = printed.partition(_SIGN)
    is_number = _DECIMAL.fullmatch(mean) is not None
    return Number(
        labels=place.labels,
        tuned=place.tuned,
        metric=place.metric,
        printed=printed,
        value=_value(mean, units.value) if is_number else None,
        std=_value(std, units.std) if is_number and std else None,
        bold=bold,
        unit=units.value,
        std_unit=units.std,
        source=source,
    )


def _value(text: str, unit: Unit) -> float:
    return float(Decimal(text).scaleb(_PERCENT if unit == "percent" else 0))
