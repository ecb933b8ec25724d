"""Whether an own number reproduces a published one: by the own standard error, and by nothing else."""

from dataclasses import dataclass
from typing import Final, Literal

from orchestrator.publish.aggregate import interval
from orchestrator.publish.papers import Number
from orchestrator.views.runs import CellSummary, Statistic

Word = Literal["reproduced", "above", "below", "no spread", "not run", "failed", "diverged"]

MEANING: Final[dict[Word, str]] = {
    "reproduced": "own and published number differ by no more than the tolerance, or the loss diverged in both",
    "above": "the own mean is higher by more than the tolerance",
    "below": "the own mean is lower by more than the tolerance",
    "no spread": "a single run, or a difference of two cells: no standard error to judge by",
    "not run": "no own number yet",
    "failed": "no own number, since no candidate finished in every repeat",
    "diverged": "no own number, since the loss became NaN in every candidate",
}
"""What each word says."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """An own number beside a published one; shares are fractions."""

    word: Word | None  # none where only the paper has words for a number
    difference: float | None = None  # own mean - published value
    tolerance: float | None = None  # how far they may lie apart and still be `reproduced`


def compare(own: Statistic | None, summary: CellSummary, number: Number) -> Reproduction:
    """How one metric of a cell reproduces a number; where either has no number there is no difference."""
    if own is None:
        return Reproduction(_without(summary, number))
    if number.value is None:
        return Reproduction(None)
    difference = own.mean - number.value
    bounds = interval(own)
    if bounds is None:
        return Reproduction("no spread", difference)
    tolerance = (bounds[1] - bounds[0]) / 2 + number.rounding
    # Equal numbers differ in the last bits once they went through percent.
    if abs(difference) <= tolerance + 1e-12:
        return Reproduction("reproduced", difference, tolerance)
    return Reproduction("above" if difference > 0 else "below", difference, tolerance)


def _without(summary: CellSummary, number: Number) -> Word:
    match summary.status:
        case "diverged":
            return "diverged" if number.value is not None else "reproduced"
        case "failed":
            return "failed"
        case _:
            return "not run"
