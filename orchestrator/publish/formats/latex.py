r"""LaTeX with booktabs: a table to \input into a paper, or a document of its own."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from orchestrator.publish.labels import UNICODE_NOTE, escape, width
from orchestrator.publish.tables.table_data import PARTIAL_SIGN, Heading, Panel, Table, TableCell
from orchestrator.views.runs import NO_SWEEP

_SEPARATION: Final = 4
"""Points on both sides of a column."""
_GROUP_GAP: Final = 14  # points between the outermost groups of columns


def _signs_width(cell: TableCell) -> float:
    """Points that the signs behind a cell's number take."""
    return math.ceil(width(cell.after, 7)) + 2 if cell.after else 0


def _lines_of(panel: Panel) -> int:
    return len(panel.rows) + len(panel.groups) + panel.titled


def _width(table: Table, letters: float) -> float:
    """About how wide the widest panel of a table is, in points, with letters of that size."""
    return max(_panel_width(panel, table.stub, letters) for panel in table.panels)


def _panel_width(panel: Panel, stub: Sequence[str], letters: float) -> float:
    total = 0.0
    for s, title in enumerate(stub):
        total += max(width(text, letters) for text in (title, *(row.texts[s] for row in panel.rows)))
    for c, column in enumerate(panel.columns):
        shown = [row.cells[c] for row in panel.rows if row.cells[c].span == 1]
        cells = (width(cell.text, letters) + width(cell.std or "", 7) + 6 + _signs_width(cell) for cell in shown)
        total += max((width(column.title, letters), *cells))
    total += 2 * _SEPARATION * (len(stub) + len(panel.columns))
    for level in panel.groups:
        # At worst no column has room to spare for the heading above it.
        total += sum(max(0.0, width(heading.text, letters) - 40 * heading.span) + _GROUP_GAP for heading in level)
    return total


def _tabulars(panels: Sequence[Panel], stub: Sequence[str]) -> list[str]:
    """One tabular of all panels where these have the same columns, else one each."""
    frames = [_frame([panel], stub) for panel in panels]
    if len({(frame.sides, frame.gaps) for frame in frames}) == 1:
        return _tabular(panels, _frame(panels, stub))
    lines = ["  \\begin{tabular}{@{}c@{}}"]
    for panel, frame in zip(panels, frames, strict=True):
        lines += [*_tabular([panel], frame), "  \\\\[\\bigskipamount]"]
    return [*lines[:-1], "  \\end{tabular}"]


@dataclass(frozen=True, slots=True)
class _Frame:
    """What the panels of one tabular share."""

    stub: tuple[str, ...]
    sides: tuple[str, ...]  # how each column of the body is set
    gaps: tuple[str, ...]  # what stands right of it
    std_widths: tuple[int, ...]  # how many characters its longest deviation has
    rooms: tuple[float, ...]  # points for what stands small behind its numbers
    fractions: tuple[str, ...]  # the point and decimals of the number that has most


def _frame(panels: Sequence[Panel], stub: Sequence[str]) -> _Frame:
    first = panels[0]
    columns = [[row.cells[c] for panel in panels for row in panel.rows] for c in range(len(first.columns))]
    return _Frame(
        stub=tuple(stub),
        sides=tuple("c" if column.wordy else "r" for column in first.columns),
        gaps=_gaps(first),
        std_widths=tuple(max((len(cell.std or "") for cell in cells), default=0) for cells in columns),
        rooms=tuple(max(_room([row.cells[c] for row in panel.rows]) for panel in panels) for c in range(len(columns))),
        fractions=tuple(
            max((_fraction(cell.text) for cell in cells if cell.numeric), key=len, default="") for cells in columns
        ),
    )


def _tabular(panels: Sequence[Panel], frame: _Frame) -> list[str]:
    body = "".join(side + gap for side, gap in zip(frame.sides, frame.gaps, strict=True))
    lines = [f"  \\begin{{tabular}}{{{'l' * len(frame.stub)}{body}}}"]
    for panel in panels:
        lines += ["    \\toprule", *_head(panel, frame), "    \\midrule"]
        for row in panel.rows:
            if row.rule is not None:
                under = f"\\cmidrule(l){{{row.rule + 1}-{len(frame.stub) + len(frame.sides)}}}"
                lines.append("    \\midrule" if row.rule == 0 else f"    {under}")
            # A cell under the text of another cell is left out.
            written = [_cell(cell, frame, c) for c, cell in enumerate(row.cells) if cell.span]
            lines.append(_line([*_row_headings(row.headings), *written]))
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
    ends = set(accumulate(heading.span for heading in panel.groups[0][:-1])) if panel.groups else set()
    return tuple(f"@{{\\hspace{{{_GROUP_GAP}pt}}}}" if at in ends else "" for at, _ in enumerate(panel.columns, 1))


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


def _row_headings(headings: Sequence[Heading | None]) -> Iterator[str]:
    """The headings of a row; a heading of several rows is centred, or stands on top where other headings follow it."""
    for n, heading in enumerate(headings):
        text = "" if heading is None else escape(heading.text)
        if heading is not None and heading.span > 1 and any(one and one.text for one in headings[n + 1 :]):
            text = f"\\multirow{{{heading.span}}}{{*}}{{{text}}}"
        yield text


def _cell(cell: TableCell, frame: _Frame, c: int) -> str:
    text, room = escape(cell.text), frame.rooms[c]
    if frame.sides[c] == "c":
        return text  # its column is centred already
    partial = f"$^{PARTIAL_SIGN}$" if cell.mark == "partial" else ""
    star = f"\\rlap{{{partial}}}" if partial else ""
    if not cell.numeric:  # a word in place of a number
        words = f"\\textit{{{text}}}" if cell.mark in {"failed", "diverged"} else text + star
        return _centred(words, frame.gaps[c + cell.span - 1], cell.span)
    mean = text.replace("-", "$-$").replace("+", "$+$")
    # Invisible decimals, so that the points of a column stand in one line.
    missing = frame.fractions[c][len(_fraction(cell.text)) :]
    number = (f"\\textbf{{{mean}}}" if cell.bold else mean) + (f"\\phantom{{{missing}}}" if missing else "")
    number += _std(cell.std, frame.std_widths[c], "" if room else star)
    if not room:
        return number
    signs = partial + (f"\\textsuperscript{{{escape(cell.after)}}}" if cell.after else "")
    return f"{number}\\makebox[{room:g}pt][l]{{{signs}}}"  # as wide in each cell, so that numbers stay in line


def _fraction(text: str) -> str:
    """A number from its point on, with zeros for digits; a number with an exponent has no such part."""
    _, point, decimals = text.partition(".")
    return point + "0" * len(decimals) if decimals.isdigit() else ""


def _std(std: str | None, std_width: int, star: str) -> str:
    """The deviation, filled up with invisible digits so that all signs of a column stand in one line."""
    if not std_width:
        return star
    if std is None:
        return f"{star}\\phantom{{\\scriptsize$\\pm${'0' * std_width}}}"
    missing = f"\\phantom{{{'0' * (std_width - len(std))}}}" if len(std) < std_width else ""
    return f"{{\\scriptsize$\\pm${std}{star}{missing}}}"


def _room(cells: Sequence[TableCell]) -> float:
    """Points that a column of a panel leaves for what stands small behind its numbers."""
    widest = max(map(_signs_width, cells), default=0)
    return widest + 4 if widest and any(cell.mark == "partial" for cell in cells) else widest


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
    """Writes a table as a LaTeX float for inclusion, or as several floats if its panels do not fit on one page.

    It is ASCII for any engine where TeX has commands for its text, else UTF-8 with a comment that says so.
    """
    return _file(table, _floats(table)).encode()


def _file(table: Table, floats: Sequence[str]) -> str:
    sweep = escape(table.sweep_name)
    whose = f"the spec '{sweep}'" if table.sweep == NO_SWEEP else f"sweep {table.sweep} ({sweep})"
    lines = (
        f"% Table '{escape(table.name)}' of {whose}, made by metricsweep.",
        "% Needs \\usepackage{booktabs,graphicx,multirow}.",
        *(f"% {escape(one)}" for one in table.words.folded),
        *(() if "".join(floats).isascii() else UNICODE_NOTE),
        *floats,
    )
    return "\n".join(lines) + "\n"


def _floats(table: Table) -> list[str]:
    """The lines of all floats, each with as many panels as a page takes."""
    wide = _width(table, _SMALL)
    pages: list[list[Panel]] = [[]]
    for panel in table.panels:
        if pages[-1] and sum(map(_lines_of, [*pages[-1], panel])) > _PAGE_LINES:
            pages.append([])
        pages[-1].append(panel)
    return [line for n in range(len(pages)) for line in _float(table, pages, n, wide)]


def _float(table: Table, pages: Sequence[Sequence[Panel]], number: int, wide: float) -> list[str]:
    """One float of a table, the first with its caption and the last with its notes."""
    name = "table*" if wide > _COLUMN_WIDTH else "table"  # table* is table in a one-column document
    letters = "\\small" if wide <= _PAGE_WIDTH else "\\footnotesize"
    continued = ["  \\addtocounter{table}{-1}", "  \\caption{Continued.}"]
    named = [f"  \\caption{{{escape(table.words.caption)}}}", f"  \\label{{tab:{table.file_stem}}}"]
    legend = (f"{escape(one.symbol)}: {escape(one.meaning)}." for one in table.legend)
    words = " ".join((*legend, *map(escape, table.words.below))) if number == len(pages) - 1 else ""
    below = f"  \\par\\smallskip\\parbox{{0.95\\linewidth}}{{\\centering\\footnotesize {words}}}"
    return [
        f"\\begin{{{name}}}[tbp]",
        "  \\centering",
        "  \\setlength{\\abovecaptionskip}{0pt}\\setlength{\\belowcaptionskip}{6pt}",
        *(continued if number else named),
        f"  {letters}\\setlength{{\\tabcolsep}}{{{_SEPARATION}pt}}",
        # TeX itself shrinks what is wider or higher than the page around it.
        "  \\resizebox*{!}{\\ifdim\\totalheight>.85\\textheight .85\\textheight\\else\\totalheight\\fi}{%",
        "  \\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        *_tabulars(pages[number], table.stub),
        "  }}",
        *([below] if words else []),
        f"\\end{{{name}}}",
    ]


def render_standalone(table: Table) -> bytes:
    """Writes a table as a LaTeX document of one page of its size, for pdflatex, or with a note on what it needs."""
    widest = max(_PAGE_WIDTH, _width(table, _SMALLER))
    page = max(160, round(min(_width(table, _SMALL), widest) / 2.84) + 10)  # millimetres
    high = max(297, 90 + 5 * sum(map(_lines_of, table.panels)))
    floats = _floats(table)
    body = _file(table, floats).rstrip("\n")
    unicode = not "".join(floats).isascii()
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
    """The preamble of a document that is not ASCII: the first installed font of several."""
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
