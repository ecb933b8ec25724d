"""The headings of a panel: the texts beside its rows and over its columns, what each spans, and where rules stand."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from orchestrator.publish.labels import NO_LABEL, Fill, Names
from orchestrator.publish.tables.layout import Placement, Point, fixed_label
from orchestrator.publish.tables.table_data import PENDING, SETTLED, Column, Heading
from orchestrator.views.outcomes import CellSummary
from orchestrator.views.planned import Cell


def grouped(under: Sequence[Point], columns: Sequence[Column], said: Callable[[Column], str]) -> tuple[Heading, ...]:
    """A level of headings over columns, each under its point of the column axes: what is `said` of neighbours alike."""
    runs = groupby(zip(under, columns, strict=True), lambda pair: (pair[0], said(pair[1])))
    return tuple(Heading(text, len(list(same))) for (_, text), same in runs)


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside one row."""

    headings: tuple[Heading | None, ...]  # one a stub column; none where a heading above spans this row
    texts: tuple[str, ...]
    rule: int | None  # the stub column from which a rule stands above, between groups


@dataclass(frozen=True, slots=True)
class Headings:
    """Writes the headings of panels."""

    placement: Placement
    names: Names
    spec: Mapping[str, Any]
    summaries: Mapping[int, CellSummary]

    def stub(self) -> tuple[str, ...]:
        """The titles of the columns of row headings."""
        return tuple(self.names.title(axis) for axis in self.placement.row_axes if self.names.heads(axis))

    def over(self, points: Sequence[Point], rows: Iterable[Point]) -> tuple[tuple[Heading, ...], ...]:
        """One level of headings a column axis, over one column each of `points`.

        Neighbours that share their labels so far share a heading.
        """
        axes = self.placement.column_axes
        levels = [level for level, axis in enumerate(axes) if self.names.heads(axis)]
        beneath = list(rows)
        fills = {point: self._fill((row, point) for row in beneath) for point in points}
        texts = {point: self.names.point(axes, point, fill) for point, fill in fills.items()}
        headings = []
        for level in levels:
            runs = groupby((point[: level + 1], texts[point][level]) for point in points)
            headings.append(tuple(Heading(text, len(list(same))) for (_, text), same in runs))
        return tuple(headings)

    def beside(self, rows: Sequence[Point], columns: Sequence[Point]) -> list[Beside]:
        """What stands beside each of the rows of a panel with these columns."""
        axes = self.placement.row_axes
        levels = [level for level, axis in enumerate(axes) if self.names.heads(axis)]
        texts = [self._texts(row, columns, levels) for row in rows]
        # What a row shares with the one above: its labels up to a level, hidden ones before it too, and their texts.
        keys = [
            [(row[: level + 1], mine[: n + 1]) for n, level in enumerate(levels)]
            for row, mine in zip(rows, texts, strict=True)
        ]
        last = len(levels) - 1
        beside = []
        for at, mine in enumerate(texts):
            changed = next((n for n in range(last + 1) if not at or keys[at][n] != keys[at - 1][n]), last)
            headings = (
                Heading(mine[n], 1 if n == last else _run(keys[at:], n)) if n >= changed else None
                for n in range(last + 1)
            )
            ruled = at > 0 and changed < last and _parts_groups(keys, at, changed)
            beside.append(Beside(tuple(headings), mine, changed if ruled else None))
        return beside

    def _texts(self, row: Point, columns: Sequence[Point], levels: Sequence[int]) -> tuple[str, ...]:
        fill = self._fill((row, column) for column in columns)
        axes = self.placement.row_axes
        return tuple(self.names.label(axes[level], row[level], fill) for level in levels)

    def _fill(self, places: Iterable[tuple[Point, Point]]) -> Fill:
        """What a template's paths stand for among these places: what all their cells share, or each cell's own."""
        cells = [cell for place in places if (cell := self.placement.cells.get(place))]

        def fill(path: str) -> str:
            values = [text for cell in cells if (text := self._value(cell, path)) is not None]
            return (values[0] if len(set(values)) == 1 else "/".join(values)) if values else NO_LABEL

        return fill

    def _value(self, cell: Cell, path: str) -> str | None:
        """The label of a cell, or of its selected candidate, at a path; none where no axis of that name applies."""
        summary = self.summaries[cell.index]
        tuned = path in (self.spec.get("tune") or {})
        label = cell.labels.get(path, summary.labels.get(path))
        if label is None and tuned:
            if summary.candidate is not None:
                return None
            return NO_LABEL if summary.status in SETTLED else PENDING
        if label is None and path not in (self.spec.get("compare") or {}):
            label = fixed_label(self.spec, path) or None
        return None if label is None else self.names.label(path, label)


def _parts_groups(keys: Sequence[Sequence[Any]], at: int, level: int) -> bool:
    """Whether a group of several rows ends above a row or begins with it: single rows need no rule between them."""
    above = at > 1 and keys[at - 2][level] == keys[at - 1][level]
    return above or _run(keys[at:], level) > 1


def _run(keys: Sequence[Sequence[Any]], level: int) -> int:
    """How many rows, from the first on, share their labels and texts up to a level."""
    return next((n for n, one in enumerate(keys) if one[level] != keys[0][level]), len(keys))
