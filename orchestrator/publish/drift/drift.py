"""The difference of two tables, number by number."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.publish.aggregate import Repeat
from orchestrator.publish.drift.causes import causes
from orchestrator.publish.drift.noise import LEVEL, ChangedRuns, holm
from orchestrator.publish.drift.state import NumberKey, ShownNumber, TableSource, axes_of, numbers
from orchestrator.views.drift import CellDrift, Change, DriftNumber, DriftView, RunFacts
from orchestrator.views.printing import printed

_RULE = (
    "Runs are the same where repeat and all results are. More than noise: p < 0.05 after Holm's correction over "
    "{count} that could be tested, paired by repeat where all runs were trained again, else by Welch's test of new "
    "runs against former ones. That another candidate was selected by these very runs is not corrected for."
)


@dataclass(frozen=True, slots=True)
class _Both:
    """A number before and after; either may be missing."""

    before: ShownNumber | None
    after: ShownNumber | None
    sweeps: tuple[int, int]

    @property
    def one(self) -> ShownNumber:
        shown = self.after or self.before
        assert shown is not None
        return shown

    @property
    def runs(self) -> ChangedRuns:
        before, after = (side.runs if side else {} for side in (self.before, self.after))
        return ChangedRuns.of(before, after, self._unlike())

    def _unlike(self) -> set[Repeat]:
        """The repeats whose trainings differ in any result, though they may share this one by chance."""
        if self.before is None or self.after is None:
            return set()
        pairs = ((repeat, old, self.after.results.get(repeat, {})) for repeat, old in self.before.results.items())
        return {
            repeat for repeat, old, new in pairs
            if any(key in new and not math.isnan(value) and new[key] != value for key, value in old.items())
        }  # fmt: skip

    @property
    def same(self) -> bool:
        """Whether nothing of it is otherwise: the runs, or the word that stands for them."""
        if self.before is None or self.after is None:
            return (self.one.cell.statistic, self.one.cell.mark) in {(None, None), (None, "pending")}
        if dict(self.before.runs) != dict(self.after.runs):
            return False
        return bool(self.before.runs) or self.before.cell.text == self.after.cell.text

    def differing(self, side: int) -> list[int]:
        """The trials on one side that differ, or all of it where the other side's do."""
        shown = (self.before, self.after)[side]
        moved = (self.runs.before, self.runs.after)[side]
        if shown is None:
            return []
        return [trial for repeat, trial in shown.trials.items() if repeat in (moved or shown.runs)]


def drift(before: TableSource, after: TableSource, name: str) -> DriftView:
    """Which numbers of the table `name` are not as they were, by what, and whether by more than noise.

    Cells are matched by labels, metrics by name. NotFoundError where either has no such table.
    """
    axes = axes_of(before, after)
    old, new = numbers(before, name, axes), numbers(after, name, axes)
    sweeps = before.outcomes.sweep, after.outcomes.sweep
    pairs = [_Both(old.get(key), new.get(key), sweeps) for key in _ordered(old, new)]
    moved = [one for one in pairs if not one.same]
    facts = before.facts(_trials(moved, 0)), after.facts(_trials(moved, 1))
    tests = [
        one.runs.test() if one.before and one.after else (None, "there is nothing to compare it with") for one in moved
    ]
    corrected = holm([p for p, _ in tests])
    cells = [_cell(one, facts, p, why) for one, p, (_, why) in zip(moved, corrected, tests, strict=True)]
    count = sum(p is not None for p in corrected)
    return DriftView(
        before=before.title, after=after.title, table=name, unchanged=len(pairs) - len(moved),
        said=_RULE.format(count=f"{count} number{'s' * (count != 1)}"), cells=cells,
    )  # fmt: skip


def _ordered(old: Mapping[NumberKey, ShownNumber], new: Mapping[NumberKey, ShownNumber]) -> Iterable[NumberKey]:
    return dict.fromkeys((*new, *old))


def _trials(moved: Iterable[_Both], side: int) -> set[int]:
    return {trial for one in moved for trial in one.differing(side)}


def _cell(
    both: _Both, facts: tuple[Mapping[int, RunFacts], Mapping[int, RunFacts]], p: float | None, why: str
) -> CellDrift:
    column = both.one.column
    told = [_number(side, sweep) for side, sweep in zip((both.before, both.after), both.sweeps, strict=True)]
    means = [one.mean if one else None for one in told]
    difference = means[1] - means[0] if means[0] is not None and means[1] is not None else None
    change = _change(both, means[0], means[1])
    explained = []
    if both.before and both.after and difference is not None:
        runs = [[facts[side][trial] for trial in both.differing(side) if trial in facts[side]] for side in (0, 1)]
        explained = causes(
            (both.before.candidate, both.after.candidate), (both.before.runs.keys(), both.after.runs.keys()),
            (runs[0], runs[1]),
        )  # fmt: skip
    loud = "cannot tell" if p is None else "more than noise" if p < LEVEL else "within noise"
    return CellDrift(
        labels=dict(both.one.labels), metric=column.name, title=column.title, change=change, before=told[0],
        after=told[1], difference=difference,
        shown="" if difference is None else printed(difference, column.unit, column.decimals, signed=True),
        causes=explained, loudness=loud, why=why, p=p,
    )  # fmt: skip


def _change(both: _Both, before: float | None, after: float | None) -> Change:
    if after is not None:
        return "appeared" if before is None else "changed"
    mark = both.after.cell.mark if both.after else None
    return "gone" if mark is None or mark == "partial" else mark


def _number(shown: ShownNumber | None, sweep: int) -> DriftNumber | None:
    if shown is None or shown.cell.cell is None:
        return None
    cell, found = shown.cell, shown.cell.statistic
    return DriftNumber(
        text=cell.text, mean=found.mean if found else None, std=found.std if found else None, n=found.n if found else 0,
        sweep=sweep, cell=shown.cell.cell,
    )  # fmt: skip
