"""`ledger`: what own runs say of each number that a paper printed."""

from pathlib import Path
from typing import Annotated, Final

import typer

from api.commands.options import HOME, Home, Json, Token, Url, connect
from api.commands.tables import SUFFIXES, emit
from api.commands.terminal import WRONG, err, out, print_json, print_rows

_MARKDOWN: Final = "markdown"


def ledger(
    paper: Annotated[
        str | None, typer.Argument(metavar="[PAPER]", help="A paper, such as SEC; without one, all are counted.")
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="markdown, latex, csv or json. By default as the file ends."),
    ] = None,
    file: Annotated[Path | None, typer.Option("--out", dir_okay=False, help="Write it to this file.")] = None,
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
    wanted = "json" if as_json else file_format or SUFFIXES.get(file.suffix if file else "", _MARKDOWN)
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
