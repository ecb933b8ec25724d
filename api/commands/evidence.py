"""Commands that say what numbers rest on: checks, changes, verdicts, resolutions, published numbers."""

import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from api.commands.sweeps import follow_request
from api.commands.tables import SUFFIXES, emit, write_bundle
from api.commands.terminal import (
    FAILED,
    HOME,
    WRONG,
    Changes,
    Home,
    Json,
    OutFile,
    SweepId,
    TableName,
    Token,
    Url,
    connect,
    err,
    out,
    print_json,
    print_rows,
    read_spec,
    readable,
    settings,
)
from api.connection import ApiError
from orchestrator.views.errors import NotFoundError

if TYPE_CHECKING:
    from api.client import Client
    from orchestrator.service.offline import ManuscriptReport, Records, Whole
    from orchestrator.views.evidence import CellVerdictView, MacroAddress, MacrosView, ResolutionRound, ResolutionView
    from orchestrator.views.pages import Rendered

MOST: Final = 1_000_000


def above_zero(value: float | None) -> float | None:
    """A number above 0, or None; raises BadParameter for any other."""
    if value is not None and not 0 < value <= MOST:
        raise typer.BadParameter(f"{value:g} is not above 0 and at most {MOST:,}")
    return value


Hours = Annotated[
    float | None, typer.Option(callback=above_zero, help="Budget: at most so many hours of training on one slot.")
]
Seeds = Annotated[int | None, typer.Option(min=1, max=48, help="Budget: at most so many further seeds of any cell.")]


def check(
    paper: Annotated[Path, typer.Argument(metavar="PAPER.tex", help="The paper; what it takes in is read, too.")],
    bundles: Annotated[
        list[Path] | None,
        typer.Option(
            "--bundle", exists=True, dir_okay=False, metavar="FILE.zip", help="Against bundles, without a server."
        ),
    ] = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Find numbers of a paper that no longer agree with the database or a bundle: 0 where all do, else 1."""
    # Here and not above: it brings the libraries of tables, which the other commands do not wait for.
    from orchestrator.service.offline import bundled
    from orchestrator.service.offline import check as checked

    if bundles:
        report = checked(paper, *bundled(bundles))
    else:
        with connect(url, token, home) as client:
            report = checked(paper, _records(client), _whole(client))
    _tell(report)
    if not report.agrees:
        raise typer.Exit(FAILED)


def _records(client: "Client") -> "Records":
    def today(of: "MacroAddress") -> "MacrosView":
        try:
            return client.evidence.macros(of.sweep, of.table, of.prefix)
        except ApiError as error:
            if error.status == 404:
                raise NotFoundError(str(error)) from error
            raise

    return today


def _whole(client: "Client") -> "Whole":
    def today(sweep: int, table: str) -> str:
        try:
            return client.table(sweep, table, "latex").content.decode()
        except ApiError as error:
            if error.status == 404:
                raise NotFoundError(str(error)) from error
            raise

    return today


def _tell(report: "ManuscriptReport") -> None:
    for wrong in report.disagreements:
        name = f" \\{wrong.name}" if wrong.name else ""
        used = f"printed at {', '.join(wrong.used)}" if wrong.used else "which the paper does not print"
        out.print(f"{wrong.where}:{name}: {wrong.said}; {used}")
    stale = sum(bool(one.used) for one in report.disagreements)
    for file in report.outside:
        out.print(f"{file}: not read, since it lies outside of the paper's folder")
    if report.tables:
        out.print(f"{report.tables} table{'s' * (report.tables != 1)} taken in whole")
    if report.tables and not report.files:
        out.print("all agree" if not stale else f"{stale} do not agree")
        return
    out.print(
        f"{report.used} of {report.numbers} numbers in {report.files} file{'s' * (report.files != 1)} are printed: "
        + ("all agree" if not stale else f"{stale} do not agree")
    )
    sys.stdout.flush()


_SIDE: Final = "A sweep (7), it at a time (7@2026-11-20T12:00, UTC), or a bundle (out.zip)."


def drift(
    before: Annotated[str, typer.Argument(help=_SIDE, metavar="BEFORE")],
    after: Annotated[str, typer.Argument(help="The same.", metavar="AFTER")],
    table: Annotated[
        str | None, typer.Option("--table", help="A table of both; by default the first.", metavar="NAME")
    ] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="text or json; by default as the file ends, or text.")
    ] = None,
    file: OutFile = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Say which cells of a table changed, by what, and whether by more than noise."""
    wanted = file_format or ("json" if file and file.suffix == ".json" else "text")
    files = [_bundle(side) for side in (before, after)]
    if not any(files):
        with connect(url, token, home) as client:
            rendered = client.evidence.drift(before, after, table, wanted)
    else:
        with TemporaryDirectory() as folder:
            packed = [one or _packed(side, Path(folder), (url, token, home))
                      for one, side in zip(files, (before, after), strict=True)]  # fmt: skip
            rendered = _between(packed[0], packed[1], table, wanted)
    emit(rendered.content, wanted, file)


def _bundle(side: str) -> Path | None:
    """The file that a side names; None where it is a sweep."""
    if not side.endswith(".zip"):
        return None
    if not (path := Path(side)).is_file():
        raise typer.BadParameter(f"there is no file {side}")
    return path


def _packed(side: str, folder: Path, where: tuple[str | None, str | None, Path]) -> Path:
    """A sweep as a bundle, to be compared with one."""
    if not side.isdigit():
        err.print(f"metricsweep: a bundle is compared with a bundle or with a sweep as it is now, not with {side}")
        raise typer.Exit(WRONG)
    file = folder / f"sweep-{side}.zip"
    with connect(*where) as client:
        write_bundle(client, int(side), file)
    return file


def _between(before: Path, after: Path, table: str | None, file_format: str) -> "Rendered":
    # Here and not above: it brings the libraries of tables, which the other commands do not wait for.
    from orchestrator.service.tables import between_bundles

    return between_bundles(before, after, table, file_format)


def ledger(
    paper: Annotated[
        str | None, typer.Argument(metavar="[PAPER]", help="A paper, such as SEC; without one, all are counted.")
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="markdown, latex, csv or json. By default as the file ends."),
    ] = None,
    file: OutFile = None,
    within: Annotated[
        float, typer.Option("--within", min=0.01, max=50, help="Points of percent that count as the same.")
    ] = 1.0,
    bundles: Annotated[
        list[Path] | None,
        typer.Option(
            "--bundle", exists=True, dir_okay=False, metavar="FILE.zip", help="From bundles alone, without a server."
        ),
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Say of each number of a paper whether own runs reproduce it, and how their protocol differs."""
    wanted = "json" if as_json else file_format or SUFFIXES.get(file.suffix if file else "", "markdown")
    if paper is None:
        if bundles or file or file_format:
            err.print("metricsweep: say which paper, such as SEC; `metricsweep ledger` lists them")
            raise typer.Exit(WRONG)
        _list(as_json, url, token, home)
        return
    if bundles:
        # Here and not above: it brings the libraries of tables, which the other commands do not wait for.
        from orchestrator.service.ledgers import from_bundles

        rendered = from_bundles(bundles, paper, wanted, within)
    else:
        with connect(url, token, home) as client:
            rendered = client.evidence.ledger_file(paper, wanted, within)
    emit(rendered.content, wanted, file)


def _list(as_json: bool, url: str | None, token: str | None, home: Path) -> None:
    with connect(url, token, home) as client:
        papers = client.evidence.ledgers()
    if as_json:
        print_json(papers)
        return
    words = papers[0].counts.by_standing if papers else {}
    rows = [{"paper": one.paper, **{word: str(n) for word, n in one.counts.by_standing.items()}} for one in papers]
    print_rows(rows, numbers=tuple(words))
    out.print("The numbers of each paper by what own runs say of them; `metricsweep ledger PAPER` has them one by one.")


def optimism(number: SweepId, as_json: Json = False, url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Say by how much the best candidate of each cell looks better than it is, and what fewer would have found."""
    with connect(url, token, home) as client:
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
    out.print(found.said)


def published(
    table_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A table, such as SEC-T3; without one, all are listed.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like",
            metavar="FILE",
            callback=readable,
            help="Lay it out as a table of this spec does.",
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", help="Which table of that spec; by default its first.", metavar="NAME")
    ] = None,
    changes: Changes = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="markdown, csv or json; with --like also latex or html. By default as the file ends.",
        ),
    ] = None,
    file: OutFile = None,
    as_json: Json = False,
) -> None:
    """List the papers' tables, or print one, by itself or as a spec lays it out."""
    from orchestrator.service import offline

    if table_id is None:
        _refuse_without_id(like, table, changes, file_format, file)
        tables = offline.published_tables()
        if as_json:
            print_json(tables)
        else:
            out.print("id        numbers  title")
            for summary in tables:  # a title may be longer than a terminal is wide, and an id must not be cut for it
                out.print(f"{summary.id:10}{summary.count:7}  {summary.title}")
        return
    wanted = "json" if as_json else file_format or SUFFIXES.get(file.suffix if file else "", "markdown")
    if like is None:
        rendered = offline.published_file(table_id, wanted)
    else:
        rendered = offline.published_like(table_id, read_spec(like, changes), table, wanted, settings())
    emit(rendered.content, wanted, file)


def _refuse_without_id(*given: object) -> None:
    if any(one is not None and one != [] for one in given):
        err.print("metricsweep: say which table, such as SEC-T3; `metricsweep published` lists them")
        raise typer.Exit(WRONG)


def resolve(
    number: SweepId,
    name: TableName = None,
    hours: Hours = None,
    seeds: Seeds = None,
    within: Annotated[
        float | None,
        typer.Option(callback=above_zero, help="What is known to so much, in the unit of the column, is decided too."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the first round would train.")] = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Train further seeds of those cells alone whose comparisons are open, in rounds, as far as the budget goes."""
    from orchestrator.views.evidence import ResolutionBudget

    budget = ResolutionBudget(hours=hours, seeds=seeds, within=within)
    with connect(url, token, home) as client:
        if dry_run:
            _print(client.resolutions.plan(number, budget, name), as_json)
            return
        asked = client.resolutions.ask(number, budget, name)
        sweep = asked.sweep
        out.print(f"sweep {sweep.id} {sweep.name}: asked to be resolved; `metricsweep resolution {sweep.id}` says how")
        follow_request(client, asked.request)


def resolution(
    number: SweepId,
    halt: Annotated[bool, typer.Option("--halt", help="Ask that no further round follow.")] = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Show what became of a resolution: verdicts before, rounds, verdicts after, trials saved; or end it."""
    with connect(url, token, home) as client:
        if halt:
            asked = client.resolutions.halt(number)
            out.print(f"sweep {number} {asked.sweep.name}: asked that no further round follow")
            follow_request(client, asked.request)
            return
        _print(client.resolutions.get(number), as_json)


def _print(found: "ResolutionView", as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [
        {
            "cell": _cell(before.labels),
            "metric": before.metric,
            "before": before.said,
            **({"after": after.said if after else ""} if found.after else {}),
        }
        for before, after in found.changed()
    ]
    if rows:
        print_rows(rows)
    for trained in found.rounds:
        out.print(_round(trained))
    for left in found.rounds[-1].left_out if found.rounds else []:
        out.print(f"left out: {_cell(left.labels)}, {left.metric}: {left.why}")
    out.print(f"{found.state}: {found.said} (budget: {found.budget.said})")
    if found.state == "ended":
        rounds = f"{len(found.rounds)} round{'s' * (len(found.rounds) != 1)}"
        out.print(
            f"{found.trials} trials in {rounds}, {found.hours_spent:.3g} hours on one slot; "
            f"{found.saved} trials less than with as many seeds for every compared cell"
        )


def _round(one: "ResolutionRound") -> str:
    cells = "; ".join(f"{_cell(cell.labels)}: seeds {', '.join(map(str, cell.seeds))}" for cell in one.cells)
    hours = "" if one.hours is None else f", about {one.hours:.2g} hours on one slot"
    return f"round {one.number}: {one.trials} trials{hours}: {cells}"


def _cell(labels: Mapping[str, str]) -> str:
    return " / ".join(labels.values()) or "the only cell"


def verdicts(
    number: SweepId,
    name: TableName = None,
    covers: Annotated[
        Literal["seeds", "queries", "both"] | None,
        typer.Option(
            help="What they cover: other seeds, other test queries of these trainings, or both; by default as the "
            "table's spec says."
        ),
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Say of each cell whether it is better than its baseline, or how many more seeds would tell."""
    with connect(url, token, home) as client:
        judged = client.verdicts(number, name, covers)
    if as_json:
        print_json(judged)
        return
    rows = [
        {
            "cell": _cell(one.labels),
            "metric": one.metric,
            "difference": "" if one.difference is None else f"{one.difference:+.4f}",
            "seeds": str(one.pairs),
        }
        | ({} if judged.covers == "seeds" else _errors(one))
        | {"verdict": one.said}
        for one in judged.comparisons
    ]
    if rows:
        print_rows(rows, numbers=("difference", "seeds", "by seeds", "by queries"))
    out.print(judged.said)


def _errors(one: "CellVerdictView") -> dict[str, str]:
    """The standard errors of the difference by what it may come from."""
    known = {"by seeds": one.error_seeds, "by queries": one.error_queries}
    return {name: f"±{error:.4f}" if error is not None else "" for name, error in known.items()}
