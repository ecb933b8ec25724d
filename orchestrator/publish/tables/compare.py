"""One table of the cells of several sweeps: merged, or the difference of two."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from orchestrator.publish.aggregate import selection
from orchestrator.publish.labels import Names
from orchestrator.publish.tables.build import build
from orchestrator.publish.tables.layout import fixed_label, label_at, placed
from orchestrator.publish.tables.select import layout_of
from orchestrator.publish.tables.table_data import Column, Origin, Panel, Table, TableCell, split
from orchestrator.spec.layouts import TableSpec
from orchestrator.spec.spec import shared
from orchestrator.views.errors import ConflictError
from orchestrator.views.runs import Candidate, Cell, Labels, Statistic, SweepResults, TrialResult
from orchestrator.views.states import SWEEP_ENDED
from orchestrator.views.tables import printed
from orchestrator.views.trials import leaves
from workers.catalog import Catalog

_MOST: Final = 12
"""The most differences that are named."""
_LEFT_OUT: Final = ("seed", "select")  # seeds are averaged over; what is selected by is said elsewhere


def _disagreement(several: Sequence[SweepResults], axes: Collection[str]) -> str:
    """One sentence on recipes, alternatives of the same label, and rules; "" where they agree.

    `axes` are those whose labels tell the cells apart.
    """
    found = [*_recipes(several, axes), *_alternatives(several)]
    if len({repr(one.spec.get("rules") or []) for one in several}) > 1:
        found.append("their rules")
    if not found:
        return ""
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"The sweeps also differ in {'; '.join(found[:_MOST])}{more}."


def _recipes(several: Sequence[SweepResults], axes: Collection[str]) -> Iterator[str]:
    recipes = {
        one.sweep: {path.removesuffix(".name"): value for path, value in leaves(one.spec.get("recipe") or {})}
        for one in several
    }
    for path in dict.fromkeys(path for found in recipes.values() for path in found):
        if any(path == axis or path.startswith(f"{axis}.") for axis in (*axes, *_LEFT_OUT)):
            continue
        values = {sweep: found.get(path) for sweep, found in recipes.items()}
        if len({repr(value) for value in values.values()}) > 1:
            held = (f"{sweep}: {'unset' if value is None else value}" for sweep, value in values.items())
            yield f"{path} ({', '.join(held)})"


def _alternatives(several: Sequence[SweepResults]) -> Iterator[str]:
    """Labels of compare axes that patch a recipe otherwise in another sweep."""
    patches: dict[tuple[str, str], dict[int, set[str]]] = {}
    for one in several:
        for axis, groups in (one.spec.get("compare") or {}).items():
            for choice in (choice for group in groups for choice in group["choices"]):
                held = patches.setdefault((axis, choice["label"]), {})
                held.setdefault(one.sweep, set()).add(repr(sorted(choice["patch"].items())))
    for (axis, label), held in patches.items():
        if len({frozenset(one) for one in held.values()}) > 1:
            yield f"what {axis} {label} sets"


MOST: Final = 10
"""The most sweeps that a table is made of."""
_MOST_NAMED: Final = 12

_Key = tuple[tuple[str, str], ...]
OfCell = TypeVar("OfCell", Candidate, TrialResult)


@dataclass(frozen=True, slots=True)
class Merged:
    """Several sweeps merged into one, whose table shows the cells of all."""

    results: SweepResults
    origins: Mapping[int, Origin]  # by cell
    numbers: Mapping[int, Mapping[int, int]]  # by cell, by sweep: the number of that cell in each sweep that has it
    axes: Sequence[str]  # whose labels tell its cells apart


def merged(several: Sequence[SweepResults], name: str, catalog: Catalog) -> Table:
    """The table `name` of the first sweep's spec, filled with the cells of all given sweeps.

    Where several have a cell the first named one's numbers stand, and a note says so. ConflictError where they
    select by different metrics or splits, NotFoundError where the first has no such table.
    """
    check(several)
    rules = {one.sweep: selection(one.spec) for one in several}
    if len({(one.metric, one.split) for one in rules.values()}) > 1:
        selections = "; ".join(f"sweep {sweep} by {one.metric} on {one.split}" for sweep, one in rules.items())
        raise ConflictError(
            f"the sweeps select differently ({selections}), so that one table cannot compare their numbers"
        )
    merged = merge(several, name, [one.sweep for one in several])
    built = _built(merged.results, name, catalog)
    words = [_sources(several, merged, built.layout, Names(catalog, built.layout.labels, built.layout.titles))]
    if common := sum(len(held) > 1 for held in merged.numbers.values()):
        cells = "1 cell that several sweeps have" if common == 1 else f"{common} cells that several sweeps have"
        words.append(f"In {cells} the first of the sweeps {', '.join(str(one.sweep) for one in several)} stands.")
    notes = built.words.with_notes(*words, _disagreement(several, merged.axes))
    return replace(built, words=notes, origins=merged.origins)


def check(several: Sequence[SweepResults]) -> None:
    """Checks that the sweeps to compare are different and few; otherwise raises ConflictError."""
    ids = [one.sweep for one in several]
    if not 2 <= len(ids) <= MOST or len(set(ids)) != len(ids):
        raise ConflictError(
            f"a comparison needs 2 to {MOST} different sweeps, found {', '.join(map(str, ids)) or 'none'}"
        )


def merge(several: Sequence[SweepResults], name: str, preferred: Sequence[int]) -> Merged:
    """Merges sweeps: all their cells in order of first occurrence, each from the first of `preferred` that has it.

    The layout of the table `name`, and what is selected by, are those of the first of `several`.
    """
    first = several[0]
    layout = layout_of(first.spec, name)
    axes = _axes(several, (*layout.rows, *layout.columns))
    places: dict[_Key, dict[int, int]] = {}
    for source in several:
        for cell in source.cells:
            key = tuple(_labels(source, cell, axes).items())
            places.setdefault(key, {})[source.sweep] = cell.index
    by_sweep = {one.sweep: one for one in several}
    cells, origins = [], {}
    for number, (key, held) in enumerate(places.items()):
        chosen = next(sweep for sweep in preferred if sweep in held)
        cells.append(Cell(number, dict(key)))
        origins[number] = Origin(chosen, held[chosen])
    numbers = {origin: number for number, origin in origins.items()}
    varied = {role: _together(several, role) for role in ("compare", "tune", "repeat")}
    unended = (one.state for one in several if one.state not in SWEEP_ENDED)
    results = SweepResults(
        sweep=first.sweep,
        name=" + ".join(f"{one.name} #{one.sweep}" for one in several),
        state=next(unended, first.state),
        spec={**first.spec, "recipe": shared([one.spec.get("recipe") or {} for one in several]), **varied},
        cells=tuple(cells),
        candidates=tuple(one for sweep in by_sweep.values() for one in _numbered(sweep, sweep.candidates, numbers)),
        trials=tuple(one for sweep in by_sweep.values() for one in _numbered(sweep, sweep.trials, numbers)),
        queries=first.queries,
    )
    return Merged(results, origins, dict(enumerate(places.values())), axes)


def few(found: Sequence[str], between: str = " | ") -> str:
    """The first few texts joined by `between`, and the number of further texts."""
    more = [f"{len(found) - _MOST_NAMED} more"] if len(found) > _MOST_NAMED else []
    return between.join([*found[:_MOST_NAMED], *more])


def _axes(several: Sequence[SweepResults], named: Sequence[str]) -> list[str]:
    """The axes that tell cells apart: those that a sweep compares, and those of the layout that are fixed otherwise."""
    compared = list(dict.fromkeys(axis for one in several for cell in one.cells for axis in cell.labels))
    fixed = [axis for axis in named if len({fixed_label(one.spec, axis) for one in several}) > 1]
    return list(dict.fromkeys((*compared, *fixed)))


def _labels(results: SweepResults, cell: Cell, axes: Sequence[str]) -> Labels:
    """The labels of a cell over all axes; an axis that its sweep does not compare has the value of the base recipe."""
    return {axis: label for axis in axes if (label := label_at(results.spec, cell.labels, axis))}


def _together(several: Sequence[SweepResults], role: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in reversed(several):
        found = {**found, **(one.spec.get(role) or {})}
    return found


def _numbered(results: SweepResults, found: Sequence[OfCell], numbers: Mapping[Origin, int]) -> Iterator[OfCell]:
    """The candidates or trials of a sweep whose cells are taken, under the cells' new numbers."""
    for one in found:
        number = numbers.get(Origin(results.sweep, one.cell))
        if number is not None:
            yield replace(one, cell=number)


def _sources(several: Sequence[SweepResults], merged: Merged, layout: TableSpec, names: Names) -> str:
    """Which rows are from which sweep, else which columns, else which cells."""
    placement = placed(merged.results, layout)
    for what, axes, side in (("rows", placement.row_axes, 0), ("columns", placement.column_axes, 1)):
        whose: dict[tuple[str, ...], set[int]] = {}
        for points, cell in placement.cells.items():
            whose.setdefault(points[side], set()).add(merged.origins[cell.index].sweep)
        if len(whose) > 1 and all(len(found) == 1 for found in whose.values()):
            return _listed(several, what, [(names.point(axes, point), sweep) for point, (sweep,) in whose.items()])
    texts = [[names.label(axis, label) for axis, label in cell.labels.items()] for cell in merged.results.cells]
    return _listed(several, "cells", [(text, merged.origins[at].sweep) for at, text in enumerate(texts)])


def _listed(several: Sequence[SweepResults], what: str, found: Sequence[tuple[Sequence[str], int]]) -> str:
    parts = []
    for one in several:
        named = [" / ".join(filter(None, texts)) or "the only one" for texts, sweep in found if sweep == one.sweep]
        parts.append(f"sweep {one.sweep} ({one.name}): {few(named, ', ') or 'none'}")
    return f"From which sweep the {what} are: {'; '.join(parts)}."


_DIFFERENCE = "Δ"
OTHER = "other:"
"""What stands before the name of the other sweep's column."""


def contrasted(own: SweepResults, other: SweepResults, name: str, catalog: Catalog) -> Table:
    """The table `name` of the first sweep's spec with three columns for each metric: both sweeps and their difference.

    Cells are matched by labels. Each sweep's candidates are selected by its own rule; where these differ a note
    says so. NotFoundError where the first has no such table.
    """
    several = (own, other)
    check(several)
    mine = _half(several, own, name, catalog)
    theirs = _half(several, other, name, catalog)
    offset = len(mine.merged.results.cells)
    panels = tuple(
        _side_by_side(*pair, mine.table.layout.missing, (mine, theirs), offset)
        for pair in zip(mine.table.panels, theirs.table.panels, strict=True)
    )
    summaries = {number: one for number, one in mine.table.summaries.items() if mine.has(number)}
    summaries |= {
        number + offset: replace(one, cell=number + offset)
        for number, one in theirs.table.summaries.items()
        if theirs.has(number)
    }
    origins = {number: mine.origin(number) for number in mine.merged.origins if mine.has(number)}
    origins |= {number + offset: theirs.origin(number) for number in theirs.merged.origins if theirs.has(number)}
    aged = theirs.table.aged if theirs.table.aged != mine.table.aged else ""
    aged = f"Of sweep {other.sweep}: {aged}" if aged else ""
    words = mine.table.words.with_notes(aged, *_words(several, mine.merged))
    return replace(mine.table, panels=panels, summaries=summaries, origins=origins, words=words)


@dataclass(frozen=True, slots=True)
class _Half:
    """The cells of both sweeps in one table, with the numbers that one of the sweeps has."""

    sweep: int
    merged: Merged
    table: Table

    def has(self, cell: int) -> bool:
        """Whether the sweep has that cell."""
        return self.sweep in self.merged.numbers[cell]

    def origin(self, cell: int) -> Origin:
        """The cell in its sweep."""
        return Origin(self.sweep, self.merged.numbers[cell][self.sweep])


def _half(several: Sequence[SweepResults], whose: SweepResults, name: str, catalog: Catalog) -> _Half:
    others = [one.sweep for one in several if one.sweep != whose.sweep]
    merged = merge(several, name, [whose.sweep, *others])
    # Nothing is bold, and no word stands over several columns: between them there are others now.
    form: dict[str, Any] = {
        "bold": "none",
        "diverged": "diverged",
        "against": None,
        "selections": [],
        "selection_gap": False,
    }
    results = replace(merged.results, spec={**merged.results.spec, "select": whose.spec.get("select")})
    return _Half(whose.sweep, merged, _built(results, name, catalog, **form))


def _built(results: SweepResults, name: str, catalog: Catalog, **form: Any) -> Table:
    """The table of own numbers alone, with changes to its layout."""
    tables = results.spec["tables"]
    layout = {**tables[name], "published": None, "quoted": [], "imported": [], **form}
    return build(replace(results, spec={**results.spec, "tables": {**tables, name: layout}}), name, catalog)


def _side_by_side(mine: Panel, theirs: Panel, missing: str, halves: tuple[_Half, _Half], offset: int) -> Panel:
    own, other = halves
    columns = [_columns(*pair, own.sweep, other.sweep) for pair in zip(mine.columns, theirs.columns, strict=True)]
    rows = []
    for row, twin_row in zip(mine.rows, theirs.rows, strict=True):
        cells: list[TableCell] = []
        for column, cell, twin_cell in zip(mine.columns, row.cells, twin_row.cells, strict=True):
            left, right = _kept(cell, own, missing, 0), _kept(twin_cell, other, missing, offset)
            cells += [left, right]
            if column.kind == "metric":
                between = _difference(left, right, column, missing)
                lacks = [] if cell.cell is None else [half.sweep for half in halves if not half.has(cell.cell)]
                if lacks:
                    place = right.cell if left.cell is None else left.cell
                    between = replace(between, cell=place, lone=True, note=f"no partner: not in sweep {lacks[0]}")
                cells.append(between)
        rows.append(cells)
    return split(mine, columns, rows)


def _columns(column: Column, twin: Column, own: int, other: int) -> list[Column]:
    first = replace(column, title=f"{column.title} #{own}")
    second = replace(twin, name=f"{OTHER}{twin.name}", title=f"#{other}")
    if column.kind != "metric":
        return [first, second]
    name = f"difference:{column.name}"
    return [
        first,
        second,
        replace(column, name=name, title=_DIFFERENCE, signed=True, better="none", kind="difference"),
    ]


def _kept(cell: TableCell, half: _Half, missing: str, offset: int) -> TableCell:
    """A cell of one sweep, empty where that sweep has no such cell."""
    if cell.cell is None:
        return replace(cell, span=1)
    if not half.has(cell.cell):
        return TableCell(missing, note=f"not in sweep {half.sweep}")
    return replace(cell, span=1, cell=cell.cell + offset)


def _difference(left: TableCell, right: TableCell, column: Column, missing: str) -> TableCell:
    """Own minus other, from unrounded means."""
    own, other = left.statistic, right.statistic
    if own is None or other is None:
        return TableCell(missing, cell=left.cell)
    found = Statistic(own.mean - other.mean, None, min(own.n, other.n))
    text = printed(found.mean, column.unit, column.decimals, signed=True)
    mark = left.mark or right.mark
    return TableCell(text, mark=mark, note="own - other, from unrounded means", statistic=found, cell=left.cell)


def _words(several: tuple[SweepResults, SweepResults], merged: Merged) -> list[str]:
    own, other = several
    sentences = [
        f"Columns headed #{own.sweep} are of sweep {own.sweep} ({own.name}), those headed #{other.sweep} of sweep "
        f"{other.sweep} ({other.name}); {_DIFFERENCE} is the first minus the second, from unrounded means.",
        *_alone(several, merged),
    ]
    rules = [f"{rule.metric} on {rule.split}" for rule in (selection(one.spec) for one in several)]
    if rules[0] != rules[1]:
        sentences.append(f"The sweeps SELECT DIFFERENTLY: {own.sweep} by {rules[0]}, {other.sweep} by {rules[1]}.")
    return [*sentences, _disagreement(several, merged.axes)]


def _alone(several: Sequence[SweepResults], merged: Merged) -> list[str]:
    """Which cells found no partner, by their labels."""
    labels = {cell.index: ", ".join(f"{axis}={one}" for axis, one in cell.labels.items()) or "the only one"
              for cell in merged.results.cells}  # fmt: skip
    lone = {
        one.sweep: [labels[at] for at, held in merged.numbers.items() if list(held) == [one.sweep]] for one in several
    }
    count = sum(map(len, lone.values()))
    if not count:
        return []
    whose = "; ".join(f"only in sweep {sweep}: {few(found)}" for sweep, found in lone.items() if found)
    return [f"{count} of {len(merged.numbers)} cells are in only one of them and have no partner ({whose})."]
