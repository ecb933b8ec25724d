"""SVG: the table drawn with lines and text, in the fonts that every machine has or imitates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from orchestrator.publish.tables.entries import PARTIAL_SIGN
from orchestrator.publish.tables.letter_widths import width
from orchestrator.publish.tables.plain import one_line
from orchestrator.publish.tables.table_data import Column, Panel, Table, TableCell, TableRow

media_type = "image/svg+xml"
suffix = ".svg"

_SIZE, _SMALL, _PROSE = 14.0, 10.5, 12.5  # letters of the body, of deviations, of caption and notes
_LINE = 22.0  # from one row to the next
_GAP = 9.0  # on both sides of a column
_MARGIN = 24.0
_STAR = 7.0  # what the sign of a provisional number takes
_LEAST = 420.0  # so that a narrow table's caption does not become a pillar
_INK, _GREY = "#1a1a1a", "#5f5f5f"


@dataclass(slots=True)
class _Sheet:
    """What has been drawn, and how far down."""

    width: float
    y: float = _MARGIN - 8
    drawn: list[str] = field(default_factory=list)

    def write(
        self, text: str, x: float, y: float, *, size: float = _SIZE, anchor: str = "start", style: str = ""
    ) -> None:
        """Text with its baseline at y; `anchor` says which point of it x is."""
        shown = escape(one_line(text))
        if shown:
            self.drawn.append(
                f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}"{style}>{shown}</text>'
            )

    def rule(self, start: float, end: float, y: float, weight: float) -> None:
        """A horizontal line."""
        ends = f'x1="{start:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
        self.drawn.append(f'<line {ends} stroke="{_INK}" stroke-width="{weight:g}"/>')

    def prose(self, text: str) -> None:
        """Lines of running text, broken to the sheet's width."""
        for line in _broken(one_line(text), self.width - 2 * _MARGIN):
            self.y += 17
            self.write(line, _MARGIN, self.y, size=_PROSE, style=f' fill="{_GREY}"')


@dataclass(frozen=True, slots=True)
class _Track:
    """Where a column stands and where within it the numbers end and their deviations begin."""

    start: float
    end: float
    decimal: float

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2


@dataclass(frozen=True, slots=True)
class TableDrawing:
    """An SVG document and its size."""

    text: str
    width: int
    height: int


def render(table: Table) -> bytes:
    """The drawing in UTF-8."""
    return draw(table).text.encode()


def draw(table: Table) -> TableDrawing:
    """The table with its caption above and its notes below."""
    natural = [_tracks(panel, table.stub) for panel in table.panels]
    widest = max(panel[-1].end + _GAP for panel in natural)
    tracks = [
        _tracks(panel, table.stub, (widest - places[-1].end - _GAP) / len(panel.columns))
        for panel, places in zip(table.panels, natural, strict=True)
    ]
    sheet = _Sheet(max(widest + _MARGIN, _LEAST + 2 * _MARGIN))
    sheet.prose(table.caption)
    for panel, places in zip(table.panels, tracks, strict=True):
        _draw_panel(sheet, panel, table.stub, places)
    sheet.y += 4
    sheet.prose(" ".join((*(f"{one.symbol}: {one.meaning}." for one in table.legend), *table.notes)))
    wide, high = round(sheet.width), round(sheet.y + _MARGIN)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        f'font-family="Liberation Sans, Arial, Helvetica, sans-serif" fill="{_INK}">'
    )
    ground = f'<rect width="{wide}" height="{high}" fill="#ffffff"/>'
    return TableDrawing("\n".join((head, ground, *sheet.drawn, "</svg>\n")), wide, high)


def _tracks(panel: Panel, stub: Sequence[str], spare: float = 0.0) -> list[_Track]:
    """The columns from left to right, those of the row headings first, wide enough for the headings over them.

    `spare` is added to each column of the body, so that the panels of a table are equally wide.
    """
    sizes = []
    for s, title in enumerate(stub):
        sizes.append((max(width(text, _SIZE) for text in (title, *(row.texts[s] for row in panel.rows))), 0.0))
    sizes += [_size(column, [row.cells[c] for row in panel.rows]) for c, column in enumerate(panel.columns)]
    wider = [0.0] * len(stub) + [spare] * len(panel.columns)
    for level in panel.groups:
        first = len(stub)
        for heading in level:
            last = first + heading.span
            inside = sum(one for one, _ in sizes[first:last]) + 2 * _GAP * (heading.span - 1)
            missing = (width(heading.text, _SIZE) - inside) / heading.span
            wider[first:last] = [max(one, missing) for one in wider[first:last]]
            first = last
    tracks, x = [], _MARGIN + _GAP
    for (size, after), more in zip(sizes, wider, strict=True):
        numbers = x + more / 2 + size - after
        tracks.append(_Track(x, x + size + more, numbers))
        x += size + more + 2 * _GAP
    return tracks


def _size(column: Column, cells: Sequence[TableCell]) -> tuple[float, float]:
    """The width of a column, and how much of it lies right of the numbers' last digit when they are centred."""
    title = width(column.title, _SIZE)
    if column.wordy:
        return max((title, *(width(cell.text, _SIZE) for cell in cells))), 0.0
    values = [cell for cell in cells if cell.numeric]
    before = max((width(cell.text, _SIZE, bold=cell.bold) for cell in values), default=0.0)
    after = max((width(f"±{cell.std}", _SMALL) + 2 for cell in values if cell.std), default=0.0)
    after += _STAR if any(cell.mark == "partial" for cell in values) else 0.0
    after += max((width(cell.after, _SMALL) for cell in values), default=0.0)
    marks = (width(cell.text, _SIZE) / cell.span for cell in cells if not cell.numeric and cell.span)
    whole = max((title, before + after, *marks))
    return whole, after + (whole - before - after) / 2


def _draw_panel(sheet: _Sheet, panel: Panel, stub: Sequence[str], tracks: Sequence[_Track]) -> None:
    left, right = tracks[0].start - _GAP, tracks[-1].end + _GAP
    sheet.y += 14
    sheet.rule(left, right, sheet.y, 1.8)
    body = tracks[len(stub) :]
    for n, level in enumerate(panel.groups):
        sheet.y += _LINE
        first = 0
        for heading in level:
            start, end = body[first].start, body[first + heading.span - 1].end
            sheet.write(heading.text, (start + end) / 2, sheet.y - 6, anchor="middle")
            if heading.text and (panel.titled or n < len(panel.groups) - 1):
                sheet.rule(start - _GAP / 3, end + _GAP / 3, sheet.y, 0.8)
            first += heading.span
    if panel.titled:
        sheet.y += _LINE
    for title, track in zip(stub, tracks, strict=False):
        sheet.write(title, track.start, sheet.y - 6)
    for column, track in zip(panel.columns, body, strict=True):
        sheet.write(column.title, track.middle, sheet.y - 6, anchor="middle")
    sheet.y += 2
    sheet.rule(left, right, sheet.y, 1.1)
    for row in panel.rows:
        if row.rule is not None:
            sheet.y += 2
            sheet.rule(left if row.rule == 0 else tracks[row.rule].start, right, sheet.y, 0.6)
        _draw_row(sheet, row, tracks, len(stub))
    sheet.y += 4
    sheet.rule(left, right, sheet.y, 1.8)


def _draw_row(sheet: _Sheet, row: TableRow, tracks: Sequence[_Track], stub: int) -> None:
    sheet.y += _LINE
    for heading, track in zip(row.headings, tracks, strict=False):
        if heading is not None:
            sheet.write(heading.text, track.start, sheet.y - 6)
    body = tracks[stub:]
    for c, (cell, track) in enumerate(zip(row.cells, body, strict=True)):
        if cell.span > 1:
            _draw_word(sheet, cell, (track.start + body[c + cell.span - 1].end) / 2, sheet.y - 6)
        elif cell.span:
            _draw_cell(sheet, cell, track, sheet.y - 6)


def _draw_cell(sheet: _Sheet, cell: TableCell, track: _Track, y: float) -> None:
    if not cell.numeric:
        _draw_word(sheet, cell, track.middle, y)
        return
    weight = ' font-weight="bold"' if cell.bold else ""
    sheet.write(cell.text.replace("-", "−"), track.decimal, y, anchor="end", style=weight)
    x = track.decimal + 2
    if cell.std:
        sheet.write(f"±{cell.std}", x, y, size=_SMALL, style=f' fill="{_GREY}"')
        x += width(f"±{cell.std}", _SMALL)
    if cell.mark == "partial":
        sheet.write(PARTIAL_SIGN, x, y, style=f' fill="{_GREY}"')
        x += _STAR
    sheet.write(cell.after, x, y - 4, size=_SMALL, style=f' fill="{_GREY}"')


def _draw_word(sheet: _Sheet, cell: TableCell, x: float, y: float) -> None:
    """What stands in place of a number, centred on x."""
    style = f' fill="{_GREY}" font-style="italic"' if cell.mark in {"failed", "diverged", "pending"} else ""
    sheet.write(cell.text, x, y, anchor="middle", style=style)


def _broken(text: str, space: float) -> Iterator[str]:
    """Lines that fit; a word that is longer than a line is broken where the line ends."""
    line = ""
    for word in _pieces(text, space):
        longer = f"{line} {word}" if line else word
        if line and width(longer, _PROSE) > space:
            yield line
            longer = word
        line = longer
    if line:
        yield line


def _pieces(text: str, space: float) -> Iterator[str]:
    for word in text.split(" "):
        piece = ""
        for character in word if width(word, _PROSE) > space else ():
            if width(piece + character, _PROSE) > space:
                yield piece
                piece = ""
            piece += character
        yield piece or word
