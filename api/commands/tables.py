"""`table`: a table of a sweep, printed or written to a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from api.commands.bundles import write_bundle
from api.commands.options import HOME, Home, SweepId, Token, Url, connect
from api.commands.terminal import WRONG, err, out, print_markdown
from orchestrator.host.disk import replace_file

if TYPE_CHECKING:
    from api.client import Client

SUFFIXES: Final = {".tex": "latex", ".md": "markdown", ".html": "html", ".csv": "csv", ".json": "json"}


def table(
    number: SweepId,
    name: Annotated[str | None, typer.Argument(help="The table's name in the spec; by default its first.")] = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="latex, latex_document, markdown, html, csv or json; by default as the file ends.",
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", dir_okay=False, help="Write it to this file.")
    ] = None,
    tuned: Annotated[
        bool | None, typer.Option("--tuned/--no-tuned", help="Show the chosen candidate; by default as the spec says.")
    ] = None,
    numbers: Annotated[
        Literal["own", "published", "difference", "both", "verdict"],
        typer.Option(help="Own numbers, those of the paper that the table names, or how they compare."),
    ] = "own",
    bundle: Annotated[
        Path | None,
        typer.Option(
            "--bundle", dir_okay=False, metavar="FILE.zip", help="Write the whole sweep as one archive instead."
        ),
    ] = None,
    macros: Annotated[
        Path | None,
        typer.Option("--macros", dir_okay=False, metavar="FILE.tex", help="Write a LaTeX macro for each number."),
    ] = None,
    prefix: Annotated[str, typer.Option(help="With what the macros begin.", metavar="LETTERS")] = "ms",
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Print or write a table; a sweep that still runs gives one that says what is missing."""
    wanted = file_format or SUFFIXES.get(file.suffix if file else "", "markdown")
    with connect(url, token, home) as client:
        if bundle is not None:
            write_bundle(client, number, bundle)
            return
        if macros is not None:
            made = client.evidence.macros_file(number, name or first_table(client, number), "latex", prefix)
            emit(made.content, "latex", macros)
            return
        rendered = client.table(number, name or first_table(client, number), wanted, tuned, numbers)
    emit(rendered.content, wanted, file)


def emit(content: bytes, format_name: str, file: Path | None) -> None:
    """Write a table to the file, or print it."""
    if file is not None:
        replace_file(file, content)
        err.print(f"wrote {file}")
        return
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(content)
    elif format_name == "markdown":
        print_markdown(content.decode())
    else:
        out.print(content.decode().rstrip("\n"))


def first_table(client: "Client", sweep: int) -> str:
    """The name of the first table of a sweep's spec."""
    names = client.sweep(sweep).tables
    if not names:
        err.print(f"metricsweep: sweep {sweep} has no table; add one under `tables` in its spec")
        raise typer.Exit(WRONG)
    return names[0]


def print_table(client: "Client", sweep: int, name: str) -> None:
    """A table for the eye: laid out in a terminal, as Markdown elsewhere."""
    print_markdown(client.table(sweep, name, "markdown").content.decode())


def write_tables(client: "Client", sweep: int, names: list[str], stem: str, folder: Path) -> list[Path]:
    """Write every table as LaTeX, Markdown and CSV; returns the files."""
    written = []
    for name in names:
        for suffix in (".tex", ".md", ".csv"):
            path = folder / f"{plain(stem)}-{plain(name)}{suffix}"
            replace_file(path, client.table(sweep, name, SUFFIXES[suffix]).content)
            written.append(path)
    return written


def plain(name: str) -> str:
    """A name as part of a file's: no separators, nothing hidden."""
    return "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in name).lstrip(".") or "table"
