"""`figure`: a figure of a sweep, printed or written to a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from api.commands.options import HOME, Home, SweepId, Token, Url, connect
from api.commands.tables import plain
from api.commands.terminal import WRONG, err, out
from orchestrator.host.disk import replace_file
from orchestrator.views.files import FIGURE_FORMATS

if TYPE_CHECKING:
    from api.client import Client

_BINARY: Final = ("png", "pdf")


def figure(
    number: SweepId,
    name: Annotated[str | None, typer.Argument(help="The figure's name in the spec; by default its first.")] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="json (Vega-Lite), svg, png, pdf or csv; by default as the file ends, or json."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", dir_okay=False, help="Write it to this file.")
    ] = None,
    heading: Annotated[
        bool, typer.Option("--heading/--no-heading", help="With title and caption, or bare for a paper.")
    ] = True,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Print or write a figure; a sweep that still runs gives one that says what is missing."""
    ending = file.suffix.removeprefix(".").lower() if file else ""
    wanted = file_format or (ending if ending in FIGURE_FORMATS else "json")
    if wanted in _BINARY and file is None and sys.stdout.isatty():
        err.print(f"metricsweep: a {wanted} is no text; say where it goes with --out FILE.{wanted}")
        raise typer.Exit(WRONG)
    with connect(url, token, home) as client:
        rendered = client.figure(number, name or _first(client, number), wanted, heading)
    if file is None:
        if sys.stdout.isatty():
            out.print(rendered.content.decode().rstrip("\n"))
        else:
            sys.stdout.buffer.write(rendered.content)
        return
    replace_file(file, rendered.content)
    err.print(f"wrote {file}")


def _first(client: "Client", sweep: int) -> str:
    """The name of the first figure of a sweep's spec."""
    names = client.sweep(sweep).figures
    if not names:
        err.print(f"metricsweep: sweep {sweep} has no figure; add one under `figures` in its spec")
        raise typer.Exit(WRONG)
    return names[0]


def write_figures(client: "Client", sweep: int, names: list[str], stem: str, folder: Path) -> list[Path]:
    """Write every figure in every format; returns the files."""
    written = []
    for name in names:
        for format_name in FIGURE_FORMATS:
            # Not the stem of a table of the same name, whose CSV would be overwritten.
            path = folder / f"{plain(stem)}-figure-{plain(name)}.{format_name}"
            replace_file(path, client.figure(sweep, name, format_name).content)
            written.append(path)
    return written
