"""`compare`: one table of several sweeps."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from api.commands.options import HOME, Home, Token, Url, connect
from api.commands.tables import SUFFIXES, emit


def compare(
    ids: Annotated[list[int], typer.Argument(min=1, metavar="ID...", help="The sweeps' numbers; two or more.")],
    table: Annotated[
        str | None, typer.Option("--table", help="A table of the first sweep; by default its first.", metavar="NAME")
    ] = None,
    view: Annotated[
        Literal["merge", "difference"],
        typer.Option(help="One table of all cells, or two sweeps side by side with own - other."),
    ] = "merge",
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="latex, markdown, html, csv or json; by default as the file ends, or markdown."),
    ] = None,
    file: Annotated[Path | None, typer.Option("--out", dir_okay=False, help="Write it to this file.")] = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Print or write one table of several sweeps; where several have a cell, the first named one's numbers stand."""
    if len(ids) < 2:
        raise typer.BadParameter("name two sweeps or more, such as `metricsweep compare 7 9`")
    wanted = file_format or SUFFIXES.get(file.suffix if file else "", "markdown")
    with connect(url, token, home) as client:
        rendered = client.compare(ids, table, view, wanted)
    emit(rendered.content, wanted, file)
