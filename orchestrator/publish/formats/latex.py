"""LaTeX with booktabs: a table to \\input into a paper, or a document of its own."""

import re
from collections.abc import Iterator, Sequence

from orchestrator.publish.tables.table_data import Panel, Table
from orchestrator.publish.tables.tabular import SEPARATION, natural_width, tabular
from orchestrator.publish.tables.tex_characters import escape, unicode_note
from orchestrator.views.outcomes import NO_SWEEP

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
