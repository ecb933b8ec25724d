"""The reproduction report of a paper as a file: JSON, CSV, Markdown or LaTeX."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from orchestrator.publish.formats import markdown
from orchestrator.publish.labels import UNICODE_NOTE, axis_title, escape
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import ReproductionEntry, ReproductionTable, ReproductionView
from orchestrator.views.pages import Rendered
from workers.catalog import unknown

HEADINGS: Final = ("row", "metric", "paper", "own", "runs", "difference", "status", "sweep")
_ANSWERS: Final = {"reproduced": "yes", "not reproduced": "no", "underpowered": "unclear"}


def render(view: ReproductionView, format_name: str) -> Rendered:
    """Writes a reproduction report in a file format; the NotFoundError for an unknown format lists the formats."""
    if format_name not in _FORMATS:
        raise NotFoundError(unknown("format of a reproduction", format_name, _FORMATS))
    media_type, suffix, write = _FORMATS[format_name]
    name = f"{view.paper.lower()}-reproduction{suffix}"
    return Rendered(content=write(view).encode(), media_type=media_type, filename=name)


def line(entry: ReproductionEntry) -> tuple[str, ...]:
    """An entry of a reproduction report as texts under `HEADINGS`, in the paper's unit; empty without an own number."""
    place = ", ".join(f"{axis_title(axis)} {label}" for axis, label in entry.labels.items())
    evidence = entry.evidence[0] if entry.evidence else None
    own, difference = entry.own_and_difference
    runs = "" if evidence is None or not evidence.n else str(evidence.n)
    sweep = "" if evidence is None else f"{evidence.sweep}/{evidence.cell}"
    return place, entry.metric, entry.printed, own, runs, difference, entry.status, sweep


def longtable(view: ReproductionView) -> str:
    """Writes a reproduction report as LaTeX longtables, which break over pages, for inclusion in a paper."""
    body = [*_counts(view), *(_numbers(view) if any(map(_run, view.tables)) else [])]
    lines = [
        f"% Reproduction of {escape(view.paper)}, by metricsweep. Needs \\usepackage{{booktabs,longtable,array}}.",
        *(() if all(line.isascii() for line in body) else UNICODE_NOTE),
        *body,
    ]
    return "\n".join(lines) + "\n"


def _counts(view: ReproductionView) -> Iterator[str]:
    yield "\\begin{table}[tbp]"
    yield "  \\centering\\small"
    yield f"  \\caption{{Numbers of {escape(view.paper)} by what own runs say of them. {escape(view.summary)}}}"
    yield f"  \\label{{tab:reproduction-{view.paper.lower()}}}"
    yield "  \\smallskip"
    yield "  \\begin{tabular}{lrrrr}"
    yield "    \\toprule"
    yield "    Table & reproduced & not reproduced & underpowered & not run \\\\"
    yield "    \\midrule"
    *tables, together = _tallies(view)
    yield from (f"    {' & '.join(map(escape, tally))} \\\\" for tally in tables)
    yield "    \\midrule"
    yield f"    {' & '.join(together)} \\\\"
    yield "    \\bottomrule"
    yield "  \\end{tabular}"
    yield "\\end{table}"


def _tallies(view: ReproductionView) -> Iterator[tuple[str, ...]]:
    """The numbers of each table by status, and those of all tables."""
    for name, counts in (*((table.id, table.counts) for table in view.tables), ("all", view.counts)):
        yield name, *map(str, counts.by_status.values())


def _run(table: ReproductionTable) -> list[ReproductionEntry]:
    return [entry for entry in table.entries if entry.status != "not run"]


def _numbers(view: ReproductionView) -> Iterator[str]:
    yield "{\\footnotesize\\setlength{\\tabcolsep}{4pt}"
    yield "\\begin{longtable}{>{\\raggedright\\arraybackslash}p{.25\\linewidth}llrrrl}"
    caption = (
        f"{view.paper}: every number that was run, in the paper's units; the own one with half its 95 % interval, "
        "n its runs."
    )
    yield f"  \\caption{{{escape(caption)}}}\\\\"
    head = "  Row & Metric & Paper & Own & $n$ & Diff. & Reproduced \\\\"
    yield "  \\toprule"
    yield head
    yield "  \\midrule\\endfirsthead"
    yield f"  \\toprule{head.removeprefix(' ')}  \\midrule\\endhead"
    yield "  \\bottomrule\\endlastfoot"
    for table in view.tables:
        if run := _run(table):
            yield f"  \\multicolumn{{7}}{{l}}{{\\emph{{{escape(table.id)}}}}}\\\\*"
        for entry in run:
            _, metric, paper, own, runs, difference, status, _ = line(entry)
            place = " / ".join(entry.labels.values())
            own, difference = (text.replace("-", "−") for text in (own, difference))
            shown = (place, metric, paper, own, runs, difference, _ANSWERS[status])
            yield f"  {' & '.join(map(escape, shown))} \\\\"
    yield "\\end{longtable}}"


def _csv(view: ReproductionView) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("table", *HEADINGS, "why", "protocol"))
    for table in view.tables:
        for entry in table.entries:
            why = differences = ""
            if entry.evidence:
                why, protocol = entry.evidence[0].why, entry.evidence[0].protocol
                differences = "; ".join(f"{it.what}: {it.here} (paper: {it.paper})" for it in protocol)
            writer.writerow((table.id, *line(entry), why, differences))
    return out.getvalue()


def _blocks(view: ReproductionView) -> Iterator[str]:
    yield f"**{markdown.escape(view.paper)}**: {markdown.escape(view.citation)}."
    yield _grid([("table", *view.counts.by_status), *_tallies(view)])
    for table in view.tables:
        if run := _run(table):
            yield f"{table.id}: {markdown.escape(table.title)}"
            yield _grid([HEADINGS, *map(line, run)])
            differences = dict.fromkeys(
                f"sweep {evidence.sweep}, {difference.what}: {difference.here} (paper: {difference.paper})"
                for entry in run for evidence in entry.evidence[:1] for difference in evidence.protocol
            )  # fmt: skip
            if differences:
                yield "\n".join(f"- {markdown.escape(text)}" for text in differences)
    yield markdown.escape(view.summary)


def _grid(rows: list[tuple[str, ...]]) -> str:
    texts = [[markdown.escape(text) for text in row] for row in rows]
    rule = ["---"] * len(rows[0])
    return "\n".join(f"| {' | '.join(row)} |" for row in (texts[0], rule, *texts[1:]))


_FORMATS: Final[Mapping[str, tuple[str, str, Callable[[ReproductionView], str]]]] = {
    "json": ("application/json", ".json", lambda view: view.model_dump_json(indent=2) + "\n"),
    "csv": ("text/csv; charset=utf-8; header=present", ".csv", _csv),
    "markdown": ("text/markdown; charset=utf-8", ".md", lambda view: "\n\n".join(_blocks(view)) + "\n"),
    "latex": ("application/x-tex", ".tex", longtable),
}


def formats() -> list[str]:
    """The names of the file formats of a reproduction report."""
    return sorted(_FORMATS)
