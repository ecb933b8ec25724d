"""Compares a table with another table, or with itself at another time: which numbers differ, why, and by how much."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.publish.aggregate import Repeat, holm, run_values, runs_of, statistic, welch
from orchestrator.publish.labels import axis_title
from orchestrator.publish.tables import build
from orchestrator.publish.tables.layout import label_at
from orchestrator.publish.tables.table_data import Column, TableCell
from orchestrator.publish.verdicts.significance import LEVEL, MIN_PAIRS, paired_t
from orchestrator.spec.fields import label_of
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import CauseKind, CellDiff, Change, DiffCause, DiffNumber, RunFacts, TableDiff
from orchestrator.views.pages import Rendered
from orchestrator.views.runs import Labels, SweepResults, TrialResult
from orchestrator.views.tables import printed
from orchestrator.views.trials import leaves
from workers.catalog import Catalog, counted, unknown

NumberKey = tuple[frozenset[tuple[str, str]], str, str, str]
"""The labels of a cell, the metric as the spec names it, its split, and its selection."""

_LAST_BITS: Final = 1e-12
_MOST: Final = 6
_PINS: Final = "pins"
_NOTHING: Final = "nothing"
_RULE = (
    "Runs are the same where repeat and all results are. More than noise: p < 0.05 after Holm's correction over "
    "{count} that could be tested, paired by repeat where all runs were trained again, else by Welch's test of new "
    "runs against former ones. That another candidate was selected by these very runs is not corrected for."
)


@dataclass(frozen=True, slots=True)
class TableSource:
    """A sweep's results at one time, from which a table to compare is built."""

    title: str  # such as `sweep 7 (sec-t3) at 2026-11-20 12:00 UTC`
    results: SweepResults
    catalog: Catalog
    facts: Callable[[Collection[int]], Mapping[int, RunFacts]]  # of some trials


def diff(before: TableSource, after: TableSource, name: str) -> TableDiff:
    """Finds the numbers of the table `name` that changed between two sources, why, and whether by more than noise.

    Cells are matched by labels, metrics by name. Raises NotFoundError if either source has no such table.
    """
    axes = dict.fromkeys(axis for side in (before, after) for cell in side.results.cells for axis in cell.labels)
    old, new = numbers(before, name, axes), numbers(after, name, axes)
    pairs = [_Both(old.get(key), new.get(key)) for key in dict.fromkeys((*new, *old))]
    moved = [both for both in pairs if not both.same]
    trials = [{trial for both in moved for trial in both.differing(side)} for side in (0, 1)]
    facts = before.facts(trials[0]), after.facts(trials[1])
    tests = [both.test() for both in moved]
    corrected = holm([p for p, _ in tests])
    cells = [_cell(both, facts, p, why) for both, p, (_, why) in zip(moved, corrected, tests, strict=True)]
    return TableDiff(
        before=before.title, after=after.title, table=name, unchanged=len(pairs) - len(moved),
        summary=_RULE.format(count=counted(sum(p is not None for p in corrected), "number")), cells=cells,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShownNumber:
    """A number that a table shows and the runs that it averages."""

    labels: Labels
    column: Column
    cell: TableCell
    sweep: int
    candidate: Labels
    trials: Mapping[Repeat, TrialResult]
    runs: Mapping[Repeat, float]


def numbers(source: TableSource, name: str, axes: Collection[str]) -> dict[NumberKey, ShownNumber]:
    """Every number of a source's table; `axes` are the compare axes of both sources. Raises NotFoundError."""
    results = source.results
    built = build.build(results, name, source.catalog)
    cells = {cell.index: cell for cell in results.cells}
    shown = [*built.summaries.values(), *built.tested.values()]
    runs = runs_of(results, {(summary.cell, summary.candidate) for summary in shown if summary.candidate is not None})
    by_key: dict[NumberKey, ShownNumber] = {}
    for column, place, cell in built.metric_cells():
        if column.delta is not None:
            continue
        labels, summary = cells[cell].labels, built.summary(column, cell)
        chosen = summary.candidate if place.statistic else None
        trials = [] if chosen is None else runs[cell, chosen]
        named = {axis: label for axis in axes if (label := label_at(results.spec, labels, axis))}
        key = (frozenset(named.items()), column.name, column.split, column.selection or "")
        by_repeat = {frozenset(trial.repeat_labels.items()): trial for trial in trials}
        by_key[key] = ShownNumber(
            labels, column, place, results.sweep, summary.labels, by_repeat, run_values(trials, column.key)
        )
    return by_key


@dataclass(frozen=True, slots=True)
class _Both:
    """A number before and after; either may be missing."""

    before: ShownNumber | None
    after: ShownNumber | None

    @property
    def shown(self) -> ShownNumber:
        shown = self.after or self.before
        assert shown is not None
        return shown

    @property
    def same(self) -> bool:
        """Whether the runs are the same, or the word that is printed instead of a number."""
        if self.before is None or self.after is None:
            return (self.shown.cell.statistic, self.shown.cell.mark) in {(None, None), (None, "pending")}
        if self.before.runs != self.after.runs:
            return False
        return bool(self.before.runs) or self.before.cell.text == self.after.cell.text

    def runs(self) -> tuple[dict[Repeat, float], dict[Repeat, float], dict[Repeat, float]]:
        """The runs before and after that differ, and those that both sides share.

        Trainings that differ in any other result may share this number by chance.
        """
        old, new = (dict(side.runs) if side else {} for side in (self.before, self.after))
        shared = {
            repeat: value
            for repeat, value in old.items()
            if self.before and self.after and new.get(repeat) == value
            and _agree(self.before.trials[repeat].values, self.after.trials[repeat].values)
        }  # fmt: skip
        before, after = ({at: runs[at] for at in runs if at not in shared} for runs in (old, new))
        return before, after, shared

    def differing(self, side: int) -> list[int]:
        """The trials on one side that differ; all of them if only trials of the other side differ."""
        shown = (self.before, self.after)[side]
        if shown is None:
            return []
        moved = self.runs()[side] or shown.runs
        return [trial.trial for repeat, trial in shown.trials.items() if repeat in moved]

    def test(self) -> tuple[float | None, str]:
        """Tests whether a number changed by more than noise: the two-sided p and the test, or `None` and the reason.

        Runs of the same repeats are paired. Otherwise Welch's test compares the new runs with those that are gone, or
        either with the shared runs; a mean over both would hide the change.
        """
        if self.before is None or self.after is None:
            return None, "there is nothing to compare it with"
        before, after, shared = self.runs()
        if len(before) >= MIN_PAIRS and before.keys() == after.keys():
            p = paired_t([after[repeat] - value for repeat, value in before.items()], _LAST_BITS)
            reason = f"paired t-test of {len(before)} runs of the same repeats"
            return (p, reason) if p is not None else (None, "the difference is the same in every run")
        old, new = ([*(runs or shared).values()] for runs in (before, after))
        if min(len(old), len(new)) < 2:
            return None, f"{counted(len(old), 'run')} against {counted(len(new), 'run')}: two of each are needed"
        sides = statistic(old), statistic(new)
        if max(side.std or 0.0 for side in sides) <= _LAST_BITS:
            return None, "no spread between runs"
        kind = "new ones" if after else "that stayed"
        return welch(*sides), f"Welch's t-test of {counted(len(old), 'run')} against {len(new)} {kind}"


def _agree(old: Mapping[str, float], new: Mapping[str, float]) -> bool:
    """Whether two runs have the same results, as far as both have them."""
    return all(key not in new or math.isnan(value) or new[key] == value for key, value in old.items())


def _cell(
    both: _Both, facts: tuple[Mapping[int, RunFacts], Mapping[int, RunFacts]], p: float | None, why: str
) -> CellDiff:
    column = both.shown.column
    before, after = _number(both.before), _number(both.after)
    means = before.mean if before else None, after.mean if after else None
    difference = means[1] - means[0] if means[0] is not None and means[1] is not None else None
    explained = []
    if both.before and both.after and difference is not None:
        runs = [[facts[side][trial] for trial in both.differing(side) if trial in facts[side]] for side in (0, 1)]
        explained = causes(
            (both.before.candidate, both.after.candidate), (both.before.runs.keys(), both.after.runs.keys()),
            (runs[0], runs[1]),
        )  # fmt: skip
    return CellDiff(
        labels=dict(both.shown.labels), metric=column.name, title=column.title, change=_change(both, *means),
        before=before, after=after, difference=difference,
        shown="" if difference is None else printed(difference, column.unit, column.decimals, signed=True),
        causes=explained, why=why, p=p,
        significance="cannot tell" if p is None else "more than noise" if p < LEVEL else "within noise",
    )  # fmt: skip


def _number(shown: ShownNumber | None) -> DiffNumber | None:
    if shown is None or shown.cell.cell is None:
        return None
    cell, measured = shown.cell, shown.cell.statistic
    mean, std, n = (measured.mean, measured.std, measured.n) if measured else (None, None, 0)
    return DiffNumber(text=cell.text, mean=mean, std=std, n=n, sweep=shown.sweep, cell=cell.cell)


def _change(both: _Both, before: float | None, after: float | None) -> Change:
    if after is not None:
        return "appeared" if before is None else "changed"
    mark = both.after.cell.mark if both.after else None
    return "gone" if mark is None or mark == "partial" else mark


def causes(
    candidates: tuple[Labels, Labels], repeats: tuple[Collection[Repeat], Collection[Repeat]],
    runs: tuple[Collection[RunFacts], Collection[RunFacts]],
) -> list[DiffCause]:  # fmt: skip
    """The causes of a number's difference; `runs` are the differing runs before and after. At least *retrained*."""
    found = []
    if candidates[0] != candidates[1]:
        before, after = (
            ", ".join(f"{axis} {label}" for axis, label in labels.items()) or "the only one" for labels in candidates
        )
        found.append(DiffCause(kind="selected candidate", message=f"{before} → {after}"))
    found += _seeds(*repeats)
    if runs[0] and runs[1]:
        found += _recipes(*runs, candidates)
        found += _sets("data", "data set", *([run.data_hash for run in side] for side in runs))
        found += _sets("code", "commit", *([run.commit for run in side] for side in runs))
        old, new = (_fields(run.versions for run in side) for side in runs)
        if moved := _moved(old, new, {*old} & {*new}):
            found.append(DiffCause(kind="versions", message=_few(moved)))
    return found or [DiffCause(kind="retrained", message="trained again by the same recipe, data and code")]


def _seeds(before: Collection[Repeat], after: Collection[Repeat]) -> Iterator[DiffCause]:
    for word, repeats in (("added", set(after) - set(before)), ("gone", set(before) - set(after))):
        if repeats:
            named = sorted(" ".join(f"{axis} {label}" for axis, label in sorted(repeat)) for repeat in repeats)
            yield DiffCause(kind="seeds", message=f"{len(repeats)} {word}: {_few(named)}")


def _few(texts: Collection[str]) -> str:
    shown = [*texts][:_MOST]
    more = [f"{len(texts) - _MOST} more"] if len(texts) > _MOST else []
    return ", ".join([*shown, *more])


def _recipes(
    before: Collection[RunFacts], after: Collection[RunFacts], candidates: tuple[Labels, Labels]
) -> Iterator[DiffCause]:
    """The fields that differ, except those that candidates set and those that vary between runs of one side."""
    old, new = (_fields(run.recipe for run in side) for side in (before, after))
    tuned = {*candidates[0], *candidates[1]}
    changes = []
    for path in sorted({*old, *new} - tuned):
        sides = old.get(path, {_NOTHING}), new.get(path, {_NOTHING})
        if sides[0] != sides[1] and max(map(len, sides)) == 1:
            changes.append(f"{path} {next(iter(sides[0]))} → {next(iter(sides[1]))}")
    if changes:
        yield DiffCause(kind="recipe", message=_few(changes))
    old, new = (
        _fields((run.recipe.get(_PINS) or {}).get("versions") or {} for run in side) for side in (before, after)
    )
    if parts := _moved(old, new, {*old, *new}):
        yield DiffCause(kind="versions", message=f"of parts: {_few(parts)}")


def _fields(recipes: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for recipe in recipes:
        for path, value in leaves(recipe):
            if path.partition(".")[0] != _PINS:
                values.setdefault(path, set()).add(label_of(value))
    return values


def _sets(
    kind: CauseKind, what: str, before: Collection[str | None], after: Collection[str | None]
) -> Iterator[DiffCause]:
    old, new = ({value for value in side if value} for side in (before, after))
    if old != new and old and new:
        sides = (_few(sorted(value.removeprefix("sha256:")[:12] for value in side)) for side in (old, new))
        yield DiffCause(kind=kind, message=f"{what} {' → '.join(sides)}")


def _moved(old: Mapping[str, set[str]], new: Mapping[str, set[str]], names: Collection[str]) -> list[str]:
    """What differs of some names, with its values on both sides."""
    sides = ((name, old.get(name, {_NOTHING}), new.get(name, {_NOTHING})) for name in sorted(names))
    return [f"{name} {_few(sorted(then))} → {_few(sorted(now))}" for name, then, now in sides if then != now]


def render(view: TableDiff, format_name: str) -> Rendered:
    """Writes the difference of two tables in a format; the NotFoundError for an unknown format lists the formats."""
    if format_name not in _FORMATS:
        raise NotFoundError(unknown("format of a difference", format_name, _FORMATS))
    media_type, suffix = _FORMATS[format_name]
    text = view.model_dump_json(indent=2) if format_name == "json" else "\n".join(_lines(view))
    return Rendered(content=f"{text}\n".encode(), media_type=media_type, filename=f"diff-{view.table}{suffix}")


def _shown(number: DiffNumber | None) -> str:
    if number is None:
        return "none"
    return f"{number.text} ({number.n})" if number.n else number.text or "none"


def _lines(view: TableDiff) -> Iterator[str]:
    significant = sum(cell.significance == "more than noise" for cell in view.cells)
    moved = f"{counted(len(view.cells), 'number')} of table {view.table} changed, {significant} by more than noise"
    yield f"From {view.before} to {view.after}: {moved}; {view.unchanged} are as they were."
    for cell in view.cells:
        place = ", ".join(f"{axis_title(axis)} {label}" for axis, label in cell.labels.items()) or "the only cell"
        noise = cell.significance if cell.p is None else f"{cell.significance} (p = {cell.p:.2g})"
        yield ""
        yield f"{place}: {cell.title or cell.metric}"
        change = f"{cell.shown}, {noise}: {cell.why}" if cell.shown else cell.change
        yield f"  {_shown(cell.before)} → {_shown(cell.after)}, {change}"
        yield from (f"  {cause.kind}: {cause.message}" for cause in cell.causes)
    if view.cells:
        yield ""
        yield f"In brackets the number of runs. {view.summary}"


_FORMATS: Final = {"text": ("text/plain; charset=utf-8", ".txt"), "json": ("application/json", ".json")}
