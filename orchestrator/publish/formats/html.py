"""HTML: a figure with one table a panel, without styles; classes say what is what."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Final

from orchestrator.publish.labels import one_line
from orchestrator.publish.tables.table_data import DOUBT_SIGN, PARTIAL_SIGN, Heading, Panel, Table, TableCell, TableRow
from orchestrator.views.runs import NO_SWEEP

media_type = "text/html; charset=utf-8"
suffix = ".html"

MOST_ROOM: Final = 8
"""The widest of the classes `room-1`, `room-2` ...: for how many signs a column leaves room behind its numbers."""


def render(table: Table) -> bytes:
    """Writes a table as an HTML fragment in ASCII with character references, so that any encoding reads it alike."""
    sweep = "" if table.sweep == NO_SWEEP else f' data-sweep="{table.sweep}"'
    lines = [f'<figure class="metricsweep-table"{sweep} data-table="{_text(table.name)}">']
    for panel in table.panels:
        lines += _panel(panel, table)
    lines += ["<figcaption>", f'<p class="caption">{_text(table.words.caption)}</p>']
    if table.legend:
        entries = (f"<dt>{_text(one.symbol)}</dt><dd>{_text(one.meaning)}</dd>" for one in table.legend)
        lines.append(f'<dl class="legend">{"".join(entries)}</dl>')
    lines += [f'<p class="note">{_text(note)}</p>' for note in table.words.below]
    if table.words.folded:
        folded = "".join(f"<p>{_text(one)}</p>" for one in table.words.folded)
        lines.append(f'<details class="note"><summary>How the numbers were made</summary>{folded}</details>')
    lines += ["</figcaption>", "</figure>"]
    return ("\n".join(lines) + "\n").encode("ascii", "xmlcharrefreplace")


def _text(text: str) -> str:
    return escape(one_line(text))


def _panel(panel: Panel, table: Table) -> Iterator[str]:
    yield "<table>"
    yield "<thead>"
    deep = len(panel.groups) + panel.titled
    corner = (f'<th scope="col" rowspan="{deep}">{_text(title)}</th>' for title in table.stub)
    levels = [
        [f'<th scope="colgroup" colspan="{heading.span}">{_text(heading.text)}</th>' for heading in level]
        for level in panel.groups
    ]
    if panel.titled:
        keys = (f'class="{column.kind}" title="{_text(column.key or column.name)}"' for column in panel.columns)
        titles = (_text(column.title) for column in panel.columns)
        levels.append([f'<th scope="col" {key}>{title}</th>' for key, title in zip(keys, titles, strict=True)])
    for n, level in enumerate(levels):
        yield f"<tr>{''.join((*corner, *level) if n == 0 else level)}</tr>"
    yield "</thead>"
    rooms = [max((len(_signs(row.cells[c])) for row in panel.rows), default=0) for c in range(len(panel.columns))]
    for block in _blocks(panel.rows):
        yield "<tbody>"
        for row in block:
            cells = (_cell(cell, table, room) for cell, room in zip(row.cells, rooms, strict=True) if cell.span)
            ruled = row.rule is not None and None in row.headings
            kinds = {"quoted": row.quoted, "imported": row.imported is not None, "ruled": ruled}
            kind = " ".join(name for name, given in kinds.items() if given)
            opened = f'<tr class="{kind}">' if kind else "<tr>"
            yield f"{opened}{''.join((*_row_headings(row.headings), *cells))}</tr>"
        yield "</tbody>"
    yield "</table>"


def _blocks(rows: Sequence[TableRow]) -> Iterator[list[TableRow]]:
    """The rows between two rules: a body of the table each, which no heading spans beyond (HTML would cut it off)."""
    blocks = accumulate(row.rule is not None and None not in row.headings for row in rows)
    for _, members in groupby(zip(blocks, rows, strict=True), itemgetter(0)):
        yield [row for _, row in members]


def _row_headings(headings: Sequence[Heading | None]) -> Iterator[str]:
    for heading in headings:
        if heading is not None:
            scope = f'"rowgroup" rowspan="{heading.span}"' if heading.span > 1 else '"row"'
            yield f"<th scope={scope}>{_text(heading.text)}</th>"


def _signs(cell: TableCell) -> str:
    """What stands small behind a cell's number or word."""
    star = PARTIAL_SIGN if cell.mark == "partial" else ""
    return star + (DOUBT_SIGN if cell.doubt else "") + cell.after if cell.numeric else star


def _cell(cell: TableCell, table: Table, width: int) -> str:
    classes = (("value", cell.numeric), ("best", cell.bold), (cell.mark, cell.mark), (cell.shade, cell.shade))
    names = [name for name, given in classes if given]
    attributes = f' class="{" ".join(str(name) for name in names)}"' if names else ""
    if cell.span > 1:
        attributes += f' colspan="{cell.span}"'
    if cell.cell is not None:
        attributes += f' data-cell="{cell.cell}"'
    if note := "; ".join(filter(None, (cell.note, cell.mixed, cell.doubt))):
        attributes += f' title="{_text(note)}"'
    content = _content(cell, width)
    if table.address is not None and cell.cell is not None and content:
        sweep, number = table.origin(cell.cell)
        content = f'<a href="{escape(table.address)}/sweeps/{sweep}/cells/{number}">{content}</a>'
    return f"<td{attributes}>{content}</td>"


def _content(cell: TableCell, width: int) -> str:
    """The number or word; signs have as much room in each cell of a column, so that its numbers stay in line."""
    star = f"<sup>{PARTIAL_SIGN}</sup>" if cell.mark == "partial" else ""
    text = _text(cell.text)
    if not cell.numeric:
        return text + star
    mean = text.replace("-", "−")
    shown = f"<strong>{mean}</strong>" if cell.bold else mean
    spread = f'<span class="std">±{_text(cell.std)}</span>' if cell.std else ""
    signs = star
    if cell.doubt:
        signs += f'<sup class="doubt">{DOUBT_SIGN}<span class="unseen"> {_text(cell.doubt)}</span></sup>'
    if cell.after:
        signs += f'<sup class="runs">{_text(cell.after)}</sup>'
    if width:
        signs = f'<span class="signs room-{min(width, MOST_ROOM)}">{signs}</span>'
    return shown + spread + signs + _judgement(cell)


def _judgement(cell: TableCell) -> str:
    """Whether a cell is better than its baseline, or how an imported number compares with an own number, in a word."""
    word: str
    if cell.verdict is not None:
        word, sentence = cell.verdict.word, cell.verdict_summary
    elif cell.imported is not None and cell.imported.test is not None:
        word, sentence = cell.imported.test.word, cell.imported.test.summary
    else:
        return ""
    return f' <span class="verdict {word.replace(" ", "-")}" title="{_text(sentence)}">{word}</span>'
