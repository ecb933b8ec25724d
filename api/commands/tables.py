"""Commands that print and write tables, bundles and figures, and read imports and the catalog."""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from api.commands.sweeps import report_request
from api.commands.terminal import (
    FAILED,
    Json,
    OutFile,
    Server,
    SweepId,
    TableName,
    err,
    out,
    print_json,
    print_markdown,
    print_rows,
    read_spec,
    readable,
    refuse,
)
from orchestrator.host.disk import replace_file, replacing
from orchestrator.service import offline
from orchestrator.views.pages import FIGURE_FORMATS
from workers.catalog import unknown

if TYPE_CHECKING:
    from api.client import Client
    from orchestrator.views.sweeps import SweepView
    from workers.catalog import Catalog, Entry, Parameter

OutFileShort = Annotated[
    Path | None, typer.Option("--out", "--output", "-o", dir_okay=False, help="Write it to this file.")
]
SUFFIXES: Final = {".tex": "latex", ".md": "markdown", ".html": "html", ".csv": "csv", ".json": "json"}


def table(
    server: Server,
    number: SweepId,
    name: TableName = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="latex, latex_document, markdown, html, csv or json; by default from the ending of --out.",
        ),
    ] = None,
    file: OutFileShort = None,
    tuned: Annotated[
        bool | None,
        typer.Option(
            "--tuned/--no-tuned", help="Show the selected value of each tuned axis; by default as in the spec."
        ),
    ] = None,
    numbers: Annotated[
        Literal["own", "published", "difference", "both", "verdict"],
        typer.Option(help="Your numbers, the printed numbers of the paper, or a comparison."),
    ] = "own",
    bundle: Annotated[
        Path | None,
        typer.Option(
            "--bundle",
            dir_okay=False,
            metavar="FILE.zip",
            help="Instead of a table, write the whole sweep as a bundle.",
        ),
    ] = None,
    macros: Annotated[
        Path | None,
        typer.Option("--macros", dir_okay=False, metavar="FILE.tex", help="Write a LaTeX macro for each number."),
    ] = None,
    prefix: Annotated[str, typer.Option(help="The prefix of the macros.", metavar="LETTERS")] = "ms",
) -> None:
    """Print or write a table; a running sweep's table shows what is missing."""
    output_format = file_format or SUFFIXES.get(file.suffix if file else "", "markdown")
    with server.connect() as client:
        if bundle is not None:
            write_bundle(client, number, bundle)
            return
        if macros is not None:
            made = client.evidence.macros_file(number, name or _first(client, number, "table"), "latex", prefix)
            emit(made.content, "latex", macros)
            return
        rendered = client.table(number, name or _first(client, number, "table"), output_format, tuned, numbers)
    emit(rendered.content, output_format, file)


def emit(content: bytes, format_name: str, file: Path | None) -> None:
    """Write a table or figure to a file, or print it."""
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


def _first(client: "Client", sweep: int, noun: Literal["table", "figure"]) -> str:
    """The name of a sweep's first table or figure."""
    found = client.sweep(sweep)
    names = found.tables if noun == "table" else found.figures
    if not names:
        refuse(f"sweep {sweep} has no {noun}; add one under `{noun}s` in its spec")
    return names[0]


def write_results(client: "Client", sweep: "SweepView", folder: Path) -> Iterator[Path]:
    """Write every table as LaTeX, Markdown and CSV, and every figure in every format; yields the files."""
    stem = folder / _in_file_name(sweep.name)
    for name, suffix in product(sweep.tables, (".tex", ".md", ".csv")):
        path = Path(f"{stem}-{_in_file_name(name)}{suffix}")
        replace_file(path, client.table(sweep.id, name, SUFFIXES[suffix]).content)
        yield path
    for name, form in product(sweep.figures, FIGURE_FORMATS):
        # With `figure`, since it would otherwise overwrite the CSV of a table with the same name.
        path = Path(f"{stem}-figure-{_in_file_name(name)}.{form}")
        replace_file(path, client.figure(sweep.id, name, form).content)
        yield path


def _in_file_name(name: str) -> str:
    """A name as a part of a file name: without separators and leading dots."""
    return "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in name).lstrip(".") or "table"


def write_bundle(client: "Client", sweep: int, file: Path) -> None:
    """Write a sweep's bundle to a file, which appears only when it is complete."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as into:
        client.bundle(sweep, into)
    err.print(f"wrote {file}")


def rebuild(
    file: Annotated[Path, typer.Argument(metavar="FILE.zip", callback=readable, help="A bundle.")],
    table: Annotated[str | None, typer.Option("--table", help="Only this table.", metavar="NAME")] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="Only this format, such as latex, markdown, html, csv or json.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", file_okay=False, metavar="DIR", help="Folder for the rebuilt files.")
    ] = None,
) -> None:
    """Check a bundle and rebuild its tables from its data.

    Exits with 0 if the rebuilt tables are the same to the byte, else with 1.
    """
    # Imported here, since it loads the libraries of tables, which other commands do not need.
    from orchestrator.service import tables

    report = tables.rebuild(file, table, file_format)
    out.print(f"bundle of sweep {report.head.id} ({report.head.name}, {report.head.state}), manifest {report.id}")
    out.print(f"{report.files} files as the manifest says")
    for remade in report.made:
        result = "identical" if remade.identical else f"DIFFERS: {remade.difference}"
        out.print(f"{remade.table:16} {remade.numbers:8} {remade.format:15} {result}")
        if folder is not None:
            replace_file(folder / remade.file, remade.content)
    if folder is not None:
        err.print(f"wrote {len(report.made)} files under {folder}")
    if report.identical:
        return
    for package, (before, now) in report.versions.items():
        out.print(f"made with {package} {before}, rebuilt with {now}")
    raise typer.Exit(FAILED)


def catalog(
    server: Server,
    kind: Annotated[str | None, typer.Argument(help="Only parts of this kind, such as loss.")] = None,
    name: Annotated[str | None, typer.Argument(help="The part to show.")] = None,
    as_json: Json = False,
) -> None:
    """List the parts that a recipe may name, or show one with its hyper-parameters."""
    from api.connection import Unreachable

    try:
        with server.connect() as client:
            whole = client.catalog()
    except Unreachable:
        from workers.catalog import load

        if server.url:
            err.print(f"{server.url} does not answer; these are the parts of this installation")
        whole = load()
    found = _chosen(whole, kind, name)
    if as_json:
        print_json(found)
    elif name:
        for entry in found:
            _show(entry)
    else:
        print_rows(
            [
                {"kind": entry.kind, "name": entry.name, "label": entry.label, "paper": entry.paper or ""}
                for entry in found
            ]
        )


def _chosen(whole: "Catalog", kind: str | None, name: str | None) -> "list[Entry]":
    kinds = list(dict.fromkeys(entry.kind for entry in whole.entries))
    if kind and kind not in kinds:
        refuse(unknown("kind", kind, kinds))
    found = [entry for entry in whole.entries if kind in (None, entry.kind) and name in (None, entry.name)]
    if not found:
        refuse(unknown(kind or "part", name or "", whole.names(kind) if kind else []))
    return found


def _show(entry: "Entry") -> None:
    out.print(f"{entry.kind} {entry.name}: {entry.label}" + (f" ({entry.paper})" if entry.paper else ""))
    if entry.doc:
        out.print(f"  {entry.doc}")
    for parameter in entry.parameters:
        out.print(f"  {parameter.name}: {_described(parameter)}")


def _described(parameter: "Parameter") -> str:
    choices = ", ".join(map(str, parameter.choices or ()))
    choices = choices and f" {'or' if parameter.type == 'int' else 'of'} {choices}"
    optional = " or null" if parameter.optional else ""
    default = "required" if parameter.required else f"default {parameter.default}"
    type_ = f"a {parameter.kind}" if parameter.type == "part" else parameter.type
    return f"{type_}{choices}{optional}, {default}"


def compare(
    server: Server,
    ids: Annotated[list[int], typer.Argument(min=1, metavar="ID", help="The sweeps' numbers; two or more.")],
    table: Annotated[
        str | None, typer.Option("--table", help="A table of the first sweep; by default its first.", metavar="NAME")
    ] = None,
    view: Annotated[
        Literal["merge", "difference"],
        typer.Option(
            help="`merge`: all cells, each from the first sweep that has it; `difference`: two sweeps side by side."
        ),
    ] = "merge",
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format", help="latex, markdown, html, csv or json; by default from the ending of --out, else markdown."
        ),
    ] = None,
    file: OutFile = None,
) -> None:
    """Print or write one table of several sweeps, merged or as a difference."""
    if len(ids) < 2:
        raise typer.BadParameter("name two sweeps or more, such as `metricsweep compare 7 9`")
    output_format = file_format or SUFFIXES.get(file.suffix if file else "", "markdown")
    with server.connect() as client:
        rendered = client.compare(ids, table, view, output_format)
    emit(rendered.content, output_format, file)


_BINARY: Final = ("png", "pdf")


def figure(
    server: Server,
    number: SweepId,
    name: Annotated[
        str | None,
        typer.Argument(
            help="The figure's name in the spec, by default its first; or a description of another, such as "
            "'{kind: bars, metric: recall@1, x: loss}'."
        ),
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format", help="json (Vega-Lite), svg, png, pdf or csv; by default from the ending of --out, else json."
        ),
    ] = None,
    file: OutFileShort = None,
    heading: Annotated[
        bool, typer.Option("--heading/--no-heading", help="Draw title and caption, or leave them out for a paper.")
    ] = True,
) -> None:
    """Print or write a figure; a running sweep's figure shows what is missing."""
    ending = file.suffix.removeprefix(".").lower() if file else ""
    output_format = file_format or (ending if ending in FIGURE_FORMATS else "json")
    if output_format in _BINARY and file is None and sys.stdout.isatty():
        refuse(f"{output_format} is a binary format; name a file with --out FILE.{output_format}")
    with server.connect() as client:
        rendered = client.figure(number, name or _first(client, number, "figure"), output_format, heading)
    emit(rendered.content, output_format, file)


_EXPORTS: Final = {"summary": "", "wandb": " (an export of W&B)", "mlflow": " (an export of MLflow)"}

Texts = list[str] | None
File = Annotated[Path, typer.Argument(metavar="FILE", callback=readable, help="A CSV; - reads standard input.")]
Into = Annotated[
    str | None,
    typer.Argument(help="A spec file or a sweep's number; without it, the rows are only printed.", metavar="SPEC|ID"),
]
Unit = Annotated[
    Literal["percent", "fraction"] | None,
    typer.Option(help="Whether shares in FILE are percent (65.1) or fractions (0.651)."),
]
Layout = Annotated[
    Literal["summary", "wandb", "mlflow"],
    typer.Option(
        "--from",
        help="summary: a line per number (metric, mean, std, n); wandb, mlflow: a line per run, as they export it.",
    ),
]
Named = Annotated[str | None, typer.Option(help="The table's name; by default the first.")]
Row = Annotated[
    Texts, typer.Option(help="A column whose text labels the row. May be given several times.", metavar="COLUMN")
]
Label = Annotated[str, typer.Option(help="The label of the row, if no column has it.")]
Axis = Annotated[
    Texts,
    typer.Option(
        help="An axis of the table's columns, and the column of FILE with its labels.", metavar="AXIS[=COLUMN]"
    ),
]
Metric = Annotated[Texts, typer.Option(help="A metric of the table, and its name in FILE.", metavar="METRIC[=NAME]")]
Rename = Annotated[Texts, typer.Option(help="The axis label for a text in FILE.", metavar="TEXT=LABEL")]
Where = Annotated[Texts, typer.Option(help="Take only lines with this text in a column.", metavar="COLUMN=TEXT")]
Columns = Annotated[
    Texts, typer.Option(help="With --from summary: the column of metric, mean, std or n.", metavar="WHAT=COLUMN")
]
Seed = Annotated[
    str, typer.Option(help="The column with the seeds; two runs with the same seed are refused.", metavar="COLUMN")
]
Against = Annotated[
    Texts, typer.Option(help="A label of your row with which the numbers are compared by a test.", metavar="AXIS=LABEL")
]
Source = Annotated[str | None, typer.Option(help="Where the numbers come from; by default the name of FILE.")]


def import_(
    server: Server,
    file: File,
    into: Into = None,
    unit: Unit = None,
    layout: Layout = "summary",
    table: Named = None,
    row: Row = None,
    label: Label = "",
    axis: Axis = None,
    metric: Metric = None,
    rename: Rename = None,
    where: Where = None,
    column: Columns = None,
    seed: Seed = "",
    against: Against = None,
    source: Source = None,
    file_out: OutFile = None,
) -> None:
    """Add other people's numbers to a table, as marked rows.

    FILE has means with std and n, or the runs that W&B or MLflow export.
    """
    if unit is None:
        raise typer.BadParameter("say how the file writes shares: --unit percent (65.1) or --unit fraction (0.651)")
    name = "standard input" if str(file) == "-" else file.name
    taken = offline.imported_rows(
        read_spec(file), str(file), layout=layout, unit=unit, source=source or f"{name}{_EXPORTS[layout]}",
        rows=tuple(row or ()), label=label, axes=_pairs("axis", axis, value_optional=True),
        metrics=_pairs("metric", metric, value_optional=True),
        renamed=_pairs("rename", rename), where=_pairs("where", where),
        columns=_columns(column), seed=seed, against=_pairs("against", against) or None,
    )  # fmt: skip
    for note in taken.notes:
        err.print(f"metricsweep: {note}")
    if into is None:
        emit(f"{json.dumps(taken.rows, indent=2, ensure_ascii=False)}\n".encode(), "json", file_out)
    elif not into.isdigit():
        if not Path(into).is_file():
            raise typer.BadParameter(f"there is no spec {into}; name one, or the number of a sweep")
        emit(offline.with_imported(Path(into).read_bytes(), table, taken.rows), "yaml", file_out)
    else:
        with server.connect() as client:
            sweep = client.sweep(int(into))
            response = client.extend(sweep.id, offline.with_imported(sweep.text.encode(), table, taken.rows))
            many = "1 row" if len(taken.rows) == 1 else f"{len(taken.rows)} rows"
            report_request(client, response, f"import of {many} requested")


def _pairs(option: str, values: Sequence[str] | None, *, value_optional: bool = False) -> dict[str, str]:
    """Options of the form NAME=TEXT as a dict; with `value_optional`, NAME means NAME=NAME."""
    found: dict[str, str] = {}
    for value in values or ():
        name, sign, text = value.partition("=")
        if not name or not (sign or value_optional):
            raise typer.BadParameter(f"expected NAME=TEXT after --{option}, found {value!r}")
        if found.setdefault(name, text if sign else name) != (text if sign else name):
            raise typer.BadParameter(f"--{option} {name} is given twice")
    return found


def _columns(values: Sequence[str] | None) -> dict[str, str]:
    found = _pairs("column", values)
    if wrong := [name for name in found if name not in {"metric", "mean", "std", "n"}]:
        raise typer.BadParameter(f"--column says which column is metric, mean, std or n, found {wrong[0]!r}")
    return found
