"""How a table differs from another one, or from itself at another time: number by number, by what, and how much."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.publish.aggregate import Repeat, holm, run_values, runs_of, statistic, welch
from orchestrator.publish.labels import axis_title
from orchestrator.publish.tables import build
from orchestrator.publish.tables.layout import fixed_label
from orchestrator.publish.tables.table_data import Column, TableCell
from orchestrator.publish.verdicts.significance import paired_t
from orchestrator.spec.axes import label_of
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import CauseKind, CellDrift, Change, DriftCause, DriftNumber, DriftView, RunFacts
from orchestrator.views.pages import Rendered
from orchestrator.views.runs import Labels, SweepOutcomes
from orchestrator.views.tables import printed
from workers.catalog import Catalog, unknown

NumberKey = tuple[frozenset[tuple[str, str]], str, str, str]
"""The labels of a cell, the metric as the spec names it, the split that it is of, and by what it is selected."""

LEVEL: Final = 0.05
_PAIRS: Final = 3
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
    """Where a table comes from."""

    title: str  # `sweep 7 (sec-t3) at 2026-11-20 12:00 UTC`
    outcomes: SweepOutcomes
    catalog: Catalog
    facts: Callable[[Collection[int]], Mapping[int, RunFacts]]  # of some trials


@dataclass(frozen=True, slots=True)
class ShownNumber:
    """A number of a table and the runs that it is the mean of."""

    labels: Labels
    column: Column
    cell: TableCell
    candidate: Labels
    runs: Mapping[Repeat, float]
    trials: Mapping[Repeat, int]
    results: Mapping[Repeat, Mapping[str, float]]  # all that a run has, which tells trainings apart


def numbers(source: TableSource, name: str, axes: Collection[str]) -> dict[NumberKey, ShownNumber]:
    """Every number of a table by what names it; `axes` are those of both tables, held ones too. NotFoundError."""
    outcomes = source.outcomes
    built = build.build(outcomes, name, source.catalog)
    cells = {cell.index: cell for cell in outcomes.cells}
    shown = [*built.summaries.values(), *built.tested.values()]
    runs = runs_of(outcomes, {(one.cell, one.candidate) for one in shown if one.candidate is not None})
    by_key: dict[NumberKey, ShownNumber] = {}
    for panel in built.panels:
        for row in panel.rows:
            for column, place in zip(panel.columns, row.cells, strict=True):
                if column.kind != "metric" or column.delta is not None or place.cell is None:
                    continue
                summary = built.summary(column, place.cell)
                chosen = summary.candidate if place.statistic else None
                trials = [] if chosen is None else runs[place.cell, chosen]
                named = {axis: label for axis in axes if (label := _label(outcomes, cells[place.cell].labels, axis))}
                key = (frozenset(named.items()), column.name, column.split, column.selection or "")
                by_key[key] = ShownNumber(
                    dict(cells[place.cell].labels), column, place, summary.labels, run_values(trials, column.key),
                    {frozenset(one.repeat_labels.items()): one.trial for one in trials},
                    {frozenset(one.repeat_labels.items()): one.values for one in trials},
                )  # fmt: skip
    return by_key


def axes_of(*sources: TableSource) -> list[str]:
    """The axes by which cells of either are told apart."""
    return list(dict.fromkeys(axis for one in sources for cell in one.outcomes.cells for axis in cell.labels))


def _label(outcomes: SweepOutcomes, labels: Labels, axis: str) -> str:
    """The label of a cell on an axis; on one that its sweep does not compare what the base recipe holds."""
    compared = axis in (outcomes.spec.get("compare") or {})
    return labels.get(axis, "" if compared else fixed_label(outcomes.spec, axis))


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
        sides = statistic(old), statistic(new)
        if max(one.std or 0.0 for one in sides) <= _LAST_BITS:
            return None, "no spread between runs"
        word = "new ones" if self.after else "that stayed"
        return welch(*sides), f"Welch's t-test of {_counted(len(old))} against {len(new)} {word}"


def _counted(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def causes(
    candidates: tuple[Labels, Labels], repeats: tuple[Collection[Repeat], Collection[Repeat]],
    runs: tuple[Collection[RunFacts], Collection[RunFacts]],
) -> list[DriftCause]:  # fmt: skip
    """What is not the same; `runs` are those that differ, before and after. Never empty: at least *retrained*."""
    found = [*_selected(*candidates), *_seeds(*repeats)]
    if runs[0] and runs[1]:
        found += _recipes(*runs, candidates)
        found += _sets("data", "data set", *([one.data_hash for one in side] for side in runs))
        found += _sets("code", "commit", *([one.commit for one in side] for side in runs))
        found += _versions(*runs)
    return found or [DriftCause(kind="retrained", said="trained again by the same recipe, data and code")]


def _selected(before: Labels, after: Labels) -> Iterator[DriftCause]:
    if before != after:
        yield DriftCause(kind="selected candidate", said=f"{_named(before)} → {_named(after)}")


def _named(labels: Labels) -> str:
    return ", ".join(f"{axis} {label}" for axis, label in labels.items()) or "the only one"


def _seeds(before: Collection[Repeat], after: Collection[Repeat]) -> Iterator[DriftCause]:
    for word, runs in (("added", set(after) - set(before)), ("gone", set(before) - set(after))):
        if runs:
            said = sorted(" ".join(f"{axis} {label}" for axis, label in sorted(one)) for one in runs)
            yield DriftCause(kind="seeds", said=f"{len(runs)} {word}: {_few(said)}")


def _recipes(
    before: Collection[RunFacts], after: Collection[RunFacts], candidates: tuple[Labels, Labels]
) -> Iterator[DriftCause]:
    """The fields that differ, but for what the candidates set and what varies between runs of one side."""
    old, new = (_fields(one.recipe for one in side) for side in (before, after))
    told = {*candidates[0], *candidates[1]}
    changes = []
    for path in sorted({*old, *new}):
        sides = old.get(path, {_NOTHING}), new.get(path, {_NOTHING})
        if path not in told and sides[0] != sides[1] and max(map(len, sides)) == 1:
            changes.append(f"{path} {next(iter(sides[0]))} → {next(iter(sides[1]))}")
    if changes:
        yield DriftCause(kind="recipe", said=_few(changes))
    pins = _fields(_pinned(one) for one in before), _fields(_pinned(one) for one in after)
    parts = [
        f"{path} {_few(sorted(pins[0].get(path, {_NOTHING})))} → {_few(sorted(pins[1].get(path, {_NOTHING})))}"
        for path in sorted({*pins[0], *pins[1]}) if pins[0].get(path) != pins[1].get(path)
    ]  # fmt: skip
    if parts:
        yield DriftCause(kind="versions", said=f"of parts: {_few(parts)}")


def _pinned(run: RunFacts) -> Mapping[str, Any]:
    return (run.recipe.get(_PINS) or {}).get("versions") or {}


def _fields(recipes: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """The values of each field over some recipes."""
    values: dict[str, set[str]] = {}
    for recipe in recipes:
        for path, value in _leaves(recipe):
            values.setdefault(path, set()).add(value)
    return values


def _leaves(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, inside in value.items():
        if not before and key == _PINS:
            continue
        if isinstance(inside, Mapping):
            yield from _leaves(inside, f"{before}{key}.")
        else:
            yield f"{before}{key}", label_of(inside)


def _sets(
    kind: CauseKind, what: str, before: Collection[str | None], after: Collection[str | None]
) -> Iterator[DriftCause]:
    old, new = ({one for one in side if one} for side in (before, after))
    if old != new and old and new:
        sides = (_few(sorted(one.removeprefix("sha256:")[:12] for one in side)) for side in (old, new))
        yield DriftCause(kind=kind, said=f"{what} {' → '.join(sides)}")


def _versions(before: Collection[RunFacts], after: Collection[RunFacts]) -> Iterator[DriftCause]:
    old, new = (_fields(one.versions for one in side) for side in (before, after))
    moved = [
        f"{name} {_few(sorted(old[name]))} → {_few(sorted(new[name]))}"
        for name in sorted({*old} & {*new}) if old[name] != new[name]
    ]  # fmt: skip
    if moved:
        yield DriftCause(kind="versions", said=_few(moved))


def _few(texts: Collection[str]) -> str:
    shown = [*texts][:_MOST]
    more = [f"{len(texts) - _MOST} more"] if len(texts) > _MOST else []
    return ", ".join([*shown, *more])


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


def render(view: DriftView, format_name: str) -> Rendered:
    """The difference in a format; NotFoundError names the formats there are."""
    if format_name not in _FORMATS:
        raise NotFoundError(unknown("format of a difference", format_name, _FORMATS))
    media_type, suffix, write = _FORMATS[format_name]
    return Rendered(content=write(view).encode(), media_type=media_type, filename=f"drift-{view.table}{suffix}")


def _shown(one: DriftNumber | None) -> str:
    if one is None:
        return "none"
    return f"{one.text} ({one.n})" if one.n else one.text or "none"


def _text(view: DriftView) -> str:
    return "\n".join(_lines(view)) + "\n"


def _lines(view: DriftView) -> Iterator[str]:
    count = len(view.cells)
    loud = sum(one.loudness == "more than noise" for one in view.cells)
    moved = f"{count} number{'s' * (count != 1)} of table {view.table} changed, {loud} by more than noise"
    yield f"From {view.before} to {view.after}: {moved}; {view.unchanged} are as they were."
    for cell in view.cells:
        place = ", ".join(f"{axis_title(axis)} {label}" for axis, label in cell.labels.items()) or "the only cell"
        noise = cell.loudness if cell.p is None else f"{cell.loudness} (p = {cell.p:.2g})"
        yield ""
        yield f"{place}: {cell.title or cell.metric}"
        change = f"{cell.shown}, {noise}: {cell.why}" if cell.shown else cell.change
        yield f"  {_shown(cell.before)} → {_shown(cell.after)}, {change}"
        yield from (f"  {one.kind}: {one.said}" for one in cell.causes)
    if view.cells:
        yield ""
        yield f"In brackets the number of runs. {view.said}"


def _json(view: DriftView) -> str:
    return view.model_dump_json(indent=2) + "\n"


_FORMATS: Final[Mapping[str, tuple[str, str, Callable[[DriftView], str]]]] = {
    "text": ("text/plain; charset=utf-8", ".txt", _text),
    "json": ("application/json", ".json", _json),
}
