"""One table of the cells of several sweeps: merged, or the difference of two."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestrator.publish.aggregate import selection
from orchestrator.publish.labels import Names
from orchestrator.publish.tables.build import build_own
from orchestrator.publish.tables.layout import fixed_label, parse, place
from orchestrator.publish.tables.table_data import Column, Heading, Origin, Panel, Table, TableCell
from orchestrator.spec.axes import shared
from orchestrator.spec.layouts import TableSpec
from orchestrator.views.errors import ConflictError
from orchestrator.views.runs import Candidate, Cell, Labels, Statistic, SweepOutcomes, TrialOutcome
from orchestrator.views.states import SWEEP_ENDED
from orchestrator.views.tables import printed
from workers.catalog import Catalog
from workers.contract import Select

_MOST: Final = 12
"""Differences that are named."""
_UNTOLD: Final = ("seed", "select")  # seeds are averaged over; what is selected by is said elsewhere


def disagreement(several: Sequence[SweepOutcomes], axes: Collection[str]) -> str:
    """One sentence on recipes, alternatives of the same label, and rules; "" where they agree.

    `axes` are those whose labels tell the cells apart.
    """
    found = [*_recipes(several, axes), *_alternatives(several), *_rules(several)]
    if not found:
        return ""
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"The sweeps also differ in {'; '.join(found[:_MOST])}{more}."


def _recipes(several: Sequence[SweepOutcomes], axes: Collection[str]) -> Iterator[str]:
    leaves = {one.sweep: dict(_leaves(one.spec.get("recipe") or {})) for one in several}
    for path in dict.fromkeys(path for found in leaves.values() for path in found):
        if any(path == axis or path.startswith(f"{axis}.") for axis in (*axes, *_UNTOLD)):
            continue
        values = {sweep: found.get(path) for sweep, found in leaves.items()}
        if len({repr(value) for value in values.values()}) > 1:
            yield f"{path} ({', '.join(f'{sweep}: {_said(value)}' for sweep, value in values.items())})"


def _alternatives(several: Sequence[SweepOutcomes]) -> Iterator[str]:
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


def _rules(several: Sequence[SweepOutcomes]) -> Iterator[str]:
    if len({repr(one.spec.get("rules") or []) for one in several}) > 1:
        yield "their rules"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a recipe by its path; a part's name stands at the part."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _leaves(below, path if key == "name" and path else f"{path}.{key}".lstrip("."))
    else:
        yield path, value


def _said(value: Any) -> str:
    return "unset" if value is None else str(value)


MOST: Final = 10
"""Sweeps that one table is made of."""
_MOST_NAMED: Final = 12

_Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """One sweep made of several."""

    outcomes: SweepOutcomes
    origins: Mapping[int, Origin]  # by cell
    held: Mapping[int, Mapping[int, int]]  # by cell, by sweep: the number of that cell in each sweep that has it
    axes: Sequence[str]  # whose labels tell its cells apart


def merged(several: Sequence[SweepOutcomes], name: str, catalog: Catalog) -> Table:
    """The table `name` of the first sweep's spec with the cells of all of them.

    Where several have a cell the first named one's numbers stand, and the caption says so. ConflictError where they
    select by different metrics or splits, NotFoundError where the first has no such table.
    """
    check(several)
    rules = {one.sweep: selection(one.spec) for one in several}
    if len({(one.metric, one.split) for one in rules.values()}) > 1:
        said = "; ".join(f"sweep {sweep} by {one.metric} on {one.split}" for sweep, one in rules.items())
        raise ConflictError(
            f"the sweeps select differently ({said}), so that their numbers do not compare in one table"
        )
    merged = merge(several, name, [one.sweep for one in several])
    built = build_own(merged.outcomes, name, catalog)
    names = Names(catalog, parse(merged.outcomes.spec, name).labels, parse(merged.outcomes.spec, name).titles)
    words = (*_sources(several, merged, name, names), *_clashes(several, merged), disagreement(several, merged.axes))
    return replace(built, caption=" ".join(one for one in (built.caption, *words) if one), origins=merged.origins)


def check(several: Sequence[SweepOutcomes]) -> None:
    """Raise ConflictError unless these are a few different sweeps."""
    ids = [one.sweep for one in several]
    if not 2 <= len(ids) <= MOST or len(set(ids)) != len(ids):
        raise ConflictError(
            f"a comparison needs 2 to {MOST} different sweeps, not {', '.join(map(str, ids)) or 'none'}"
        )


def merge(several: Sequence[SweepOutcomes], name: str, preferred: Sequence[int]) -> Merged:
    """The cells of all sweeps in the order of their first occurrence, each from the first of `preferred` that has it.

    The layout of the table `name`, and what is selected by, are those of the first of `several`.
    """
    first = several[0]
    layout = parse(first.spec, name)
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
    outcomes = SweepOutcomes(
        sweep=first.sweep,
        name=" + ".join(f"{one.name} #{one.sweep}" for one in several),
        state=next(unended, first.state),
        spec={**first.spec, "recipe": shared([one.spec.get("recipe") or {} for one in several]), **varied},
        cells=tuple(cells),
        candidates=tuple(one for sweep in by_sweep.values() for one in _candidates(sweep, numbers)),
        trials=tuple(one for sweep in by_sweep.values() for one in _trials(sweep, numbers)),
        queries=first.queries,
    )
    return Merged(outcomes, origins, dict(enumerate(places.values())), axes)


def rule_of(select: Select) -> str:
    """What is selected by, in words."""
    return f"{select.metric} on {select.split}"


def few(found: Sequence[str], between: str = " | ") -> str:
    """The first of some texts, and how many more there are."""
    more = [f"{len(found) - _MOST_NAMED} more"] if len(found) > _MOST_NAMED else []
    return between.join([*found[:_MOST_NAMED], *more])


def _axes(several: Sequence[SweepOutcomes], named: Sequence[str]) -> list[str]:
    """The axes that tell cells apart: those that a sweep compares, and those of the layout that are fixed otherwise."""
    compared = list(dict.fromkeys(axis for one in several for cell in one.cells for axis in cell.labels))
    fixed = [axis for axis in named if len({fixed_label(one.spec, axis) for one in several}) > 1]
    return list(dict.fromkeys((*compared, *fixed)))


def _labels(outcomes: SweepOutcomes, cell: Cell, axes: Sequence[str]) -> Labels:
    """The labels of a cell over all axes: one that its sweep does not compare has the value of the base recipe."""
    varied = outcomes.spec.get("compare") or {}
    found = {axis: cell.labels.get(axis, "" if axis in varied else fixed_label(outcomes.spec, axis)) for axis in axes}
    return {axis: label for axis, label in found.items() if label}


def _together(several: Sequence[SweepOutcomes], role: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in reversed(several):
        found = {**found, **(one.spec.get(role) or {})}
    return found


def _candidates(outcomes: SweepOutcomes, numbers: Mapping[Origin, int]) -> Iterator[Candidate]:
    for one in outcomes.candidates:
        number = numbers.get(Origin(outcomes.sweep, one.cell))
        if number is not None:
            yield replace(one, cell=number)


def _trials(outcomes: SweepOutcomes, numbers: Mapping[Origin, int]) -> Iterator[TrialOutcome]:
    for one in outcomes.trials:
        number = numbers.get(Origin(outcomes.sweep, one.cell))
        if number is not None:
            yield replace(one, cell=number)


def _sources(several: Sequence[SweepOutcomes], merged: Merged, name: str, names: Names) -> Iterator[str]:
    """Which rows are from which sweep, else which columns, else which cells."""
    placed = place(merged.outcomes, parse(merged.outcomes.spec, name))
    for what, axes, side in (("rows", placed.row_axes, 0), ("columns", placed.column_axes, 1)):
        whose: dict[tuple[str, ...], set[int]] = {}
        for points, cell in placed.cells.items():
            whose.setdefault(points[side], set()).add(merged.origins[cell.index].sweep)
        if len(whose) > 1 and all(len(found) == 1 for found in whose.values()):
            texts = {point: _point(names.point(axes, point)) for point in whose}
            yield _listed(
                several, {s: [texts[p] for p, found in whose.items() if s in found] for s in _ids(several)}, what
            )
            return
    cells = {cell.index: _point([names.label(axis, label) for axis, label in cell.labels.items()])
             for cell in merged.outcomes.cells}  # fmt: skip
    listed = {
        s: [cells[number] for number, origin in merged.origins.items() if origin.sweep == s] for s in _ids(several)
    }
    yield _listed(several, listed, "cells")


def _listed(several: Sequence[SweepOutcomes], found: Mapping[int, Sequence[str]], what: str) -> str:
    said = []
    for one in several:
        said.append(f"sweep {one.sweep} ({one.name}): {few(found[one.sweep], ', ') or 'none'}")
    return f"From which sweep the {what} are: {'; '.join(said)}."


def _clashes(several: Sequence[SweepOutcomes], merged: Merged) -> Iterator[str]:
    shared = sum(len(held) > 1 for held in merged.held.values())
    if shared:
        cells = "1 cell that several sweeps have" if shared == 1 else f"{shared} cells that several sweeps have"
        order = ", ".join(str(one.sweep) for one in several)
        yield f"In {cells} the first of the sweeps {order} stands."


def _ids(several: Sequence[SweepOutcomes]) -> list[int]:
    return [one.sweep for one in several]


def _point(texts: Sequence[str]) -> str:
    return " / ".join(text for text in texts if text) or "the only one"


DIFFERENCE = "Δ"
OTHER = "other:"
"""What stands before the name of the other sweep's column."""


def contrasted(own: SweepOutcomes, other: SweepOutcomes, name: str, catalog: Catalog) -> Table:
    """The table `name` of the first sweep's spec with three columns for each metric.

    Cells are matched by labels. Each sweep's candidates are selected by its own rule; where these differ the caption
    says so. NotFoundError where the first has no such table.
    """
    several = (own, other)
    check(several)
    layout = parse(own.spec, name)
    mine = _half(several, own, name, catalog)
    theirs = _half(several, other, name, catalog)
    offset = len(mine.merged.outcomes.cells)
    panels = tuple(
        _side_by_side(*pair, layout, (mine, theirs), offset)
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
    caption = " ".join(one for one in (mine.table.caption, aged, *_words(several, mine.merged)) if one)
    return replace(mine.table, panels=panels, summaries=summaries, origins=origins, caption=caption)


@dataclass(frozen=True, slots=True)
class _Half:
    """The cells of both sweeps in one table, with the numbers of one of them where it has them."""

    sweep: int
    merged: Merged
    table: Table

    def has(self, cell: int) -> bool:
        """Whether the sweep has that cell."""
        return self.sweep in self.merged.held[cell]

    def origin(self, cell: int) -> Origin:
        """The cell in its sweep."""
        return Origin(self.sweep, self.merged.held[cell][self.sweep])


def _half(several: Sequence[SweepOutcomes], whose: SweepOutcomes, name: str, catalog: Catalog) -> _Half:
    others = [one.sweep for one in several if one.sweep != whose.sweep]
    merged = merge(several, name, [whose.sweep, *others])
    spec = merged.outcomes.spec
    # Nothing is bold, and no word stands over several columns: between them there are others now.
    plain = {"bold": "none", "diverged": "diverged", "published": None, "against": None}
    layout = {**spec["tables"][name], **plain, "selections": [], "flattery": False}
    form = {**spec, "select": whose.spec.get("select"), "tables": {**spec["tables"], name: layout}}
    return _Half(whose.sweep, merged, build_own(replace(merged.outcomes, spec=form), name, catalog))


def _side_by_side(mine: Panel, theirs: Panel, layout: TableSpec, halves: tuple[_Half, _Half], offset: int) -> Panel:
    own, other = halves
    columns: list[Column] = []
    sizes = []
    for column, twin in zip(mine.columns, theirs.columns, strict=True):
        new = _columns(column, twin, own.sweep, other.sweep)
        columns += new
        sizes.append(len(new))
    rows = []
    for row, twin_row in zip(mine.rows, theirs.rows, strict=True):
        cells: list[TableCell] = []
        for column, cell, twin_cell in zip(mine.columns, row.cells, twin_row.cells, strict=True):
            left, right = _kept(cell, own, layout.missing, 0), _kept(twin_cell, other, layout.missing, offset)
            cells += [left, right]
            if column.kind == "metric":
                between = _difference(left, right, column, layout.missing)
                cells.append(_partnerless(between, left, right, halves) if _is_lone(cell, halves) else between)
        rows.append(replace(row, cells=tuple(cells)))
    return Panel(groups=_widened(mine.groups, sizes), columns=tuple(columns), rows=tuple(rows))


def _columns(column: Column, twin: Column, own: int, other: int) -> list[Column]:
    first = replace(column, title=f"{column.title} #{own}")
    second = replace(twin, name=f"{OTHER}{twin.name}", title=f"#{other}")
    if column.kind != "metric":
        return [first, second]
    between = replace(
        column, name=f"difference:{column.name}", title=DIFFERENCE, signed=True, better="none", kind="difference"
    )
    return [first, second, between]


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


def _is_lone(cell: TableCell, halves: tuple[_Half, _Half]) -> bool:
    """Whether one of the sweeps only has it."""
    return cell.cell is not None and not all(half.has(cell.cell) for half in halves)


def _partnerless(between: TableCell, left: TableCell, right: TableCell, halves: tuple[_Half, _Half]) -> TableCell:
    """In place of a difference: which sweep has no such cell."""
    lacks = halves[0] if left.cell is None else halves[1]
    cell = right.cell if left.cell is None else left.cell
    return replace(between, cell=cell, lone=True, note=f"no partner: not in sweep {lacks.sweep}")


def _widened(groups: Sequence[Sequence[Heading]], sizes: Sequence[int]) -> tuple[tuple[Heading, ...], ...]:
    found = []
    for level in groups:
        spans, first = [], 0
        for heading in level:
            spans.append(replace(heading, span=sum(sizes[first : first + heading.span])))
            first += heading.span
        found.append(tuple(spans))
    return tuple(found)


def _words(several: tuple[SweepOutcomes, SweepOutcomes], merged: Merged) -> list[str]:
    own, other = several
    said = [
        f"Columns headed #{own.sweep} are of sweep {own.sweep} ({own.name}), those headed #{other.sweep} of sweep "
        f"{other.sweep} ({other.name}); {DIFFERENCE} is the first minus the second, from unrounded means.",
        *_alone(several, merged),
    ]
    rules = [rule_of(selection(one.spec)) for one in several]
    if rules[0] != rules[1]:
        said.append(f"The sweeps SELECT DIFFERENTLY: {own.sweep} by {rules[0]}, {other.sweep} by {rules[1]}.")
    return [*said, disagreement(several, merged.axes)]


def _alone(several: Sequence[SweepOutcomes], merged: Merged) -> list[str]:
    """Which cells found no partner, by their labels."""
    labels = {cell.index: ", ".join(f"{axis}={one}" for axis, one in cell.labels.items()) or "the only one"
              for cell in merged.outcomes.cells}  # fmt: skip
    lone = {one.sweep: [labels[at] for at, held in merged.held.items() if list(held) == [one.sweep]] for one in several}
    count = sum(map(len, lone.values()))
    if not count:
        return []
    whose = "; ".join(f"only in sweep {sweep}: {few(found)}" for sweep, found in lone.items() if found)
    return [f"{count} of {len(merged.held)} cells are in only one of them and have no partner ({whose})."]
