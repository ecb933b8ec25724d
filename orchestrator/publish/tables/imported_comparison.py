"""Whether an imported number differs from an own one, by what an import still tells: mean, deviation and n."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from orchestrator.publish import statistics
from orchestrator.publish.tables.significance import LEVEL
from orchestrator.views.outcomes import Statistic

Word = Literal["higher", "lower", "not told apart", "untested"]

HIGHER: Final = "⇑"
LOWER: Final = "⇓"
_NOISE: Final = 1e-12  # of deviations, below which runs do not vary


@dataclass(frozen=True, slots=True)
class ImportedComparison:
    """An imported number beside the own one that it is tested against; p are two-sided."""

    own: str  # what stands beside the own row
    difference: float | None = None  # imported - own mean, as a fraction; none without an own mean
    p: float | None = None  # none where nothing could be tested
    corrected: float | None = None  # by Holm's method over the imported numbers of the table
    why: str = ""  # why nothing could be tested

    @property
    def word(self) -> Word:
        """What is said of it."""
        if self.corrected is None or self.difference is None:
            return "untested"
        if self.corrected >= LEVEL:
            return "not told apart"
        return "higher" if self.difference > 0 else "lower"

    @property
    def sign(self) -> str:
        """The mark behind the number."""
        return {"higher": HIGHER, "lower": LOWER}.get(self.word, "")

    @property
    def said(self) -> str:
        """In a sentence, without its end."""
        if self.corrected is None:
            return f"untested against {self.own}: {self.why}"
        word = self.word if self.word == "not told apart" else f"significantly {self.word}"
        beside = "from" if self.word == "not told apart" else "than"
        return f"{word} {beside} {self.own} (Welch's t-test, p = {self.corrected:.2g} corrected)"


def tested(imported: Statistic, own: Statistic | None, name: str) -> ImportedComparison:
    """An imported number beside an own one; of `imported`, n is 0 where it is not known. Not corrected yet.

    Welch's t-test (Biometrika 34, 1947) from means, sample deviations and numbers of runs, since the runs themselves
    are not known: unpaired, and for numbers of runs that were fixed beforehand.
    """
    difference = None if own is None else imported.mean - own.mean
    if why := _untestable(imported, own):
        return ImportedComparison(name, difference, why=why)
    assert own is not None
    return ImportedComparison(name, difference, statistics.welch(imported, own))


def _untestable(imported: Statistic, own: Statistic | None) -> str:
    if imported.n == 1:
        return "a single imported run"
    if imported.std is None or not imported.n:
        missing = [word for word, there in (("n", imported.n), ("std", imported.std is not None)) if not there]
        return f"the import gives no {' and no '.join(missing)}"
    if own is None:
        return "no finished own number"
    if own.std is None:
        return "a single own run"
    return "no variation between runs" if max(imported.std, own.std) <= _NOISE else ""


def holm(found: Mapping[tuple[int, ...], ImportedComparison]) -> dict[tuple[int, ...], ImportedComparison]:
    """The tests of a table, their p corrected by Holm's step-down method over all that there are."""
    corrected = statistics.holm(one.p for one in found.values())
    return {place: replace(one, corrected=p) for (place, one), p in zip(found.items(), corrected, strict=True)}
