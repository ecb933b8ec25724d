"""How commands print: data to stdout, remarks to stderr, and which exit code an error has."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.table import Table

from api.client import ApiError, Unreachable
from orchestrator.errors import InvalidSpecError, MetricsweepError, NotFoundError, TooLargeError

OK: Final = 0
FAILED: Final = 1
WRONG: Final = 2
UNREACHABLE: Final = 3
EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 the sweep failed or was cancelled, or the server met an error; "
    "2 the command or the spec is wrong; 3 no server answers."
)

# Nothing printed is markup: a sweep's name may hold brackets.
out: Final = Console(markup=False, highlight=False, soft_wrap=True)
err: Final = Console(markup=False, highlight=False, soft_wrap=True, stderr=True)


def print_json(value: BaseModel | Sequence[BaseModel]) -> None:
    """A view, or a list of them, as JSON on stdout."""
    plain: Any = (
        value.model_dump(mode="json")
        if isinstance(value, BaseModel)
        else [one.model_dump(mode="json") for one in value]
    )
    sys.stdout.write(json.dumps(plain, indent=2, ensure_ascii=False) + "\n")


def print_rows(rows: Sequence[Mapping[str, str]], numbers: Sequence[str] = ()) -> None:
    """Rows under headings; plain columns that a person can read and `cut` can take apart."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in rows[0] if rows else ():
        table.add_column(heading, justify="right" if heading in numbers else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row.values())
    # Without a terminal nobody sees an edge, and a cut-off name is a lost one.
    console = out if out.is_terminal else Console(markup=False, highlight=False, soft_wrap=True, width=1000)
    console.print(table)


def explain(error: Exception) -> int:
    """Say on stderr what went wrong and give the exit code; an error that is not ours is raised again."""
    match error:
        case Unreachable():
            code = UNREACHABLE
        case ApiError():
            code = FAILED if error.status >= 500 else WRONG
        case InvalidSpecError() | TooLargeError() | NotFoundError():
            code = WRONG
        case MetricsweepError():
            code = FAILED
        case ValidationError() if error.title == "Settings":
            err.print("metricsweep: the settings have problems.")
            for one in error.errors():
                name = "METRICSWEEP_" + "_".join(str(step) for step in one["loc"]).upper()
                err.print(f"  {name}  {one['msg']}")
            return WRONG
        case OSError() if error.filename:
            err.print(f"metricsweep: {error.filename}: {error.strerror}")
            return FAILED
        case _:
            raise error
    err.print(f"metricsweep: {error}")
    return code


def duration(seconds: float) -> str:
    """A length of time as a person says it."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
