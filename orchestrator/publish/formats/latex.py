"""LaTeX with booktabs: a table to \\input into a paper, or a document of its own."""

from collections.abc import Sequence

from orchestrator.publish.tables.table_data import Panel, Table
from orchestrator.publish.tables.tabular import SEPARATION, natural_width, tabular
from orchestrator.publish.tables.tex_characters import escape
from orchestrator.views.outcomes import NO_SWEEP

media_type = "application/x-tex"
suffix = ".tex"

_COLUMN_WIDTH = 237  # points: a column of the usual two-column papers; what is wider spans both
_PAGE_WIDTH = 500  # points: both columns; what is wider gets smaller letters
_PAGE_LINES = 45  # of a table, on a page that holds its caption too
_SMALL, _SMALLER = 9, 8  # points: the letters of \small and \footnotesize


def render(table: Table) -> bytes:
    """The table as an includable float, in ASCII; as several where its panels do not fit on one page."""
    wide = _width(table, _SMALL)
    floats = [_float(table, panels, n, wide) for n, panels in enumerate(_pages(table.panels))]
    lines = (
        f"% Table '{escape(table.name)}' of {_whose(table)}, made by metricsweep.",
        "% Needs \\usepackage{booktabs,graphicx,multirow}.",
        *(line for one in floats for line in one),
    )
    return ("\n".join(lines) + "\n").encode("ascii")


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
    """A document that holds the table on a page of its size, and compiles with pdflatex."""
    wide = _width(table, _SMALL)
    page = max(160, round(min(wide, max(_PAGE_WIDTH, _width(table, _SMALLER))) / 2.84) + 10)  # millimetres
    high = max(297, 90 + 5 * sum(map(_lines, table.panels)))
    lines = (
        "\\documentclass[10pt]{article}",
        f"\\usepackage[paperwidth={page + 30}mm,paperheight={high}mm,margin=15mm]{{geometry}}",
        "\\usepackage{booktabs,graphicx,multirow}",
        "\\pagestyle{empty}",
        "\\makeatletter\\setlength{\\@fptop}{0pt}\\makeatother % a page of floats begins at its top",
        "\\begin{document}",
        render(table).decode("ascii").rstrip("\n"),
        "\\end{document}",
    )
    return ("\n".join(lines) + "\n").encode("ascii")


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
