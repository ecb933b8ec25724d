"""Two sweeps' cells side by side: own number, the other's, and their signed difference."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.publish.select import selection
from orchestrator.publish.tables import merge
from orchestrator.publish.tables.disagreement import disagreement
from orchestrator.publish.tables.layout import parse
from orchestrator.publish.tables.merge import Merged
from orchestrator.publish.tables.table import build
from orchestrator.publish.tables.table_data import Column, Heading, Origin, Panel, Table, TableCell
from orchestrator.spec.table import TableSpec
from orchestrator.views.outcomes import Statistic, SweepOutcomes
from orchestrator.views.printing import printed
from workers.catalog import Catalog

DIFFERENCE = "Δ"
OTHER = "other:"
"""What stands before the name of the other sweep's column."""


def table(own: SweepOutcomes, other: SweepOutcomes, name: str, catalog: Catalog) -> Table:
    """The table `name` of the first sweep's spec with three columns for each metric.

    Cells are matched by labels. Each sweep's candidates are selected by its own rule; where these differ the caption
    says so. NotFoundError where the first has no such table.
    """
    several = (own, other)
    merge.check(several)
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
    merged = merge.merge(several, name, [whose.sweep, *others])
    spec = merged.outcomes.spec
    # Nothing is bold, and no word stands over several columns: between them there are others now.
    plain = {"bold": "none", "diverged": "diverged", "published": None, "against": None}
    layout = {**spec["tables"][name], **plain, "selections": [], "flattery": False}
    form = {**spec, "select": whose.spec.get("select"), "tables": {**spec["tables"], name: layout}}
    return _Half(whose.sweep, merged, build(replace(merged.outcomes, spec=form), name, catalog))


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
    rules = [merge.rule_of(selection(one.spec)) for one in several]
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
    whose = "; ".join(f"only in sweep {sweep}: {merge.few(found)}" for sweep, found in lone.items() if found)
    return [f"{count} of {len(merged.held)} cells are in only one of them and have no partner ({whose})."]
