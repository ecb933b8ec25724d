"""Logging: ids of the context, no control characters, no secrets, and a limit for repeated warnings."""

import json
import logging
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from orchestrator.host.files import known_secrets

_ABOUT: Final[ContextVar[Mapping[str, int | str]]] = ContextVar("about", default={})  # noqa: B039 - never changed


@contextmanager
def about(**ids: int | str | None) -> Iterator[None]:
    """Add ids, such as `sweep` and `trial`, to all log records of this context."""
    known = {name: number for name, number in ids.items() if number is not None}
    token = _ABOUT.set({**_ABOUT.get(), **known})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def ids_of_now() -> Mapping[str, int | str]:
    """The ids, such as `sweep` and `trial`, that log records of this context get."""
    return _ABOUT.get()


_UNFIT: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls without tab and line feed: ESC and CSI begin commands of terminals
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, which change the order of a text
    "\u2028\u2029"  # line ends that `grep` does not see
    "\u200b\ufeff\U000e0000-\U000e007f"  # invisible characters, with which different names look the same
    "\ud800-\udfff"  # lone surrogates, which cannot be encoded
    "]"
)


def printable(text: str) -> str:
    r"""The text with unfit characters escaped, ESC as `\x1b`; tabs and line ends stay."""
    return _UNFIT.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable_json(text: str) -> str:
    r"""A JSON document with unfit characters as `\uXXXX`: the same document for a parser."""
    return _UNFIT.sub(lambda found: json.dumps(found.group())[1:-1], text)


def one_line(text: str) -> str:
    r"""The text on one line, with tabs and line ends escaped as well."""
    return printable(text).replace("\t", "\\t").replace("\n", "\\n")


LogForm = Literal["text", "json"]

SAME: Final = 10  # how often the same warning is logged in a minute
_WINDOW_SECONDS: Final = 60.0
_MOST_KINDS: Final = 1_000  # most warnings that are counted; there are some hundred, since values are not part of them
_RECORD_CHARACTERS: Final = 20_000  # of one record; a traceback with the longest message is shorter


def begin_logging(form: LogForm = "text", secrets: Iterable[str] = ()) -> None:
    """Log to stderr without `secrets` and all secrets read from files; a second call changes form and secrets."""
    handler = logging.StreamHandler()
    hidden = tuple(sorted(filter(None, secrets), key=len, reverse=True))
    text = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    handler.setFormatter(JsonLines(hidden) if form == "json" else OwnLines(text, hidden))
    handler.addFilter(Collapse())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class OwnLines(logging.Formatter):
    """Formats log records as text: escapes control characters, and indents all lines after the first."""

    def __init__(self, text: str, hidden: Sequence[str] = ()) -> None:
        super().__init__(text)
        self._hidden = hidden

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return printable(_without(self._hidden, _cut(super().format(record)))).replace("\n", "\n  ")


class JsonLines(logging.Formatter):
    """Formats a log record as one line of JSON, with the ids of its context."""

    def __init__(self, hidden: Sequence[str] = ()) -> None:
        super().__init__()
        self._hidden = hidden

    def format(self, record: logging.LogRecord) -> str:
        """An object: `at`, `level`, `logger`, `message`, `error` (the traceback), and ids such as `sweep`."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _without(self._hidden, _cut(record.getMessage())),
        }
        if record.exc_info:
            line["error"] = _without(self._hidden, _cut(self.formatException(record.exc_info)))
        return printable_json(json.dumps({**line, **ids_of_now()}, ensure_ascii=False))


def _cut(text: str) -> str:
    if len(text) <= _RECORD_CHARACTERS:
        return text
    half = _RECORD_CHARACTERS // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters ...\n{text[-half:]}"


def _without(hidden: Sequence[str], text: str) -> str:
    for secret in (*hidden, *known_secrets()):
        text = text.replace(secret, "[secret]")
    return text


@dataclass(slots=True)
class _Counted:
    since: float
    written: int = 0
    kept_back: int = 0


class Collapse(logging.Filter):
    """Lets the same warning pass ten times a minute; the next one reports how many were dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._counted: dict[tuple[str, int, str], _Counted] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a record."""
        if record.levelno < logging.WARNING:
            return True
        now = time.monotonic()
        counted = self._of(record, now)
        if now - counted.since > _WINDOW_SECONDS:
            if counted.kept_back:
                record.msg = f"{record.getMessage()} ({counted.kept_back} more like this in the last minutes)"
                record.args = None
            counted.since, counted.written, counted.kept_back = now, 0, 0
        counted.written += 1
        if counted.written > SAME:
            counted.kept_back += 1
            return False
        if counted.written == SAME:
            record.msg = f"{record.getMessage()} (more like this are counted only for a minute)"
            record.args = None
        return True

    def _of(self, record: logging.LogRecord, now: float) -> _Counted:
        error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        key = (record.name, record.levelno, f"{record.msg} {error}"[:200])
        if key not in self._counted and len(self._counted) >= _MOST_KINDS:
            self._counted.clear()
        return self._counted.setdefault(key, _Counted(now))
