"""The terminal: output, tables, errors and exit codes, and the options that commands share."""

import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TextIO

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
    "Exit codes: 0 done; 1 the sweep failed or was cancelled, or the server met an error; "
    "2 the command or the spec is wrong; 3 no server answers."
)

_STYLES: Final = {"yellow": "\x1b[33m", "bold": "\x1b[1m"}
_PLAIN: Final = "\x1b[0m"


class Output:
    """Standard output or error, whichever they are when something is printed.

    All text that a person reads goes through here: what a server, a spec or an option holds cannot move the cursor,
    colour the screen or reorder a line.
    """

    def __init__(self, *, errors: bool = False) -> None:
        self._errors = errors

    @property
    def stream(self) -> TextIO:
        """Where it goes."""
        return sys.stderr if self._errors else sys.stdout

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at it, who can be shown colours and bars."""
        return self.stream.isatty() and os.environ.get("TERM") != "dumb"

    def print(self, text: str = "", style: str = "") -> None:
        """Write a text and end the line."""
        said = printable(text)
        if style and self.is_terminal and not os.environ.get("NO_COLOR"):
            said = f"{_STYLES[style]}{said}{_PLAIN}"
        self.write(f"{said}\n")

    def write(self, shown: str) -> None:
        """Write what is fit to be shown; a character that the stream's encoding lacks is escaped."""
        encoding = self.stream.encoding or "utf-8"
        self.stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        self.stream.flush()  # the other stream's lines stay where they belong


out: Final = Output()
err: Final = Output(errors=True)


def print_markdown(text: str) -> None:
    """Markdown laid out in a terminal, as it is elsewhere."""
    if not out.is_terminal:
        out.print(text.rstrip())
        return
    from rich.console import Console
    from rich.markdown import Markdown

    # A link shows where it leads: its text may say something else.
    console = Console(file=out.stream, highlight=False)
    with console.capture() as laid_out:
        console.print(Markdown(printable(text), hyperlinks=False))
    out.write(laid_out.get())


def print_json(value: "BaseModel | Sequence[BaseModel]") -> None:
    """A view, or a list of them, as JSON on stdout."""
    plain: Any = (
        [one.model_dump(mode="json") for one in value] if isinstance(value, Sequence) else value.model_dump(mode="json")
    )
    write_json(json.dumps(plain, indent=2, ensure_ascii=False))


def write_json(text: str) -> None:
    """A line of JSON on stdout, or several; what the encoding of stdout lacks is escaped as JSON escapes it."""
    shown, encoding = printable_json(text), sys.stdout.encoding or "utf-8"
    try:
        shown.encode(encoding)
    except UnicodeEncodeError:
        shown = re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], shown)
    sys.stdout.write(shown + "\n")


def print_rows(rows: Sequence[Mapping[str, str]], numbers: Sequence[str] = ()) -> None:
    """Rows under headings; plain columns that a person can read and `cut` can take apart."""
    headings = list(rows[0]) if rows else []
    lines = [headings, *([one_line(text) for text in row.values()] for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        cells = zip(headings, line, widths, strict=True)
        padded = [_padded(text, width, heading in numbers) for heading, text, width in cells]
        out.print("  ".join(padded).rstrip(), style="" if number else "bold")


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


def _width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)


def explain(error: Exception) -> int:
    """Say on stderr what went wrong and give the exit code; an error that is not ours is raised again."""
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
            from workers.catalog import PartSourceError  # not above: a client reads no parts

            if not isinstance(error, PartSourceError):
                raise error
            code = WRONG
        case OSError() if error.filename:
            err.print(f"metricsweep: {error.filename}: {error.strerror}")
            return FAILED
        case OSError() if is_disk_error(error):  # of a file without a name, such as the standard output
            err.print(f"metricsweep: cannot write: {error.strerror}")
            with suppress(OSError, ValueError):  # what could not be written is not tried again when the process ends
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        case OSError() if error.errno is None:  # a sentence of ours, such as that a bucket does not answer
            code = FAILED
        case _:
            raise error
    err.print(f"metricsweep: {error}")
    return code


def readable(file: Path | None) -> Path | None:
    """The file that an option names, if there is one; raises BadParameter where it does not exist."""
    if file is None:
        return None
    if str(file) != "-" and (file.is_dir() or not file.exists()):
        raise typer.BadParameter(f"there is no file {file}")
    return file


Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="METRICSWEEP_URL",
        help="Address of another server than that of the home folder.",
        metavar="URL",
        show_default=False,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="METRICSWEEP_TOKEN",
        help="Token of the server at --url; better set in the variable, since others can read command lines.",
        metavar="TOKEN",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
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
        help="Folder of the database, results and logs, and of the server that serves them.",
    ),
]
HOME: Final = Path(".metricsweep")


def connect(url: str | None, token: str | None, home: Path) -> "Client":
    """A client of the server that the options name."""
    from api import discovery

    return discovery.connect(url, token, home)


@contextmanager
def managing(url: str | None, token: str | None, home: Path) -> "Iterator[People | PeopleClient]":
    """Users, projects and tokens: of the server that --url names, else of the database of the home on this machine."""
    if url:
        with connect(url, token, home) as client:
            yield client.people
        return
    from orchestrator.service.accounts import owning

    with owning(settings(home=home)) as people:
        yield people


def read_spec(
    file: Path,
    changes: Sequence[str] | None = None,
    only: Sequence[str] | None = None,
    without: Sequence[str] | None = None,
) -> bytes:
    """A spec's file, or standard input for `-`, with each `path=value` set and the subset of `axis=labels` taken."""
    body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    if not (changes or only or without):
        return body
    from orchestrator.service.offline import subset_of, with_values

    body = with_values(body, changes) if changes else body
    return subset_of(body, only or (), without or ()) if only or without else body


def settings(**given: Any) -> "Settings":
    """The settings of the environment, with those options that were given in their place."""
    from orchestrator.settings import Settings

    return Settings(**{name: value for name, value in given.items() if value is not None})


_GREATEST: Final = 2**31 - 1


class TypedPlace(NamedTuple):
    """A sweep, a cell or a trial."""

    number: int
    cell: int | None = None
    trial: bool = False

    @property
    def path(self) -> str:
        """Its path, as REST and the pages have it."""
        if self.trial:
            return f"trials/{self.number}"
        return f"sweeps/{self.number}" if self.cell is None else f"sweeps/{self.number}/cells/{self.cell}"

    def __str__(self) -> str:
        if self.trial:
            return f"trial {self.number}"
        return f"sweep {self.number}" if self.cell is None else f"cell {self.cell} of sweep {self.number}"


Where = Annotated[str, typer.Argument(metavar="ID", help="A sweep's number, or 7/3 for cell 3 of sweep 7.")]
IsTrial = Annotated[bool, typer.Option("--trial", help="The number is a trial's.")]


def placed(text: str, *, trial: bool) -> TypedPlace:
    """The place that was typed; raises BadParameter."""
    typed = re.fullmatch(r"([1-9]\d{0,9})(?:/(\d{1,10}))?", text.strip(), re.ASCII)
    if typed is None or int(typed[1]) > _GREATEST or int(typed[2] or 0) > _GREATEST:
        raise typer.BadParameter(f"{text!r} is no number of a sweep; expected such as 7, or 7/3 for cell 3 of sweep 7")
    if trial and typed[2]:
        raise typer.BadParameter(f"{text!r} is a cell; with --trial expected the number of a trial, such as 41")
    return TypedPlace(int(typed[1]), None if typed[2] is None else int(typed[2]), trial)
