"""The terminal: output, tables, errors and exit codes, and the options that commands share."""

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, NoReturn, TextIO, TypeVar

import typer

from orchestrator.host.disk import is_disk_error
from orchestrator.host.logs import one_line, printable, printable_json
from orchestrator.views.errors import InvalidSpecError, MetricsweepError, NotFoundError, TooLargeError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from api.client import Client, PeopleClient
    from orchestrator.service.accounts import People
    from orchestrator.settings import Settings

OK: Final = 0
FAILED: Final = 1
WRONG: Final = 2
UNREACHABLE: Final = 3
EXIT_CODES: Final = (
    "Exit codes: 0 success; 1 a failed or cancelled sweep, or an error of the server; "
    "2 an invalid command or spec; 3 no server answers; 130 interrupted."
)

_STYLES: Final = {"yellow": "\x1b[33m", "bold": "\x1b[1m"}
_PLAIN: Final = "\x1b[0m"
Item = TypeVar("Item", bound="BaseModel")


class Output:
    """Standard output or error, as it is at the time of printing.

    All text for people goes through here, so that text from a server, a spec or an option cannot move the cursor,
    colour the screen or reorder a line.
    """

    def __init__(self, *, errors: bool = False) -> None:
        self._errors = errors

    @property
    def stream(self) -> TextIO:
        """The output stream at the time of printing."""
        return sys.stderr if self._errors else sys.stdout

    @property
    def is_terminal(self) -> bool:
        """Whether the stream is a terminal that shows colours and bars."""
        return self.stream.isatty() and os.environ.get("TERM") != "dumb"

    def print(self, text: str = "", style: str = "") -> None:
        """Write a line; control characters are escaped."""
        line = printable(text)
        if style and self.is_terminal and not os.environ.get("NO_COLOR"):
            line = f"{_STYLES[style]}{line}{_PLAIN}"
        self.write(f"{line}\n")

    def write(self, text: str) -> None:
        """Write printable text; characters that the stream's encoding lacks are escaped."""
        encoding = self.stream.encoding or "utf-8"
        self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self.stream.flush()  # keeps the order of lines of both streams


out: Final = Output()
err: Final = Output(errors=True)


def refuse(message: str, code: int = WRONG) -> NoReturn:
    """Print why a command cannot be carried out, and end it."""
    err.print(f"metricsweep: {message}")
    raise typer.Exit(code)


def print_markdown(text: str) -> None:
    """Print Markdown, laid out if standard output is a terminal."""
    if not out.is_terminal:
        out.print(text.rstrip())
        return
    from rich.console import Console
    from rich.markdown import Markdown

    # A link shows its address, since its text may be misleading.
    console = Console(file=out.stream, highlight=False)
    with console.capture() as laid_out:
        console.print(Markdown(printable(text), hyperlinks=False))
    out.write(laid_out.get())


def print_json(value: "BaseModel | Sequence[BaseModel]") -> None:
    """Print a view, or a list of views, as JSON."""
    from pydantic_core import to_jsonable_python

    write_json(json.dumps(to_jsonable_python(value), indent=2, ensure_ascii=False))


def write_json(text: str) -> None:
    """Write JSON to stdout; characters that the encoding of stdout lacks become JSON escapes."""
    shown, encoding = printable_json(text), sys.stdout.encoding or "utf-8"
    try:
        shown.encode(encoding)
    except UnicodeEncodeError:
        shown = re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], shown)
    sys.stdout.write(shown + "\n")


def print_rows(rows: Sequence[Mapping[str, str]], numbers: Sequence[str] = ()) -> None:
    """Print rows in columns under headings, without empty columns; `numbers` are aligned to the right."""
    from rich.cells import cell_len

    if not rows:
        return
    headings = [name for name in rows[0] if any(row[name] for row in rows)]
    lines = [[*map(one_line, headings)], *([one_line(row[name]) for name in headings] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        padded = []
        for heading, text, width in zip(headings, line, widths, strict=True):
            blanks = " " * (width - cell_len(text))
            padded.append(blanks + text if heading in numbers else text + blanks)
        out.print("  ".join(padded).rstrip(), style="" if number else "bold")


def print_list(
    items: Sequence[Item], as_json: bool, row: Callable[[Item], Mapping[str, str]], numbers: Sequence[str], none: str
) -> None:
    """Print views as JSON, or a row for each in columns; `none` is the message on stderr if there are no views."""
    if as_json:
        print_json(items)
    elif items:
        print_rows([row(item) for item in items], numbers)
    else:
        err.print(none)


def explain(error: Exception) -> int:
    """Print an error on stderr and return the exit code; an unexpected error is raised again."""
    from pydantic import ValidationError

    from api.connection import ApiError, Unreachable

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
            from orchestrator.settings import problems

            err.print("metricsweep: the settings have problems.")
            for problem in problems(error):
                err.print(f"  {problem}")
            return WRONG
        case ValueError():
            from workers.catalog import PartSourceError  # here, since a client reads no parts

            if not isinstance(error, PartSourceError):
                raise error
            code = WRONG
        case OSError() if error.filename:
            err.print(f"metricsweep: {error.filename}: {error.strerror}")
            return FAILED
        case OSError() if is_disk_error(error):  # a file without a name, such as standard output
            err.print(f"metricsweep: cannot write: {error.strerror}")
            with suppress(OSError, ValueError):  # so that Python does not write the rest when the process ends
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        case OSError() if error.errno is None:  # our own message, such as that a bucket does not answer
            code = FAILED
        case _:
            raise error
    err.print(f"metricsweep: {error}")
    return code


def readable(file: Path | None) -> Path | None:
    """The file that an option names, if any; raises BadParameter if it does not exist."""
    if file is not None and str(file) != "-" and (file.is_dir() or not file.exists()):
        raise typer.BadParameter(f"there is no file {file}")
    return file


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SweepId = Annotated[int, typer.Argument(min=1, metavar="ID", help="The sweep's number.")]
TableName = Annotated[str | None, typer.Argument(help="The table's name in the spec; by default its first.")]
OutFile = Annotated[Path | None, typer.Option("--out", dir_okay=False, help="Write it to this file.")]
SpecFile = Annotated[Path, typer.Argument(metavar="FILE", callback=readable, help="A spec; - reads standard input.")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set a value of the spec, such as select.split=test; the value is YAML. May be given several times.",
        metavar="PATH=VALUE",
        show_default=False,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help="Take only the trials with one of these labels, such as dataset=cub200,sop. May be given several times.",
        metavar="AXIS=LABEL,...",
        show_default=False,
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        help="Leave out the trials with one of these labels, such as dataset=sop. May be given several times.",
        metavar="AXIS=LABEL,...",
        show_default=False,
    ),
]
Home = Annotated[
    Path,
    typer.Option(
        "--home",
        envvar="METRICSWEEP_HOME",
        file_okay=False,
        metavar="DIR",
        help="The home folder, with database, results, logs and the address of its server.",
    ),
]
HOME: Final = Path(".metricsweep")


class Server(NamedTuple):
    """The server that the options --url, --token and --home name."""

    url: Annotated[
        str | None,
        typer.Option(
            envvar="METRICSWEEP_URL",
            help="Address of a server other than the home folder's.",
            metavar="URL",
            show_default=False,
        ),
    ] = None
    token: Annotated[
        str | None,
        typer.Option(
            envvar="METRICSWEEP_TOKEN",
            help="Token for --url; prefer the variable, since other users can read command lines.",
            metavar="TOKEN",
            show_default=False,
        ),
    ] = None
    home: Home = HOME

    def connect(self) -> "Client":
        """A client of the server that the options name."""
        from api import discovery

        return discovery.connect(*self)

    @contextmanager
    def managing(self) -> "Iterator[People | PeopleClient]":
        """The accounts of the server that --url names, else of the home's database on this machine."""
        if self.url:
            with self.connect() as client:
                yield client.people
            return
        from orchestrator.service.accounts import owning

        with owning(settings(home=self.home)) as people:
            yield people


def with_server_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options --url, --token and --home in place of a first parameter `server`, if it has one."""
    first, *own = inspect.signature(command).parameters.values()
    if first.name != "server":
        return command

    @wraps(command)
    def run(**options: Any) -> None:
        command(Server(*map(options.pop, Server._fields)), **options)

    shared = inspect.signature(Server).parameters.values()
    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]  # which Typer reads
    return run


def read_spec(
    file: Path,
    changes: Sequence[str] | None = None,
    only: Sequence[str] | None = None,
    without: Sequence[str] | None = None,
    *,
    fresh: bool = False,
) -> bytes:
    """The text of a spec, from standard input for `-`, after changes (`path=value`) and subsets (`axis=labels`).

    `fresh` sets the spec's `fresh`, so that everything is trained again.
    """
    body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    changes = [*(changes or ()), "fresh=true"] if fresh else changes
    if not (changes or only or without):
        return body
    from orchestrator.service.offline import subset_of, with_values

    body = with_values(body, changes) if changes else body
    return subset_of(body, only or (), without or ()) if only or without else body


def settings(**options: Any) -> "Settings":
    """The settings of the environment; options that are not `None` replace them."""
    from orchestrator.settings import Settings

    return Settings(**{name: value for name, value in options.items() if value is not None})


_GREATEST: Final = 2**31 - 1


class TypedPlace(NamedTuple):
    """A sweep, a cell or a trial, as a user typed it."""

    number: int
    cell: int | None = None
    trial: bool = False

    @property
    def path(self) -> str:
        """The path of the sweep, cell or trial, in REST and of its page."""
        if self.trial:
            return f"trials/{self.number}"
        return f"sweeps/{self.number}" if self.cell is None else f"sweeps/{self.number}/cells/{self.cell}"

    def __str__(self) -> str:
        if self.trial:
            return f"trial {self.number}"
        return f"sweep {self.number}" if self.cell is None else f"cell {self.cell} of sweep {self.number}"


Where = Annotated[
    str,
    typer.Argument(metavar="ID", help="`7` for sweep 7, `7/3` for its cell 3, `trial:41` for trial 41."),
]


def placed(text: str) -> TypedPlace:
    """The sweep, cell or trial that an argument names; raises BadParameter."""
    typed = re.fullmatch(r"(trial:)?([1-9]\d{0,9})(?:/(\d{1,10}))?", text.strip(), re.ASCII)
    if typed is None or (typed[1] and typed[3]) or max(int(typed[2]), int(typed[3] or 0)) > _GREATEST:
        raise typer.BadParameter(
            f"{text!r} names nothing; expected such as 7 for sweep 7, 7/3 for its cell 3, or trial:41 for trial 41"
        )
    return TypedPlace(int(typed[2]), None if typed[3] is None else int(typed[3]), bool(typed[1]))
