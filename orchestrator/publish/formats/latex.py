r"""LaTeX with booktabs: a table to \input into a paper, or a document of its own."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.publish.labels import escape, unicode_note, width
from orchestrator.publish.tables.cells import PARTIAL_SIGN
from orchestrator.publish.tables.table_data import Column, Heading, Panel, Table, TableCell, TableRow
from orchestrator.views.runs import NO_SWEEP

SEPARATION: Final = 4
"""Points on both sides of a column."""
_GROUP_GAP: Final = 14  # points between the outermost groups of columns


def tabular(panels: Sequence[Panel], stub: Sequence[str]) -> list[str]:
    """One tabular of all panels where these have the same columns, else one each."""
    frames = [_frame([panel], stub) for panel in panels]
    if len({(frame.sides, frame.gaps) for frame in frames}) == 1:
        return _tabular(panels, _frame(panels, stub))
    lines = ["  \\begin{tabular}{@{}c@{}}"]
    for panel, frame in zip(panels, frames, strict=True):
        lines += [*_tabular([panel], frame), "  \\\\[\\bigskipamount]"]
    return [*lines[:-1], "  \\end{tabular}"]


def natural_width(panels: Sequence[Panel], stub: Sequence[str], letters: float) -> float:
    """About how wide the widest panel is, in points, with letters of that size."""
    return max(_panel_width(panel, stub, letters) for panel in panels)


def _panel_width(panel: Panel, stub: Sequence[str], letters: float) -> float:
    total = 0.0
    for s, title in enumerate(stub):
        total += max((width(text, letters) for text in (title, *(row.texts[s] for row in panel.rows))), default=0)
    for c, column in enumerate(panel.columns):
        shown = [row.cells[c] for row in panel.rows if row.cells[c].span == 1]
        cells = (width(cell.text, letters) + width(cell.std or "", 7) + 6 + _room(cell.after) for cell in shown)
        total += max((width(column.title, letters), *cells))
    total += 2 * SEPARATION * (len(stub) + len(panel.columns))
    for level in panel.groups:
        # At worst no column has room to spare for the heading above it.
        total += sum(max(0.0, width(heading.text, letters) - 40 * heading.span) + _GROUP_GAP for heading in level)
    return total


@dataclass(frozen=True, slots=True)
class _Frame:
    """What the panels of one tabular share."""

    stub: tuple[str, ...]
    sides: tuple[str, ...]  # how each column of the body is set
    gaps: tuple[str, ...]  # what stands right of it
    std_widths: tuple[int, ...]  # how many characters its longest deviation has
    rooms: tuple[float, ...]  # points for what stands small behind its numbers
    fractions: tuple[str, ...]  # the point and decimals of the number that has most

    @property
    def columns(self) -> str:
        body = "".join(side + gap for side, gap in zip(self.sides, self.gaps, strict=True))
        return "l" * len(self.stub) + body

    @property
    def last(self) -> int:
        return len(self.stub) + len(self.sides)


def _frame(panels: Sequence[Panel], stub: Sequence[str]) -> _Frame:
    columns = range(len(panels[0].columns))
    return _Frame(
        stub=tuple(stub),
        sides=tuple("c" if column.wordy else "r" for column in panels[0].columns),
        gaps=_gaps(panels[0]),
        std_widths=tuple(max(_std_width(panel.rows, c) for panel in panels) for c in columns),
        rooms=tuple(max(_room_of(panel.rows, c) for panel in panels) for c in columns),
        fractions=tuple(max((_fraction_of(panel.rows, c) for panel in panels), key=len) for c in columns),
    )


def _tabular(panels: Sequence[Panel], frame: _Frame) -> list[str]:
    lines = [f"  \\begin{{tabular}}{{{frame.columns}}}"]
    for panel in panels:
        lines += ["    \\toprule", *_head(panel, frame), "    \\midrule"]
        for row in panel.rows:
            if row.rule is not None:
                under = f"\\cmidrule(l){{{row.rule + 1}-{frame.last}}}"
                lines.append("    \\midrule" if row.rule == 0 else f"    {under}")
            cells = (_cell(column, cell, frame, c) for c, (column, cell) in _cells(panel.columns, row))
            lines.append(_line([*_beside(row.headings), *cells]))
    return [*lines, "    \\bottomrule", "  \\end{tabular}"]


def _head(panel: Panel, frame: _Frame) -> list[str]:
    """The levels of headings; the titles of the row headings stand in the last line."""
    corner = [escape(title) for title in frame.stub]
    blank = [""] * len(corner)
    lines = []
    for n, level in enumerate(panel.groups):
        is_last = n == len(panel.groups) - 1 and not panel.titled
        lines += _group_level(level, corner if is_last else blank, frame.gaps, ruled=not is_last)
    if panel.titled:
        titles = zip(panel.columns, frame.gaps, strict=True)
        lines.append(_line([*corner, *(_centred(escape(column.title), gap) for column, gap in titles)]))
    return lines


def _gaps(panel: Panel) -> tuple[str, ...]:
    """What stands right of each column: more than the usual space between the outermost groups."""
    gaps = [""] * len(panel.columns)
    after = 0
    for heading in panel.groups[0][:-1] if panel.groups else ():
        after += heading.span
        gaps[after - 1] = f"@{{\\hspace{{{_GROUP_GAP}pt}}}}"
    return tuple(gaps)


def _line(cells: Sequence[str]) -> str:
    return "    " + " & ".join(cells) + r" \\"


def _centred(text: str, gap: str, span: int = 1) -> str:
    return f"\\multicolumn{{{span}}}{{c{gap}}}{{{text}}}"


def _group_level(level: Sequence[Heading], corner: Sequence[str], gaps: Sequence[str], *, ruled: bool) -> list[str]:
    """A level of headings, with a rule under each that says something."""
    headings, rules, first = [*corner], [], 0
    for heading in level:
        gap = gaps[first + heading.span - 1]
        trim = f"lr{{{_GROUP_GAP}pt}}" if gap else "lr"
        at = len(corner) + first + 1
        if ruled and heading.text:
            rules.append(f"\\cmidrule({trim}){{{at}-{at + heading.span - 1}}}")
        headings.append(_centred(escape(heading.text), gap, heading.span))
        first += heading.span
    return [_line(headings), *(["    " + " ".join(rules)] if rules else [])]


def _beside(headings: Sequence[Heading | None]) -> list[str]:
    """The headings of a row; one of several rows stands in their middle, or above rows that say more than the first."""
    first = [
        heading is not None and not any(one and one.text for one in headings[n + 1 :])
        for n, heading in enumerate(headings)
    ]
    return [_multirow(heading, top=top) for heading, top in zip(headings, first, strict=True)]


def _multirow(heading: Heading | None, *, top: bool) -> str:
    if heading is None:
        return ""
    text = escape(heading.text)
    return text if heading.span == 1 or top else f"\\multirow{{{heading.span}}}{{*}}{{{text}}}"


def _cells(columns: Sequence[Column], row: TableRow) -> list[tuple[int, tuple[Column, TableCell]]]:
    """Each cell that is not under another one's text, with its column and where that stands."""
    return [one for one in enumerate(zip(columns, row.cells, strict=True)) if one[1][1].span]


def _cell(column: Column, cell: TableCell, frame: _Frame, c: int) -> str:
    text, room = escape(cell.text), frame.rooms[c]
    if column.wordy:
        return text  # its column is centred already
    is_partial = cell.mark == "partial"
    star = f"\\rlap{{$^{PARTIAL_SIGN}$}}" if is_partial else ""
    if not cell.numeric:  # a word in place of a number
        words = f"\\textit{{{text}}}" if cell.mark in {"failed", "diverged"} else text + star
        return _centred(words, frame.gaps[c + cell.span - 1], cell.span)
    mean = text.replace("-", "$-$").replace("+", "$+$")
    number = (f"\\textbf{{{mean}}}" if cell.bold else mean) + _filling(cell.text, frame.fractions[c])
    number += _std(cell.std, frame.std_widths[c], "" if room else star)
    if not room:
        return number
    signs = f"\\textsuperscript{{{escape(cell.after)}}}" if cell.after else ""
    signs = (f"$^{PARTIAL_SIGN}$" if is_partial else "") + signs
    return f"{number}\\makebox[{room:g}pt][l]{{{signs}}}"  # as wide in each cell, so that numbers stay in line


def _filling(text: str, longest: str) -> str:
    """Invisible decimals, so that the points of a column stand in one line."""
    missing = longest[len(_fraction(text)) :]
    return f"\\phantom{{{missing}}}" if missing else ""


def _fraction(text: str) -> str:
    """A number from its point on, with zeros for digits; one with an exponent stands for itself."""
    _, point, decimals = text.partition(".")
    return point + "0" * len(decimals) if decimals.isdigit() else ""


def _fraction_of(rows: Sequence[TableRow], column: int) -> str:
    cells = (row.cells[column] for row in rows)
    return max((_fraction(cell.text) for cell in cells if cell.numeric), key=len, default="")


def _std(std: str | None, std_width: int, star: str) -> str:
    """The deviation, filled up with invisible digits so that all signs of a column stand in one line."""
    if not std_width:
        return star
    if std is None:
        return f"{star}\\phantom{{\\scriptsize$\\pm${'0' * std_width}}}"
    missing = f"\\phantom{{{'0' * (std_width - len(std))}}}" if len(std) < std_width else ""
    return f"{{\\scriptsize$\\pm${std}{star}{missing}}}"


def _room(after: str) -> float:
    """Points that what stands small behind a number takes."""
    return math.ceil(width(after, 7)) + 2 if after else 0


def _room_of(rows: Sequence[TableRow], column: int) -> float:
    cells = [row.cells[column] for row in rows]
    widest = max((_room(cell.after) for cell in cells), default=0)
    return widest + 4 if widest and any(cell.mark == "partial" for cell in cells) else widest


def _std_width(rows: Sequence[TableRow], column: int) -> int:
    return max((len(row.cells[column].std or "") for row in rows), default=0)


media_type = "application/x-tex"
suffix = ".tex"

_COLUMN_WIDTH = 237  # points: a column of the usual two-column papers; what is wider spans both
_PAGE_WIDTH = 500  # points: both columns; what is wider gets smaller letters
_PAGE_LINES = 45  # of a table, on a page that holds its caption too
_WORLD_FONTS = ("DejaVu Serif", "FreeSerif", "Noto Serif", "CMU Serif", "Times New Roman")
_ASIAN_FONTS = (
    "Noto Serif CJK SC", "Noto Sans CJK SC", "Source Han Serif SC", "FandolSong", "Songti SC", "SimSun", "MS Mincho",
)  # fmt: skip
_ASIAN = re.compile(  # Chinese, Japanese and Korean, with their punctuation and wide letters
    "[\\u1100-\\u11ff\\u2460-\\u24ff\\u2e80-\\ua4cf\\ua960-\\ua97f\\uac00-\\ud7ff\\uf900-\\ufaff\\ufe30-\\ufe4f"
    "\\uff00-\\uffef\\U00016fe0-\\U00018fff\\U0001b000-\\U0001b2ff\\U00020000-\\U0003ffff]+"
)
_SMALL, _SMALLER = 9, 8  # points: the letters of \small and \footnotesize


def render(table: Table) -> bytes:
    """The table as an includable float, or as several where its panels do not fit on one page.

    It is ASCII for any engine where TeX has commands for its text, else UTF-8 with a comment that says so.
    """
    floats = _floats(table)
    lines = (
        f"% Table '{escape(table.name)}' of {_whose(table)}, made by metricsweep.",
        "% Needs \\usepackage{booktabs,graphicx,multirow}.",
        *unicode_note(floats),
        *floats,
    )
    return ("\n".join(lines) + "\n").encode()


def _floats(table: Table) -> list[str]:
    wide = _width(table, _SMALL)
    pages = enumerate(_pages(table.panels))
    return [line for n, panels in pages for line in _float(table, panels, n, wide)]


def _whose(table: Table) -> str:
    name = escape(table.sweep_name)
    return f"the spec '{name}'" if table.sweep == NO_SWEEP else f"sweep {table.sweep} ({name})"


def _float(table: Table, panels: Sequence[Panel], number: int, wide: float) -> list[str]:
    """One float of a table, the first with its caption and the last with its notes."""
    name = "table*" if wide > _COLUMN_WIDTH else "table"  # table* is table in a one-column document
    continued = ["  \\addtocounter{table}{-1}", "  \\caption{Continued.}"]
    named = [f"  \\caption{{{escape(table.caption)}}}", f"  \\label{{tab:{table.file_stem}}}"]
    return [
        f"\\begin{{{name}}}[tbp]",
        "  \\centering",
        "  \\setlength{\\abovecaptionskip}{0pt}\\setlength{\\belowcaptionskip}{6pt}",
        *(continued if number else named),
        f"  {_letters(wide)}\\setlength{{\\tabcolsep}}{{{SEPARATION}pt}}",
        *_fitted(tabular(panels, table.stub)),
        *(_below(table) if panels[-1] is table.panels[-1] else []),
        f"\\end{{{name}}}",
    ]


def _pages(panels: Sequence[Panel]) -> list[list[Panel]]:
    """The panels of each float: as many as a page takes."""
    pages: list[list[Panel]] = [[]]
    for panel in panels:
        if pages[-1] and _lines(panel) + sum(map(_lines, pages[-1])) > _PAGE_LINES:
            pages.append([])
        pages[-1].append(panel)
    return pages


def _lines(panel: Panel) -> int:
    return len(panel.rows) + len(panel.groups) + panel.titled


def render_standalone(table: Table) -> bytes:
    """A document that holds the table on a page of its size; it compiles with pdflatex, or says what it needs."""
    wide = _width(table, _SMALL)
    page = max(160, round(min(wide, max(_PAGE_WIDTH, _width(table, _SMALLER))) / 2.84) + 10)  # millimetres
    high = max(297, 90 + 5 * sum(map(_lines, table.panels)))
    body = render(table).decode().rstrip("\n")
    unicode = not all(line.isascii() for line in _floats(table))
    lines = (
        *(("% !TeX program = xelatex", "% Compile this document with XeLaTeX or LuaLaTeX.") if unicode else ()),
        "\\documentclass[10pt]{article}",
        f"\\usepackage[paperwidth={page + 30}mm,paperheight={high}mm,margin=15mm]{{geometry}}",
        "\\usepackage{booktabs,graphicx,multirow}",
        *(_fonts(body) if unicode else ()),
        "\\pagestyle{empty}",
        "\\makeatletter\\setlength{\\@fptop}{0pt}\\makeatother % a page of floats begins at its top",
        "\\begin{document}",
        _ASIAN.sub(r"{\\eastasian \g<0>}", body) if unicode else body,
        "\\end{document}",
    )
    return ("\n".join(lines) + "\n").encode()


def _fonts(body: str) -> Iterator[str]:
    """The preamble of a document that is not ASCII: the first installed font of those that are likely to do."""
    yield "\\usepackage{fontspec} % stops pdflatex with an error"
    yield _first_installed("\\setmainfont", _WORLD_FONTS)
    if _ASIAN.search(body):
        yield "\\providecommand{\\eastasian}{}"
        yield _first_installed("\\renewfontfamily\\eastasian", _ASIAN_FONTS)
        yield '\\ifdefined\\XeTeXlinebreaklocale \\XeTeXlinebreaklocale "zh" \\XeTeXlinebreakskip=0pt plus 1pt \\fi'
    yield "\\tracinglostchars=2 % says in the terminal which characters the font lacks"


def _first_installed(command: str, fonts: Sequence[str]) -> str:
    chosen = ""
    for font in reversed(fonts):
        chosen = f"\\IfFontExistsTF{{{font}}}{{{command}{{{font}}}}}{{{chosen}}}"
    return chosen


def _letters(wide: float) -> str:
    return "\\small" if wide <= _PAGE_WIDTH else "\\footnotesize"


def _fitted(body: Sequence[str]) -> list[str]:
    """The tabulars, shrunk by TeX itself where they are wider or higher than the page around them."""
    high = "\\resizebox*{!}{\\ifdim\\totalheight>.85\\textheight .85\\textheight\\else\\totalheight\\fi}{%"
    wide = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%"
    return [f"  {high}", f"  {wide}", *body, "  }}"]


def _below(table: Table) -> list[str]:
    words = [f"{escape(one.symbol)}: {escape(one.meaning)}." for one in table.legend]
    words += [escape(note) for note in table.notes]
    if not words:
        return []
    return [f"  \\par\\smallskip\\parbox{{0.95\\linewidth}}{{\\centering\\footnotesize {' '.join(words)}}}"]


def _width(table: Table, letters: float) -> float:
    return natural_width(table.panels, table.stub, letters)
