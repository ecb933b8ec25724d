"""A paper's ledger in LaTeX: how many numbers stand how, table by table, and each number that was run."""

from collections.abc import Iterable, Iterator
from typing import Final

from orchestrator.publish.labels import escape, unicode_note
from orchestrator.publish.ledger.printed_entry import line
from orchestrator.views.ledger import LedgerView

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
