"""Whether the runs of a cell reproduce a printed number, by a rule whose error rates are known."""

import math
from dataclasses import dataclass
from typing import Final

from orchestrator.publish.published import Number
from orchestrator.publish.statistics import half_interval
from orchestrator.views.ledger import Standing
from orchestrator.views.outcomes import CellSummary, Statistic

WITHIN: Final = 1.0
"""Points of percent that count as the same, unless another margin is asked for."""
_SHARE: Final = 0.05
"""Of a number that is no share, such as a norm: the part of it that counts as the same, for each point."""
_LAST_BITS: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Stance:
    """How a printed number stands; shares are fractions."""

    standing: Standing
    why: str
    difference: float | None = None
    interval: float | None = None
    expected: float | None = None


def stance(own: Statistic | None, summary: CellSummary, number: Number, within: float = WITHIN) -> Stance:
    """How a number stands by one cell.

    *Reproduced*: the whole 95 % interval of the own mean lies closer to the printed number than the margin (two
    one-sided tests, Schuirmann 1987, at 2.5 % each). *Not reproduced*: the number lies outside of where one more run
    of the own protocol falls 95 times of 100 (Student-t prediction interval), since it is itself a draw of unknown
    spread, most often of one run. Otherwise the runs are too few, or spread too much, to say: *underpowered*.
    """
    if own is None or number.value is None:
        return _without(own, summary, number)
    difference = own.mean - number.value
    half = half_interval(own)
    if half is None:
        reason = "a single run" if own.n == 1 else "the difference of two cells, of which no spread is known"
        return Stance("underpowered", f"{reason}: nothing to judge by", difference)
    if own.std is not None and own.std <= _LAST_BITS:
        return Stance("underpowered", f"the same in all {own.n} runs: no spread to judge by", difference)
    interval, expected = half + number.rounding, half * math.sqrt(own.n + 1) + number.rounding
    margin = within * (_SHARE * abs(number.value) if number.unit == "number" else 0.01)
    measures = (difference, interval, expected)
    if abs(difference) + interval <= margin + _LAST_BITS:
        return Stance("reproduced", "the interval of the own mean lies within the margin", *measures)
    if abs(difference) > expected + _LAST_BITS:
        side = "above" if difference > 0 else "below"
        return Stance("not reproduced", f"the own mean lies {side} by more than runs differ", *measures)
    return Stance("underpowered", _wanting(abs(difference), interval, margin), *measures)


def _wanting(difference: float, interval: float, margin: float) -> str:
    if difference >= margin:
        return "they differ by more than the margin, but by no more than single runs do"
    return "compatible, but the interval of the own mean is too wide to say more"


def _without(own: Statistic | None, summary: CellSummary, number: Number) -> Stance:
    diverged = summary.status == "diverged"
    if number.value is None:
        if own is None and not diverged:
            return Stance("not run", _REASONS.get(summary.status, "no run has finished yet"))
        word: Standing = "reproduced" if diverged else "not reproduced"
        return Stance(
            word, f"the paper prints '{number.printed}'; here the loss {'' if diverged else 'never '}diverged"
        )
    if diverged:
        return Stance("not reproduced", "the loss became NaN in every candidate")
    return Stance("not run", _REASONS.get(summary.status, "no run has finished yet"))


_REASONS: Final = {
    "failed": "no candidate finished in every repeat",
    "complete": "the cell's runs did not measure it",
}
