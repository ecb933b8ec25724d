"""How processes log: context ids, no control characters, and repeated warnings counted."""

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

from orchestrator.host.files import seen

_ABOUT: Final[ContextVar[Mapping[str, int | str]]] = ContextVar("about", default={})  # noqa: B039 - never changed


@contextmanager
def about(**ids: int | str | None) -> Iterator[None]:
    """Have what is logged within carry these ids, such as `sweep` and `trial`, beside those around it."""
    known = {name: one for name, one in ids.items() if one is not None}
    token = _ABOUT.set({**_ABOUT.get(), **known})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def ids_of_now() -> Mapping[str, int | str]:
    """The ids of what is done now."""
    return _ABOUT.get()


_UNFIT: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls but tab and line feed: ESC and CSI begin a terminal's commands
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks and overrides: text that reads otherwise
    "\u2028\u2029"  # line ends that no `grep` sees
    "\u200b\ufeff\U000e0000-\U000e007f"  # invisible: two names that look the same
    "\ud800-\udfff"  # lone surrogates, which no output can encode
    "]"
)


def printable(text: str) -> str:
    r"""The text with every unfit character written out, ESC as `\x1b`; tabs and line ends stay."""
    return _UNFIT.sub(lambda found: _written(found.group()), text)


def printable_json(text: str) -> str:
    r"""A JSON document with the unfit characters as `\uXXXX`: the same document to any parser."""
    return _UNFIT.sub(lambda found: "".join(f"\\u{unit:04x}" for unit in _units(found.group())), text)


def one_line(text: str) -> str:
    r"""The text on one line, tabs and line ends written out as well."""
    return printable(text).replace("\t", "\\t").replace("\n", "\\n")


def _written(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _units(character: str) -> list[int]:
    """Its UTF-16 code units, as JSON writes them."""
    encoded = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(encoded[at : at + 2], "big") for at in range(0, len(encoded), 2)]


LogForm = Literal["text", "json"]

SAME: Final = 10
"""How often in a window a warning of the same text is written out."""
WINDOW_SECONDS: Final = 60.0
MOST_KINDS: Final = 1_000
"""Texts that are counted; a text of ours has its values apart, so that there are some hundred."""
RECORD_CHARACTERS: Final = 20_000
"""Of one record: a traceback with its longest message is shorter."""


def begin_logging(form: LogForm = "text", secrets: Iterable[str] = ()) -> None:
    """Log to stderr, which the supervisor or the container's engine keeps; a second call changes how.

    What is one of `secrets`, or was read of a secret's file, is left out of every line, wherever it comes from.
    """
    handler = logging.StreamHandler()
    hidden = tuple(sorted(filter(None, secrets), key=len, reverse=True))
    text = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    handler.setFormatter(JsonLines(hidden) if form == "json" else OwnLines(text, hidden))
    handler.addFilter(Collapse())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class OwnLines(logging.Formatter):
    """Writes control characters out, and indents what follows the first line of a record."""

    def __init__(self, text: str, hidden: Sequence[str] = ()) -> None:
        super().__init__(text)
        self._hidden = hidden

    def format(self, record: logging.LogRecord) -> str:
        """The record as text; only our own first lines begin at the left edge."""
        return printable(_without(self._hidden, _cut(super().format(record)))).replace("\n", "\n  ")


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON, with the ids of what it is about."""

    def __init__(self, hidden: Sequence[str] = ()) -> None:
        super().__init__()
        self._hidden = hidden

    def format(self, record: logging.LogRecord) -> str:
        """An object: `at`, `level`, `logger`, `message`, `error` with its traceback, and `sweep`, `trial` and so on."""
        said: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _without(self._hidden, _cut(record.getMessage())),
        }
        if record.exc_info:
            said["error"] = _without(self._hidden, _cut(self.formatException(record.exc_info)))
        return printable_json(json.dumps({**said, **ids_of_now()}, ensure_ascii=False))


def _cut(text: str) -> str:
    if len(text) <= RECORD_CHARACTERS:
        return text
    half = RECORD_CHARACTERS // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters ...\n{text[-half:]}"


def _without(hidden: Sequence[str], text: str) -> str:
    for secret in (*hidden, *seen()):
        text = text.replace(secret, "[secret]")
    return text


@dataclass(slots=True)
class _Counted:
    since: float
    written: int = 0
    kept_back: int = 0


class Collapse(logging.Filter):
    """Lets a warning of the same text through ten times a minute; the next one says how many were kept back."""

    def __init__(self) -> None:
        super().__init__()
        self._counted: dict[tuple[str, int, str], _Counted] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a record; what only informs always is."""
        if record.levelno < logging.WARNING:
            return True
        now = time.monotonic()
        counted = self._of(record, now)
        if now - counted.since > WINDOW_SECONDS:
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
        if key not in self._counted and len(self._counted) >= MOST_KINDS:
            self._counted.clear()
        return self._counted.setdefault(key, _Counted(now))
