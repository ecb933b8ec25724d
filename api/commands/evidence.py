"""Commands about the evidence for numbers: checks, table diffs, verdicts, resolutions, published numbers."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

import typer

from api.commands.sweeps import report_request
from api.commands.tables import SUFFIXES, emit, write_bundle
from api.commands.terminal import (
    FAILED,
    Changes,
    Json,
    OutFile,
    Server,
    SweepId,
    TableName,
    out,
    print_json,
    print_rows,
    read_spec,
    readable,
    refuse,
    settings,
)
from api.connection import ApiError
from orchestrator.views.errors import NotFoundError

if TYPE_CHECKING:
    from orchestrator.service.offline import ManuscriptReport
    from orchestrator.views.evidence import CellVerdictView, ResolutionView

_MOST: Final = 1_000_000
Answer = TypeVar("Answer")


def check(
    server: Server,
    paper: Annotated[Path, typer.Argument(metavar="PAPER.tex", help="The paper; included files are read too.")],
    bundles: Annotated[
        list[Path] | None,
        typer.Option(
            "--bundle", exists=True, dir_okay=False, metavar="FILE.zip", help="Check against bundles, without a server."
        ),
    ] = None,
) -> None:
    """Find printed numbers of a paper that no longer agree with the database or a bundle.

    Exits with 0 if all agree, else with 1.
    """
    # Imported here, since it loads the libraries of tables, which other commands do not need.
    from orchestrator.service.offline import bundled
    from orchestrator.service.offline import check as check_paper

    if bundles:
        report = check_paper(paper, *bundled(bundles))
    else:
        with server.connect() as client:
            report = check_paper(
                paper,
                lambda of: _found(lambda: client.evidence.macros(of.sweep, of.table, of.prefix)),
                lambda sweep, table: _found(lambda: client.table(sweep, table, "latex")).content.decode(),
            )
    _print_report(report)
    if not report.agrees:
        raise typer.Exit(FAILED)


def _found(read: Callable[[], Answer]) -> Answer:
    """What is read of the server; raises NotFoundError for its 404."""
    try:
        return read()
    except ApiError as error:
        if error.status == 404:
            raise NotFoundError(str(error)) from error
        raise


def _print_report(report: "ManuscriptReport") -> None:
    for wrong in report.disagreements:
        name = f" \\{wrong.name}" if wrong.name else ""
        used = f"printed at {', '.join(wrong.used)}" if wrong.used else "which the paper does not print"
        out.print(f"{wrong.where}:{name}: {wrong.message}; {used}")
    stale = sum(bool(wrong.used) for wrong in report.disagreements)
    agreement = "all agree" if not stale else f"{stale} do not agree"
    for file in report.outside:
        out.print(f"{file}: not read, since it lies outside of the paper's folder")
    if report.tables:
        out.print(f"{report.tables} table{'s' * (report.tables != 1)} taken in whole")
    if report.tables and not report.files:
        out.print(agreement)
        return
    files = f"{report.files} file{'s' * (report.files != 1)}"
    out.print(f"{report.used} of {report.numbers} numbers in {files} are printed: {agreement}")


_SIDE: Final = "A sweep (7), a sweep at a time (7@2026-11-20T12:00, UTC), or a bundle (out.zip)."


def diff(
    server: Server,
    before: Annotated[str, typer.Argument(help=_SIDE, metavar="BEFORE")],
    after: Annotated[str, typer.Argument(help="What to compare it with, in the same form.", metavar="AFTER")],
    table: Annotated[
        str | None, typer.Option("--table", help="A table that both have; by default the first.", metavar="NAME")
    ] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="text or json; by default from the ending of --out, else text.")
    ] = None,
    file: OutFile = None,
) -> None:
    """Print which cells of a table changed, why, and whether by more than noise."""
    output_format = file_format or ("json" if file and file.suffix == ".json" else "text")
    files = [_bundle(side) for side in (before, after)]
    if not any(files):
        with server.connect() as client:
            rendered = client.evidence.diff(before, after, table, output_format)
    else:
        # Imported here, since it loads the libraries of tables, which other commands do not need.
        from orchestrator.service.tables import between_bundles

        with TemporaryDirectory() as folder:
            first, second = (
                bundle or _packed(side, Path(folder), server)
                for bundle, side in zip(files, (before, after), strict=True)
            )
            rendered = between_bundles(first, second, table, output_format)
    emit(rendered.content, output_format, file)


def _bundle(side: str) -> Path | None:
    """The file that a side names; `None` if it is a sweep."""
    if not side.endswith(".zip"):
        return None
    if not (path := Path(side)).is_file():
        raise typer.BadParameter(f"there is no file {side}")
    return path


def _packed(side: str, folder: Path, server: Server) -> Path:
    """A sweep as a bundle, for the comparison with another one."""
    if not side.isdigit():
        refuse(f"a bundle is compared with a bundle or with a sweep as it is now, not with {side}")
    file = folder / f"sweep-{side}.zip"
    with server.connect() as client:
        write_bundle(client, int(side), file)
    return file


def reproduction(
    server: Server,
    paper: Annotated[
        str | None, typer.Argument(metavar="PAPER", help="A paper, such as SEC; without it, the counts of all papers.")
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="markdown, latex, csv or json; by default from the ending of --out."),
    ] = None,
    file: OutFile = None,
    within: Annotated[
        float, typer.Option("--within", min=0.01, max=50, help="Percentage points that count as equal.")
    ] = 1.0,
    bundles: Annotated[
        list[Path] | None,
        typer.Option(
            "--bundle", exists=True, dir_okay=False, metavar="FILE.zip", help="Use only bundles, without a server."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print which numbers of a paper your runs reproduce, and how their protocol differs."""
    output_format = "json" if as_json else file_format or SUFFIXES.get(file.suffix if file else "", "markdown")
    if paper is None:
        if bundles or file or file_format:
            refuse("say which paper, such as SEC; `metricsweep reproduction` lists them")
        _list_papers(server, as_json)
        return
    if bundles:
        # Imported here, since it loads the libraries of tables, which other commands do not need.
        from orchestrator.service.tables import from_bundles

        rendered = from_bundles(bundles, paper, output_format, within)
    else:
        with server.connect() as client:
            rendered = client.evidence.reproduction_file(paper, output_format, within)
    emit(rendered.content, output_format, file)


def _list_papers(server: Server, as_json: bool) -> None:
    with server.connect() as client:
        papers = client.evidence.reproductions()
    if as_json:
        print_json(papers)
        return
    words = papers[0].counts.by_status if papers else {}
    rows = [
        {"paper": summary.paper} | {word: str(count) for word, count in summary.counts.by_status.items()}
        for summary in papers
    ]
    print_rows(rows, numbers=tuple(words))
    out.print(
        "The numbers of each paper by what own runs say of them; `metricsweep reproduction PAPER` has them one by one."
    )


def optimism(server: Server, number: SweepId, as_json: Json = False) -> None:
    """Print how much selection inflates the score of each cell, and the expected best of fewer candidates."""
    with server.connect() as client:
        found = client.evidence.optimism(number)
    if as_json:
        print_json(found)
        return
    rows = []
    for cell in found.cells:
        curve = cell.expected
        rows.append(
            {
                "cell": _cell(cell.labels),
                "candidates": str(cell.candidates),
                "runs": str(cell.runs),
                "best": "" if cell.best is None else f"{cell.best:.4f}",
                "optimism": cell.reason if cell.optimism is None else f"{cell.optimism:+.4f}",
                "expected best of 1, half, all": ", ".join(
                    f"{curve[at]:.4f}" for at in dict.fromkeys((0, (len(curve) - 1) // 2, len(curve) - 1)) if curve
                ),
            }
        )
    print_rows(rows, numbers=("candidates", "runs", "best"))
    out.print(found.summary)


def published(
    table_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="A table, such as SEC-T3; without it, the list of tables.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like",
            metavar="FILE",
            callback=readable,
            help="Use the layout of a table of this spec.",
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", help="The table of that spec; by default its first.", metavar="NAME")
    ] = None,
    changes: Changes = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="markdown, csv or json; with --like also latex or html; by default from the ending of --out.",
        ),
    ] = None,
    file: OutFile = None,
    as_json: Json = False,
) -> None:
    """List the printed tables of the papers, or print one."""
    from orchestrator.service import offline
    from workers import catalog as catalogs

    if table_id is None:
        if like or table is not None or changes or file_format is not None or file:
            refuse("say which table, such as SEC-T3; `metricsweep published` lists them")
        tables = offline.published_tables(catalogs.load(settings().parts))
        if as_json:
            print_json(tables)
        else:
            out.print("id        numbers  title")
            for summary in tables:  # a title may be longer than a terminal is wide, and an id must not be cut for it
                out.print(f"{summary.id:10}{summary.count:7}  {summary.title}")
        return
    output_format = "json" if as_json else file_format or SUFFIXES.get(file.suffix if file else "", "markdown")
    if like is None:
        rendered = offline.published_file(table_id, output_format, settings())
    else:
        rendered = offline.published_like(table_id, read_spec(like, changes), table, output_format, settings())
    emit(rendered.content, output_format, file)


def _above_zero(value: float | None) -> float | None:
    if value is not None and not 0 < value <= _MOST:
        raise typer.BadParameter(f"{value:g} is not above 0 and at most {_MOST:,}")
    return value


def resolve(
    server: Server,
    number: SweepId,
    name: TableName = None,
    hours: Annotated[
        float | None, typer.Option(callback=_above_zero, help="Budget: hours of training on one slot.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, max=48, help="Budget: most further seeds of a cell.")] = None,
    within: Annotated[
        float | None,
        typer.Option(
            callback=_above_zero,
            help="A comparison with an interval of ± this or narrower, in the unit of the column, counts as decided.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what the first round would train.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Begin without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Add seeds where comparisons are still open, in rounds, within a budget; prints the first round and asks."""
    from orchestrator.views.evidence import ResolutionBudget

    budget = ResolutionBudget(hours=hours, seeds=seeds, within=within)
    with server.connect() as client:
        if dry_run or not as_json:
            _print_resolution(client.resolutions.plan(number, budget, name), as_json)
        if dry_run:
            return
        if sys.stdin.isatty() and not yes:
            typer.confirm("Begin?", abort=True)
        words = f"resolution requested; `metricsweep resolution {number}` shows it"
        report_request(client, client.resolutions.request(number, budget, name), words)


def resolution(
    server: Server,
    number: SweepId,
    halt: Annotated[bool, typer.Option("--halt", help="Start no further round.")] = False,
    as_json: Json = False,
) -> None:
    """Show what the last `resolve` did, or stop it with --halt."""
    with server.connect() as client:
        if halt:
            report_request(client, client.resolutions.halt(number), "stop of the resolution requested")
        else:
            _print_resolution(client.resolutions.get(number), as_json)


def _print_resolution(found: "ResolutionView", as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [
        {
            "cell": _cell(before.labels),
            "metric": before.metric,
            "before": before.summary,
            **({"to decide": before.to_decide} if found.state == "planned" else {}),
            **({"after": after.summary if after else ""} if found.after else {}),
        }
        for before, after in found.changed()
    ]
    print_rows(rows)
    for trained in found.rounds:
        cells = "; ".join(f"{_cell(cell.labels)}: seeds {', '.join(map(str, cell.seeds))}" for cell in trained.cells)
        hours = "" if trained.hours is None else f", about {trained.hours:.2g} hours on one slot"
        out.print(f"round {trained.number}: {trained.trials} trials{hours}: {cells}")
    for left in found.rounds[-1].left_out if found.rounds else []:
        out.print(f"left out: {_cell(left.labels)}, {left.metric}: {left.why}")
    out.print(f"{found.state}: {found.summary} (budget: {found.budget.summary})")
    if found.state == "ended":
        rounds = f"{len(found.rounds)} round{'s' * (len(found.rounds) != 1)}"
        out.print(
            f"{found.trials} trials in {rounds}, {found.hours_spent:.3g} hours on one slot; "
            f"{found.saved} trials less than with as many seeds for every compared cell"
        )


def _cell(labels: Mapping[str, str]) -> str:
    return " / ".join(labels.values()) or "the only cell"


def verdicts(
    server: Server,
    number: SweepId,
    name: TableName = None,
    covers: Annotated[
        Literal["seeds", "queries", "both"] | None,
        typer.Option(
            help="What verdicts hold for: other seeds, other test queries, or both; by default as in the spec."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print whether each cell is better than its baseline, or how many more seeds would decide it."""
    with server.connect() as client:
        judged = client.verdicts(number, name, covers)
    if as_json:
        print_json(judged)
        return
    rows = [
        {
            "cell": _cell(verdict.labels),
            "metric": verdict.metric,
            "difference": "" if verdict.difference is None else f"{verdict.difference:+.4f}",
            "seeds": str(verdict.pairs),
        }
        | ({} if judged.covers == "seeds" else _errors(verdict))
        | {"verdict": verdict.summary, "to decide": verdict.to_decide}
        for verdict in judged.comparisons
    ]
    print_rows(rows, numbers=("difference", "seeds", "by seeds", "by queries"))
    out.print(judged.summary)


def _errors(verdict: "CellVerdictView") -> dict[str, str]:
    """The standard errors of the difference, by their source."""
    known = {"by seeds": verdict.error_seeds, "by queries": verdict.error_queries}
    return {name: f"±{error:.4f}" if error is not None else "" for name, error in known.items()}
