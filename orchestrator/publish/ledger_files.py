"""A paper's ledger as a file: JSON, CSV, Markdown or LaTeX."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from orchestrator.publish.formats import markdown
from orchestrator.publish.labels import axis_title, escape, unicode_note
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import LedgerEntry, LedgerTable, LedgerView
from orchestrator.views.pages import Rendered
from workers.catalog import unknown

HEADINGS: Final = ("row", "metric", "paper", "own", "runs", "difference", "standing", "sweep")


def line(entry: LedgerEntry) -> tuple[str, ...]:
    """One entry under `HEADINGS`, in the paper's unit; empty where there is no own number."""
    place = ", ".join(f"{axis_title(axis)} {label}" for axis, label in entry.labels.items())
    one = entry.evidence[0] if entry.evidence else None
    own, difference = entry.own_and_difference
    runs = "" if one is None or not one.n else str(one.n)
    sweep = "" if one is None else f"{one.sweep}/{one.cell}"
    return place, entry.metric, entry.printed, own, runs, difference, entry.standing, sweep


_SIGNS: Final = {"reproduced": "yes", "not reproduced": "no", "underpowered": "unclear", "not run": ""}


def longtable(view: LedgerView) -> str:
    """The tables to \\input into a paper; they break over pages."""
    run = [entry for table in view.tables for entry in table.entries if entry.standing != "not run"]
    body = [*_counts(view), *(_numbers(view) if run else [])]
    lines = [
        f"% The ledger of {escape(view.paper)}, made by metricsweep. Needs \\usepackage{{booktabs,longtable,array}}.",
        *unicode_note(body),
        *body,
    ]
    return "\n".join(lines) + "\n"


def _counts(view: LedgerView) -> Iterator[str]:
    yield "\\begin{table}[tbp]"
    yield "  \\centering\\small"
    yield f"  \\caption{{Numbers of {escape(view.paper)} by what own runs say of them. {escape(view.said)}}}"
    yield f"  \\label{{tab:ledger-{view.paper.lower()}}}"
    yield "  \\smallskip"
    yield "  \\begin{tabular}{lrrrr}"
    yield "    \\toprule"
    yield "    Table & reproduced & not reproduced & underpowered & not run \\\\"
    yield "    \\midrule"
    for table in view.tables:
        yield f"    {escape(table.id)} & {_row(table.counts.by_standing.values())} \\\\"
    yield "    \\midrule"
    yield f"    all & {_row(view.counts.by_standing.values())} \\\\"
    yield "    \\bottomrule"
    yield "  \\end{tabular}"
    yield "\\end{table}"


def _row(counts: Iterable[int]) -> str:
    return " & ".join(str(one) for one in counts)


def _numbers(view: LedgerView) -> Iterator[str]:
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
        run = [entry for entry in table.entries if entry.standing != "not run"]
        if run:
            yield f"  \\multicolumn{{7}}{{l}}{{\\emph{{{escape(table.id)}}}}}\\\\*"
        for entry in run:
            _, metric, paper, own, runs, difference, standing, _ = line(entry)
            place = " / ".join(entry.labels.values())
            own, difference = (text.replace("-", "−") for text in (own, difference))
            shown = (place, metric, paper, own, runs, difference, _SIGNS[standing])
            yield f"  {' & '.join(escape(one) for one in shown)} \\\\"
    yield "\\end{longtable}}"


def render(view: LedgerView, format_name: str) -> Rendered:
    """The ledger in a format; NotFoundError names the formats there are."""
    if format_name not in _FORMATS:
        raise NotFoundError(unknown("format of a ledger", format_name, _FORMATS))
    media_type, suffix, write = _FORMATS[format_name]
    name = f"{view.paper.lower()}-ledger{suffix}"
    return Rendered(content=write(view).encode(), media_type=media_type, filename=name)


def formats() -> list[str]:
    """The formats there are."""
    return sorted(_FORMATS)


def _json(view: LedgerView) -> str:
    return view.model_dump_json(indent=2) + "\n"


def _csv(view: LedgerView) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("table", *HEADINGS, "why", "protocol"))
    for table in view.tables:
        for entry in table.entries:
            one = entry.evidence[0] if entry.evidence else None
            differs = "; ".join(f"{d.what}: {d.here} (paper: {d.paper})" for d in one.protocol) if one else ""
            writer.writerow((table.id, *line(entry), one.why if one else "", differs))
    return out.getvalue()


def _markdown(view: LedgerView) -> str:
    return "\n\n".join(_blocks(view)) + "\n"


def _blocks(view: LedgerView) -> Iterator[str]:
    yield f"**{markdown.escape(view.paper)}**: {markdown.escape(view.citation)}."
    words = [*view.counts.by_standing]
    rows = [("table", *words), *((one.id, *map(str, one.counts.by_standing.values())) for one in view.tables)]
    rows.append(("all", *map(str, view.counts.by_standing.values())))
    yield _grid(rows)
    for table in view.tables:
        if run := [line(entry) for entry in table.entries if entry.standing != "not run"]:
            yield f"{table.id}: {markdown.escape(table.title)}"
            yield _grid([HEADINGS, *run])
            yield from _protocols(table)
    yield markdown.escape(view.said)


def _protocols(table: LedgerTable) -> Iterator[str]:
    """What differs, once for all numbers of which it does."""
    found = dict.fromkeys(
        (one.sweep, difference.what, difference.paper, difference.here)
        for entry in table.entries for one in entry.evidence[:1] if entry.standing != "not run"
        for difference in one.protocol
    )  # fmt: skip
    if found:
        lines = (f"- sweep {sweep}, {what}: {here} (paper: {paper})" for sweep, what, paper, here in found)
        yield "\n".join(markdown.escape(one) if not one.startswith("- ") else "- " + markdown.escape(one[2:])
                        for one in lines)  # fmt: skip


def _grid(rows: list[tuple[str, ...]]) -> str:
    texts = [[markdown.escape(one) for one in row] for row in rows]
    rule = ["---"] * len(rows[0])
    return "\n".join(f"| {' | '.join(row)} |" for row in (texts[0], rule, *texts[1:]))


_FORMATS: Final[Mapping[str, tuple[str, str, Callable[[LedgerView], str]]]] = {
    "json": ("application/json", ".json", _json),
    "csv": ("text/csv; charset=utf-8; header=present", ".csv", _csv),
    "markdown": ("text/markdown; charset=utf-8", ".md", _markdown),
    "latex": ("application/x-tex", ".tex", longtable),
}
