"""The spool: messages of an attempt, numbered and kept in the storage until they are recorded."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from pydantic import TypeAdapter

from orchestrator.host.storage import Bucket, Folder, Storage
from orchestrator.views.runs import Failure, Order
from workers.contract import Progress, Result

MessageKind = Literal["progress", "finished", "failed", "stopped"]
Said = Progress | Result | Failure | None
"""What a message says; none: the attempt stopped because it was asked to."""

_LINE: Final = re.compile(rb'\{"seq": (\d{1,18}), "kind": "(progress|finished|failed|stopped)", "body": \{.*\}\}\n')


@dataclass(frozen=True, slots=True)
class Message:
    """A line, from the process that trains to the conductor's intake the same bytes; `seq` counts from 1.

    Number and kind are read off its head, for those who only hand it on.
    """

    seq: int
    kind: MessageKind
    line: bytes

    @classmethod
    def made(cls, seq: int, kind: MessageKind, body: Mapping[str, Any]) -> "Message":
        """The message with this body."""
        line = json.dumps({"seq": seq, "kind": kind, "body": body}, allow_nan=True).encode() + b"\n"
        return cls(seq, kind, line)

    @classmethod
    def of(cls, line: bytes) -> "Message":
        """The message of a whole line; ValueError where the line is none."""
        head = _LINE.fullmatch(line)
        if head is None:
            raise ValueError(f"no line of a spool: {line[:80]!r}")
        return cls(int(head[1]), cast("MessageKind", head[2].decode()), line)

    @property
    def final(self) -> bool:
        """True for the last message of an attempt."""
        return self.kind != "progress"

    @property
    def body(self) -> Any:
        """Its body as JSON has it, parsed at each call; raises ValueError where it is damaged."""
        # Not pydantic's parser, which refuses the half of a surrogate pair that a training may have logged.
        return json.loads(self.line)["body"]

    def said(self) -> Said:
        """What it says; raises ValueError where it cannot be read."""
        return _READERS[self.kind](self.body)


_READERS: Final[Mapping[MessageKind, Callable[[Any], Said]]] = {
    "progress": Progress.model_validate,
    "finished": Result.model_validate,
    "failed": TypeAdapter(Failure).validate_python,
    "stopped": lambda body: None,
}


FILE: Final = "spool.jsonl"
"""The spool in a folder, which can be appended to."""
PART: Final = "spool-{first:09d}.jsonl"
"""The spool in a bucket, where nothing can be appended: in parts, each named after its first message."""
_PART: Final = re.compile(r"spool-(\d{9,18})\.jsonl")


def attempt_folder(order: Order) -> str:
    """The folder of an attempt's checkpoints, artifacts and spool, relative to the storage."""
    return f"{order.training}/{order.number}"


class Spool:
    """Numbers messages. Those that are not written yet are held, so that what is written never has a gap."""

    def __init__(self) -> None:
        self._seq = 0
        self._held: list[bytes] = []

    def append(self, kind: MessageKind, body: dict[str, Any]) -> Message:
        """Number one message."""
        self._seq += 1
        message = Message.made(self._seq, kind, body)
        self._held.append(message.line)
        return message


class FileSpool(Spool):
    """Appends messages to a file; each is on disk before it is given to anybody, as long as the disk takes it.

    What it does not take (a full disk) is held in memory and written ahead of the next message. Until then it is lost
    if this process dies, so that a conductor that was away meanwhile learns less, in the worst case not that the
    training ended: that is then done again from its last checkpoint. The alternative was an attempt that ends, unheard.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._path = folder / FILE
        self._file: int | None = None
        self._whole = 0  # bytes of the file up to the end of its last whole line

    def append(self, kind: MessageKind, body: dict[str, Any]) -> Message:
        """Write one message and return it with its number."""
        message = super().append(kind, body)
        with suppress(OSError):
            self._write()
        return message

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None

    def _write(self) -> None:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            self._whole = os.fstat(self._file).st_size
        self._cut(self._whole)
        end, lines = self._whole, 0
        try:
            for line in self._held:
                _write_whole(self._file, line)
                end, lines = end + len(line), lines + 1
        except OSError:
            self._cut(end)
        os.fsync(self._file)  # what a failed one has kept nobody knows: it is cut off and written once more
        self._whole = end
        del self._held[:lines]

    def _cut(self, end: int) -> None:
        """Cut off a line that was written in part."""
        if self._file is not None and os.fstat(self._file).st_size > end:
            os.ftruncate(self._file, end)


class PartedSpool(Spool):
    """Holds messages until `flush` stores them as one more part; one that could not be stored is tried again."""

    def __init__(self, bucket: Bucket, folder: str) -> None:
        super().__init__()
        self._bucket, self._folder = bucket, folder

    @property
    def flushed(self) -> bool:
        """Whether nothing is held."""
        return not self._held

    def flush(self) -> None:
        """Store what is held; raises OSError."""
        if self._held:
            first = self._seq - len(self._held) + 1
            self._bucket.write(b"".join(self._held), self._folder, PART.format(first=first))
            self._held.clear()


def read(storage: Storage, folder: str, seen: int = 0) -> Iterator[Message]:
    """The messages after number `seen`; a line cut off by a crash, and what follows it, never was. Raises OSError.

    A listing only says where to begin, since that of a bucket may be late: what it lacks may be there, and what it
    shows may be gone. The number of a part's last message tells what the next part is called.
    """
    if isinstance(storage, Folder) and (content := _content(storage, folder, FILE)) is not None:
        yield from (message for message in _messages(content) if message.seq > seen)
        return
    first = _beginning(storage.names(folder), seen)
    content = _content(storage, folder, PART.format(first=first))
    if content is None and first > 1:
        first, content = 1, _content(storage, folder, PART.format(first=1))
    while content is not None:
        last = 0
        for message in _messages(content):
            last = message.seq
            if last > seen:
                yield message
        if last < first:
            return
        first = last + 1
        content = _content(storage, folder, PART.format(first=first))


def _content(storage: Storage, folder: str, name: str) -> bytes | None:
    try:
        return storage.content(folder, name)
    except FileNotFoundError:
        return None


def _messages(content: bytes) -> Iterator[Message]:
    """Those before the first line that is none."""
    for line in content.splitlines(keepends=True):
        try:
            yield Message.of(line)
        except ValueError:
            return


def _beginning(names: Sequence[str], seen: int) -> int:
    """The first message of the listed part that holds the message after `seen`; 1 where none does."""
    parts = [int(found[1]) for name in names if (found := _PART.fullmatch(name))]
    return max((first for first in parts if first <= seen + 1), default=1)


def _write_whole(file: int, line: bytes) -> None:
    """All of a line: a file system that has room for a part of it takes that part first."""
    left = memoryview(line)
    while left:
        left = left[os.write(file, left) :]
