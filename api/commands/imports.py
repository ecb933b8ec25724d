"""`import`: other people's numbers as rows of a table."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from api.commands.options import HOME, Home, Token, Url, connect, readable
from api.commands.requests import follow
from api.commands.tables import emit
from api.commands.terminal import err, out
from orchestrator.service import offline

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
    Texts, typer.Option(help="A column whose text stands beside the row. May be given several times.", metavar="COLUMN")
]
Label = Annotated[str, typer.Option(help="What stands beside the row, where no column says it.")]
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
FileOut = Annotated[Path | None, typer.Option("--out", dir_okay=False, help="Write to this file.")]


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
    file_out: FileOut = None,
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
            follow(client, asked.request)


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
