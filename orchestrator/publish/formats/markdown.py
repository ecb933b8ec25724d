"""Markdown as GitHub reads it: one table a panel, column groups written into the titles."""

import re
import unicodedata
from collections.abc import Sequence

from orchestrator.publish.labels import one_line
from orchestrator.publish.tables.table_data import PARTIAL_SIGN, Panel, Table, TableCell

media_type = "text/markdown; charset=utf-8"
suffix = ".md"


def render(table: Table) -> bytes:
    """Writes a table as Markdown in UTF-8; columns are padded so that it also reads well as plain text."""
    blocks = [escape(table.words.caption)]
    for panel in table.panels:
        named = " / ".join(level[0].text for level in panel.groups if len(level) == 1 and level[0].text)
        # What spans all columns of the only panel is said by the caption.
        blocks += [f"**{escape(named)}**"] if named and len(table.panels) > 1 else []
        blocks.append(_panel(panel, table.stub))
    if table.legend:
        blocks.append(" ".join(f"{escape(one.symbol)}: {escape(one.meaning)}." for one in table.legend))
    blocks += [escape(note) for note in table.words.below]
    return ("\n\n".join(block.rstrip() for block in blocks) + "\n").encode()


def escape(text: str) -> str:
    """Escapes a text for Markdown, on one line, so that it is displayed literally.

    `_` within a word means nothing to it: without a sign before it a terminal shows the name as it is, too.
    """
    entities = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*{}\[\]#|~$]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", entities)


def _panel(panel: Panel, stub: Sequence[str]) -> str:
    # The headings above each column, without those that span all columns, and its title.
    groups = (level for level in panel.groups if len(level) > 1)
    levels = [[heading.text for heading in level for _ in range(heading.span)] for level in groups]
    above = zip(*levels, (column.title for column in panel.columns), strict=True)
    lines = [[*map(escape, stub), *(escape(" ".join(filter(None, texts))) for texts in above)]]
    lines += [[*(escape(text) for text in row.texts), *(_cell(cell) for cell in row.cells)] for row in panel.rows]
    return grid(lines, [True] * len(stub) + [column.wordy for column in panel.columns])


def grid(lines: Sequence[Sequence[str]], left: Sequence[bool]) -> str:
    """A Markdown table of escaped texts below their titles; each column is padded, and aligned `left` or right."""
    widths = [max(3, *(_columns_of(line[c]) for line in lines)) for c in range(len(left))]
    rule = ["-" * w if is_left else "-" * (w - 1) + ":" for w, is_left in zip(widths, left, strict=True)]
    return "\n".join(_line(line, widths, left) for line in (lines[0], rule, *lines[1:]))


def _cell(cell: TableCell) -> str:
    if not cell.span:
        return ""  # Markdown spans no columns: the word stands in the first of them
    star = escape(PARTIAL_SIGN) if cell.mark == "partial" else ""
    text = escape(cell.text)
    if not cell.numeric:
        return f"*{text}*" if cell.mark in {"failed", "diverged"} else text + star
    mean = text.replace("-", "−")
    return (f"**{mean}**" if cell.bold else mean) + (f" ± {cell.std}" if cell.std else "") + star + cell.after


def _line(cells: Sequence[str], widths: Sequence[int], left: Sequence[bool]) -> str:
    padded = []
    for cell, size, is_left in zip(cells, widths, left, strict=True):
        blanks = " " * (size - _columns_of(cell))
        padded.append(cell + blanks if is_left else blanks + cell)
    return f"| {' | '.join(padded)} |"


def _columns_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else not unicodedata.combining(one) for one in text)
