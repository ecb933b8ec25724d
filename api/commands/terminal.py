"""How commands print: data to stdout, remarks to stderr, nothing that commands a terminal; and an error's exit code."""

import json
import os
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TextIO

from orchestrator.host.disk import is_disk_error
from orchestrator.host.printable import one_line, printable, printable_json
from orchestrator.views.errors import InvalidSpecError, MetricsweepError, NotFoundError, TooLargeError

if TYPE_CHECKING:
    from pydantic import BaseModel

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

    from api.failures import ApiError, Unreachable

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
