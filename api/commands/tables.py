"""Commands that print and write tables, bundles and figures, and read imports and the catalog."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from api.commands.sweeps import follow_request
from api.commands.terminal import (
    FAILED,
    HOME,
    WRONG,
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
    print_markdown,
    print_rows,
    readable,
)
from orchestrator.host.disk import replace_file, replacing
from orchestrator.service import offline
from orchestrator.views.pages import FIGURE_FORMATS
from workers.catalog import unknown

if TYPE_CHECKING:
    from api.client import Client
    from workers.catalog import Catalog, Entry, Parameter

OutFileShort = Annotated[
    Path | None, typer.Option("--out", "--output", "-o", dir_okay=False, help="Write it to this file.")
]
SUFFIXES: Final = {".tex": "latex", ".md": "markdown", ".html": "html", ".csv": "csv", ".json": "json"}


def table(
    number: SweepId,
    name: TableName = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="latex, latex_document, markdown, html, csv or json; by default as the file ends.",
        ),
    ] = None,
    file: OutFileShort = None,
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
            made = client.evidence.macros_file(number, name or _first(client, number, "table"), "latex", prefix)
            emit(made.content, "latex", macros)
            return
        rendered = client.table(number, name or _first(client, number, "table"), wanted, tuned, numbers)
    emit(rendered.content, wanted, file)


def emit(content: bytes, format_name: str, file: Path | None) -> None:
    """Write a table or figure to the file, or print it."""
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
    """The name of the first table or figure of a sweep's spec."""
    found = client.sweep(sweep)
    names = found.tables if noun == "table" else found.figures
    if not names:
        err.print(f"metricsweep: sweep {sweep} has no {noun}; add one under `{noun}s` in its spec")
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


def write_bundle(client: "Client", sweep: int, file: Path) -> None:
    """Write a sweep's archive to a file, which is there only once it is whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as into:
        client.bundle(sweep, into)
    err.print(f"wrote {file}")


def rebuild(
    file: Annotated[Path, typer.Argument(metavar="FILE.zip", callback=readable, help="A bundle.")],
    table: Annotated[str | None, typer.Option("--table", help="Only this table.", metavar="NAME")] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="Only this format: latex, markdown, html, csv or json ...")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", file_okay=False, metavar="DIR", help="Write what was rebuilt here.")
    ] = None,
) -> None:
    """Check a bundle, make its tables again from its data, and compare: 0 where every byte is the same, else 1."""
    # Here and not above: it brings the libraries of tables, which the other commands do not wait for.
    from orchestrator.service.tables import rebuild as rebuilt

    report = rebuilt(file, table, file_format)
    out.print(f"bundle of sweep {report.head.id} ({report.head.name}, {report.head.state}), manifest {report.id}")
    out.print(f"{report.files} files as the manifest says")
    for remade in report.made:
        where = remade.rendering
        found = "identical" if remade.identical else f"DIFFERS: {remade.difference}"
        out.print(f"{where.table:16} {where.numbers:8} {where.format:15} {found}")
        if folder is not None:
            replace_file(folder / where.file, remade.content)
    if folder is not None:
        err.print(f"wrote {len(report.made)} files under {folder}")
    if report.identical:
        return
    for package, (before, now) in report.versions.items():
        out.print(f"made with {package} {before}, rebuilt with {now}")
    raise typer.Exit(FAILED)


def catalog(
    kind: Annotated[str | None, typer.Argument(help="Only parts of this kind, such as loss.")] = None,
    name: Annotated[str | None, typer.Argument(help="One part of that kind, with its hyper-parameters.")] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """List the parts that a recipe may name, or show one with its hyper-parameters."""
    with connect(url, token, home) as client:
        found = _chosen(client.catalog(), kind, name)
    if as_json:
        print_json(found)
    elif name:
        for entry in found:
            _show(entry)
    else:
        print_rows(
            [{"kind": one.kind, "name": one.name, "label": one.label, "paper": one.paper or ""} for one in found]
        )


def _chosen(whole: "Catalog", kind: str | None, name: str | None) -> "list[Entry]":
    kinds = list(dict.fromkeys(entry.kind for entry in whole.entries))
    if kind and kind not in kinds:
        err.print(f"metricsweep: {unknown('kind', kind, kinds)}")
        raise typer.Exit(WRONG)
    found = [entry for entry in whole.entries if kind in (None, entry.kind) and name in (None, entry.name)]
    if not found:
        err.print(f"metricsweep: {unknown(kind or 'part', name or '', whole.names(kind) if kind else [])}")
        raise typer.Exit(WRONG)
    return found


def _show(entry: "Entry") -> None:
    out.print(f"{entry.kind} {entry.name}: {entry.label}" + (f" ({entry.paper})" if entry.paper else ""))
    if entry.doc:
        out.print(f"  {entry.doc}")
    for parameter in entry.parameters:
        out.print(f"  {parameter.name}: {_described(parameter)}")


def _described(parameter: "Parameter") -> str:
    choices = f" of {', '.join(map(str, parameter.choices))}" if parameter.choices else ""
    optional = " or null" if parameter.optional else ""
    default = "required" if parameter.required else f"default {parameter.default}"
    type_ = f"a {parameter.kind}" if parameter.type == "part" else parameter.type
    return f"{type_}{choices}{optional}, {default}"


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
    file: OutFile = None,
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


_BINARY: Final = ("png", "pdf")


def figure(
    number: SweepId,
    name: Annotated[str | None, typer.Argument(help="The figure's name in the spec; by default its first.")] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="json (Vega-Lite), svg, png, pdf or csv; by default as the file ends, or json."),
    ] = None,
    file: OutFileShort = None,
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
        rendered = client.figure(number, name or _first(client, number, "figure"), wanted, heading)
    emit(rendered.content, wanted, file)


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


_EXPORTS: Final = {"summary": "", "wandb": " (an export of W&B)", "mlflow": " (an export of MLflow)"}


Texts = list[str] | None
File = Annotated[Path, typer.Argument(metavar="FILE", callback=readable, help="A CSV; - reads standard input.")]
Into = Annotated[
    str | None,
    typer.Argument(help="A spec's file or a sweep's number; without it the rows are printed.", metavar="SPEC|ID"),
]
Unit = Annotated[Literal["percent", "fraction"] | None, typer.Option(help="How the file writes shares: 65.1 or 0.651.")]
Layout = Annotated[
    Literal["summary", "wandb", "mlflow"],
    typer.Option("--from", help="A line a number (metric, mean, std, n), or a line a run, as these export them."),
]
Named = Annotated[str | None, typer.Option(help="The table's name; by default its spec's first.")]
Row = Annotated[
    Texts, typer.Option(help="A column whose text labels the row. May be given several times.", metavar="COLUMN")
]
Label = Annotated[str, typer.Option(help="The label of the row, where no column has it.")]
Axis = Annotated[
    Texts, typer.Option(help="A column axis of the table, and the column with its labels.", metavar="AXIS[=COLUMN]")
]
Metric = Annotated[
    Texts, typer.Option(help="A metric of the table, and what the file calls it.", metavar="METRIC[=NAME]")
]
Rename = Annotated[Texts, typer.Option(help="What a text in an axis' column is here.", metavar="TEXT=LABEL")]
Where = Annotated[Texts, typer.Option(help="Take only the lines with this text there.", metavar="COLUMN=TEXT")]
Columns = Annotated[
    Texts, typer.Option(help="Which column of a summary is metric, mean, std or n.", metavar="WHAT=COLUMN")
]
Seed = Annotated[
    str, typer.Option(help="The column that tells runs apart: two of the same are refused.", metavar="COLUMN")
]
Against = Annotated[
    Texts, typer.Option(help="A label of the own row that they are tested against.", metavar="AXIS=LABEL")
]
Source = Annotated[str | None, typer.Option(help="Where the numbers come from; by default the file.")]


def import_(
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
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Put other people's numbers into a table, as rows that are marked as imported and never counted as own.

    They come from a CSV with mean, std and n, or from the runs that W&B or MLflow export.
    """
    if unit is None:
        raise typer.BadParameter("say how the file writes shares: --unit percent (65.1) or --unit fraction (0.651)")
    name = "standard input" if str(file) == "-" else file.name
    content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    taken = offline.imported_rows(
        content, str(file), layout=layout, unit=unit, source=source or f"{name}{_EXPORTS[layout]}",
        rows=tuple(row or ()), label=label, axes=_pairs("axis", axis, alone=True),
        metrics=_pairs("metric", metric, alone=True), renamed=_pairs("rename", rename), where=_pairs("where", where),
        columns=_columns(column), seed=seed, against=_pairs("against", against) or None,
    )  # fmt: skip
    for note in taken.notes:
        err.print(f"metricsweep: {note}")
    _hand_over(taken.rows, into, table, file_out, (url, token, home))


def _hand_over(
    rows: Sequence[Mapping[str, Any]],
    into: str | None,
    table: str | None,
    file_out: Path | None,
    where: tuple[str | None, str | None, Path],
) -> None:
    """Print the rows, or the spec with them; or ask that a sweep have them."""
    if into is None:
        emit(f"{json.dumps(rows, indent=2, ensure_ascii=False)}\n".encode(), "json", file_out)
    elif not into.isdigit():
        emit(offline.with_imported(_spec(into), table, rows), "yaml", file_out)
    else:
        with connect(*where) as client:
            sweep = client.sweep(int(into))
            asked = client.extend(sweep.id, offline.with_imported(sweep.text.encode(), table, rows))
            many = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
            out.print(f"sweep {sweep.id} {sweep.name}: asked to have {many} imported")
            follow_request(client, asked.request)


def _spec(path: str) -> bytes:
    if not Path(path).is_file():
        raise typer.BadParameter(f"there is no spec {path}; name one, or the number of a sweep")
    return Path(path).read_bytes()


def _pairs(option: str, given: Sequence[str] | None, *, alone: bool = False) -> dict[str, str]:
    """What options of the form NAME=TEXT say; where that may stand alone, NAME is NAME=NAME."""
    found: dict[str, str] = {}
    for one in given or ():
        name, sign, text = one.partition("=")
        if not name or not (sign or alone):
            raise typer.BadParameter(f"expected NAME=TEXT after --{option}, found {one!r}")
        if found.setdefault(name, text if sign else name) != (text if sign else name):
            raise typer.BadParameter(f"--{option} {name} is given twice")
    return found


def _columns(given: Sequence[str] | None) -> dict[str, str]:
    found = _pairs("column", given)
    if wrong := [one for one in found if one not in {"metric", "mean", "std", "n"}]:
        raise typer.BadParameter(f"--column says which column is metric, mean, std or n, found {wrong[0]!r}")
    return found
