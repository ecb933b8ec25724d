"""`published`: what the papers printed, without a server."""

from pathlib import Path
from typing import Annotated, Final

import typer

from api.commands.options import Changes, Json, read_spec, readable, settings
from api.commands.tables import SUFFIXES, emit
from api.commands.terminal import WRONG, err, out, print_json

_MARKDOWN: Final = "markdown"


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
    file: Annotated[Path | None, typer.Option("--out", dir_okay=False, help="Write it to this file.")] = None,
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
    wanted = "json" if as_json else file_format or SUFFIXES.get(file.suffix if file else "", _MARKDOWN)
    if like is None:
        rendered = offline.published_file(table_id, wanted)
    else:
        rendered = offline.published_like(table_id, read_spec(like, changes), table, wanted, settings())
    emit(rendered.content, wanted, file)


def _refuse_without_id(*given: object) -> None:
    if any(one is not None and one != [] for one in given):
        err.print("metricsweep: say which table, such as SEC-T3; `metricsweep published` lists them")
        raise typer.Exit(WRONG)
