"""LaTeX with booktabs: a table to \\input into a paper, or a document of its own."""

from collections.abc import Sequence

from orchestrator.publish.entries import PARTIAL_SIGN
from orchestrator.publish.letter_widths import width
from orchestrator.publish.sheet import Column, Heading, Panel, Row, Table, TableCell
from orchestrator.publish.tex_characters import escape

media_type = "application/x-tex"
suffix = ".tex"

_COLUMN_WIDTH = 237  # points: a column of the usual two-column papers; what is wider spans both
_SEPARATION = 4  # points on both sides of a column
_GROUP_GAP = 14  # points between the outermost groups of columns


def render(table: Table) -> bytes:
    """The table as an includable float, in ASCII."""
    body = "\n  \\par\\medskip\n".join(_tabular(panel, table.stub) for panel in table.panels)
    # table* is table in a one-column document.
    float_name = "table*" if _width(table) > _COLUMN_WIDTH else "table"
    lines = (
        f"% Table '{escape(table.name)}' of sweep {table.sweep} ({escape(table.sweep_name)}), made by metricsweep.",
        "% Needs \\usepackage{booktabs,multirow}.",
        f"\\begin{{{float_name}}}[tbp]",
        "  \\centering",
        "  \\setlength{\\abovecaptionskip}{0pt}\\setlength{\\belowcaptionskip}{6pt}",
        f"  \\caption{{{escape(table.caption)}}}",
        f"  \\label{{tab:{table.file_stem}}}",
        f"  \\small\\setlength{{\\tabcolsep}}{{{_SEPARATION}pt}}",
        body,
        *_below(table),
        f"\\end{{{float_name}}}",
    )
    return ("\n".join(lines) + "\n").encode("ascii")


def render_standalone(table: Table) -> bytes:
    """A document of one page that holds the table and compiles with pdflatex."""
    page = max(160, round(_width(table) / 2.84) + 10)  # millimetres
    lines = (
        "\\documentclass[10pt]{article}",
        f"\\usepackage[paperwidth={page + 30}mm,paperheight=297mm,margin=15mm]{{geometry}}",
        "\\usepackage{booktabs,multirow}",
        "\\pagestyle{empty}",
        "\\makeatletter\\setlength{\\@fptop}{0pt}\\makeatother % a page of floats begins at its top",
        "\\begin{document}",
        render(table).decode("ascii").rstrip("\n"),
        "\\end{document}",
    )
    return ("\n".join(lines) + "\n").encode("ascii")


def _tabular(panel: Panel, stub: Sequence[str]) -> str:
    spread = [_std_width(panel.rows, c) for c in range(len(panel.columns))]
    gaps = _gaps(panel)
    sides = ["c" if column.kind == "tuned" else "r" for column in panel.columns]
    columns = "l" * len(stub) + "".join(side + gap for side, gap in zip(sides, gaps, strict=True))
    titles = [_centred(escape(column.title), gap) for column, gap in zip(panel.columns, gaps, strict=True)]
    lines = [f"  \\begin{{tabular}}{{{columns}}}", "    \\toprule"]
    lines += [line for level in panel.groups for line in _group_level(level, len(stub), gaps)]
    lines += [_line([*(escape(title) for title in stub), *titles]), "    \\midrule"]
    last = len(stub) + len(panel.columns)
    for row in panel.rows:
        if row.rule is not None:
            lines.append("    \\midrule" if row.rule == 0 else f"    \\cmidrule(l){{{row.rule + 1}-{last}}}")
        cells = (_cell(*one) for one in zip(panel.columns, row.cells, spread, gaps, strict=True))
        lines.append(_line([*(_beside(heading) for heading in row.headings), *cells]))
    return "\n".join((*lines, "    \\bottomrule", "  \\end{tabular}"))


def _gaps(panel: Panel) -> list[str]:
    """What stands right of each column: more than the usual space between the outermost groups."""
    gaps = [""] * len(panel.columns)
    after = 0
    for heading in panel.groups[0][:-1] if panel.groups else ():
        after += heading.span
        gaps[after - 1] = f"@{{\\hspace{{{_GROUP_GAP}pt}}}}"
    return gaps


def _line(cells: Sequence[str]) -> str:
    return "    " + " & ".join(cells) + r" \\"


def _centred(text: str, gap: str, span: int = 1) -> str:
    return f"\\multicolumn{{{span}}}{{c{gap}}}{{{text}}}"


def _group_level(level: Sequence[Heading], offset: int, gaps: Sequence[str]) -> list[str]:
    """A level of headings with a rule under each."""
    headings, rules, first = [""] * offset, [], 0
    for heading in level:
        gap = gaps[first + heading.span - 1]
        trim = f"lr{{{_GROUP_GAP}pt}}" if gap else "lr"
        rules.append(f"\\cmidrule({trim}){{{offset + first + 1}-{offset + first + heading.span}}}")
        headings.append(_centred(escape(heading.text), gap, heading.span))
        first += heading.span
    return [_line(headings), "    " + " ".join(rules)]


def _beside(heading: Heading | None) -> str:
    if heading is None:
        return ""
    text = escape(heading.text)
    return text if heading.span == 1 else f"\\multirow{{{heading.span}}}{{*}}{{{text}}}"


def _cell(column: Column, cell: TableCell, std_width: int, gap: str) -> str:
    text = escape(cell.text)
    if column.kind == "tuned":
        return text  # its column is centred already
    star = f"\\rlap{{$^{PARTIAL_SIGN}$}}" if cell.mark == "partial" else ""
    if cell.statistic is None:  # a word in place of a number
        return _centred(f"\\textit{{{text}}}" if cell.mark in {"failed", "diverged"} else text + star, gap)
    mean = text.replace("-", "$-$")
    return (f"\\textbf{{{mean}}}" if cell.bold else mean) + _std(cell.std, std_width, star)


def _std(std: str | None, std_width: int, star: str) -> str:
    """The deviation, filled up with invisible digits so that all signs of a column stand in one line."""
    if not std_width:
        return star
    if std is None:
        return f"{star}\\phantom{{\\scriptsize$\\pm${'0' * std_width}}}"
    missing = f"\\phantom{{{'0' * (std_width - len(std))}}}" if len(std) < std_width else ""
    return f"{{\\scriptsize$\\pm${std}{star}{missing}}}"


def _std_width(rows: Sequence[Row], column: int) -> int:
    return max((len(row.cells[column].std or "") for row in rows), default=0)


def _below(table: Table) -> list[str]:
    words = [f"{escape(one.symbol)}: {escape(one.meaning)}." for one in table.legend]
    words += [escape(note) for note in table.notes]
    if not words:
        return []
    return [f"  \\par\\smallskip\\parbox{{0.95\\linewidth}}{{\\centering\\footnotesize {' '.join(words)}}}"]


def _width(table: Table) -> float:
    """About how wide the widest panel is, in points."""
    return max(_panel_width(panel, table.stub) for panel in table.panels)


def _panel_width(panel: Panel, stub: Sequence[str]) -> float:
    total = 0.0
    for s, title in enumerate(stub):
        total += max((width(text, 9) for text in (title, *(row.texts[s] for row in panel.rows))), default=0)
    for c, column in enumerate(panel.columns):
        cells = (width(row.cells[c].text, 9) + width(row.cells[c].std or "", 7) + 6 for row in panel.rows)
        total += max((width(column.title, 9), *cells))
    total += 2 * _SEPARATION * (len(stub) + len(panel.columns))
    for level in panel.groups:
        # At worst no column has room to spare for the heading above it.
        total += sum(max(0.0, width(heading.text, 9) - 40 * heading.span) + _GROUP_GAP for heading in level)
    return total
