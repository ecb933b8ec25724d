"""Whether the runs behind a number differ from those behind another by more than runs differ anyway."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.publish.aggregate import Repeat
from orchestrator.publish.statistics import statistic
from orchestrator.publish.tables.significance import paired_t

LEVEL: Final = 0.05
_PAIRS: Final = 3
_LAST_BITS: Final = 1e-12


@dataclass(frozen=True, slots=True)
class ChangedRuns:
    """The runs of one number before and after, by repeat, as far as they are not the same."""

    before: Mapping[Repeat, float]
    after: Mapping[Repeat, float]
    shared: Mapping[Repeat, float]

    @classmethod
    def of(
        cls, before: Mapping[Repeat, float], after: Mapping[Repeat, float], unlike: Collection[Repeat] = ()
    ) -> "ChangedRuns":
        """A run is the same where both have it with the same value, but for those that are known to be `unlike`."""
        shared = {
            repeat: value for repeat, value in before.items() if after.get(repeat) == value and repeat not in unlike
        }
        return cls(
            {repeat: value for repeat, value in before.items() if repeat not in shared},
            {repeat: value for repeat, value in after.items() if repeat not in shared},
            shared,
        )

    def test(self) -> tuple[float | None, str]:
        """The two-sided p, and by which test; none, and why, where nothing can be tested.

        Runs of the same repeats are paired. Otherwise the runs that are new stand against those that are gone, or
        either against those that stayed, which a mean over both would hide (Welch's test).
        """
        pairs = [self.after[repeat] - value for repeat, value in self.before.items() if repeat in self.after]
        if len(pairs) >= _PAIRS and len(pairs) == len(self.before) == len(self.after):
            p = paired_t(pairs, _LAST_BITS)
            reason = f"paired t-test of {len(pairs)} runs of the same repeats"
            return (p, reason) if p is not None else (None, "the difference is the same in every run")
        old, new = ([*(one or self.shared).values()] for one in (self.before, self.after))
        if min(len(old), len(new)) < 2:
            return None, f"{_counted(len(old))} against {_counted(len(new))}: two of each are needed"
        p = welch(old, new)
        word = "new ones" if self.after else "that stayed"
        reason = f"Welch's t-test of {_counted(len(old))} against {len(new)} {word}"
        return (p, reason) if p is not None else (None, "no spread between runs")


def welch(left: Sequence[float], right: Sequence[float]) -> float | None:
    """The two-sided p of Welch's t-test (Biometrika 34, 1947); none where neither side varies."""
    one, other = statistic(left), statistic(right)
    parts = [((found.std or 0.0) ** 2 / found.n, found.n - 1) for found in (one, other)]
    squared = sum(part for part, _ in parts)
    if squared <= _LAST_BITS**2:
        return None
    from scipy.special import stdtr  # only now: it takes half a second

    degrees = squared**2 / sum(part**2 / free for part, free in parts)
    return float(2 * stdtr(degrees, -abs(one.mean - other.mean) / math.sqrt(squared)))


def holm(found: Collection[float | None]) -> list[float | None]:
    """Each p corrected by Holm's step-down method over all that there are."""
    tested = sorted((p, at) for at, p in enumerate(found) if p is not None)
    corrected: dict[int, float] = {}
    least = 0.0
    for rank, (p, at) in enumerate(tested):
        least = max(least, min(1.0, p * (len(tested) - rank)))
        corrected[at] = least
    return [corrected.get(at) for at in range(len(found))]


def _counted(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"
