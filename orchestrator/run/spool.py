"""The spool: numbered messages of an attempt, kept in the storage until they are recorded."""

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
Content = Progress | Result | Failure | None  # the content of a message; `None` means that the attempt stopped as asked

_LINE: Final = re.compile(rb'\{"seq": (\d{1,18}), "kind": "(progress|finished|failed|stopped)", "body": \{.*\}\}\n')


@dataclass(frozen=True, slots=True)
class Message:
    """One message of an attempt as a line of its spool; its body is parsed only where needed."""

    seq: int  # from 1
    kind: MessageKind
    line: bytes

    @classmethod
    def made(cls, seq: int, kind: MessageKind, body: Mapping[str, Any]) -> "Message":
        """Make the message with this number, kind and body."""
        line = json.dumps({"seq": seq, "kind": kind, "body": body}, allow_nan=True).encode() + b"\n"
        return cls(seq, kind, line)

    @classmethod
    def of(cls, line: bytes) -> "Message":
        """Read the message of a spool's line; raises ValueError for any other line."""
        head = _LINE.fullmatch(line)
        if head is None:
            raise ValueError(f"not a line of a spool: {line[:80]!r}")
        return cls(int(head[1]), cast("MessageKind", head[2].decode()), line)

    @property
    def final(self) -> bool:
        """Whether this is the last message of an attempt."""
        return self.kind != "progress"

    @property
    def body(self) -> Any:
        """The body of the message as JSON, parsed at each call; raises ValueError if it is damaged."""
        # pydantic's parser would refuse a lone surrogate, which a training may have logged.
        return json.loads(self.line)["body"]

    def content(self) -> Content:
        """The body as progress, result or error; raises ValueError if it cannot be read."""
        return _READERS[self.kind](self.body)


_READERS: Final[Mapping[MessageKind, Callable[[Any], Content]]] = {
    "progress": Progress.model_validate,
    "finished": Result.model_validate,
    "failed": TypeAdapter(Failure).validate_python,
    "stopped": lambda body: None,
}

FILE: Final = "spool.jsonl"  # the spool in a folder
PART: Final = "spool-{first:09d}.jsonl"
"""A part of the spool in a bucket, which cannot append to objects; named after its first message."""
_PART: Final = re.compile(r"spool-(\d{9,18})\.jsonl")


def attempt_folder(order: Order) -> str:
    """The folder of an attempt's checkpoints, artifacts and spool, relative to the storage."""
    return f"{order.training}/{order.number}"


class Spool:
    """Numbers the messages of an attempt, and keeps unwritten ones in memory, so that the spool has no gap."""

    def __init__(self) -> None:
        self._seq = 0
        self._held: list[bytes] = []

    def append(self, kind: MessageKind, body: dict[str, Any]) -> Message:
        """Make the next message of the spool."""
        self._seq += 1
        message = Message.made(self._seq, kind, body)
        self._held.append(message.line)
        return message


class FileSpool(Spool):
    """Appends messages to a file, each synced to disk before `append` returns it.

    A message that the disk does not take (it is full) stays in memory and is written before the next one. If the
    process dies before that, and the conductor was away, the message is lost; if it was the last one, the training is
    continued from its last checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._path = folder / FILE
        self._file: int | None = None
        self._whole = 0  # bytes of the file up to the end of its last whole line

    def append(self, kind: MessageKind, body: dict[str, Any]) -> Message:
        """Make the next message of the spool and write it to the file."""
        message = super().append(kind, body)
        with suppress(OSError):
            self._write()
        return message

    def close(self) -> None:
        """Close the file of the spool."""
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
        os.fsync(self._file)  # if this fails, it is unknown what is on disk: the lines are cut off and written again
        self._whole = end
        del self._held[:lines]

    def _cut(self, end: int) -> None:
        if self._file is not None and os.fstat(self._file).st_size > end:
            os.ftruncate(self._file, end)


class PartedSpool(Spool):
    """Spools messages to a bucket: keeps them in memory until `flush` stores them as another part."""

    def __init__(self, bucket: Bucket, folder: str) -> None:
        super().__init__()
        self._bucket, self._folder = bucket, folder

    @property
    def flushed(self) -> bool:
        """Whether all messages are stored."""
        return not self._held

    def flush(self) -> None:
        """Store the messages in memory as the next part; after an OSError they stay in memory."""
        if self._held:
            first = self._seq - len(self._held) + 1
            self._bucket.write(b"".join(self._held), self._folder, PART.format(first=first))
            self._held.clear()


def read(storage: Storage, folder: str, seen: int = 0) -> Iterator[Message]:
    """The messages of a spool after number `seen`, up to a line that a crash cut off. Raises OSError.

    The listing of a bucket may be out of date, so it only says where to begin: the last message of each part gives the
    name of the next part.
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
    for line in content.splitlines(keepends=True):
        try:
            yield Message.of(line)
        except ValueError:
            return


def _beginning(names: Sequence[str], seen: int) -> int:
    """The first message of the listed part that holds the message after `seen`; 1 if no part does."""
    parts = [int(found[1]) for name in names if (found := _PART.fullmatch(name))]
    return max((first for first in parts if first <= seen + 1), default=1)


def _write_whole(file: int, line: bytes) -> None:
    # A file system with room for only a part of the line first takes that part.
    left = memoryview(line)
    while left:
        left = left[os.write(file, left) :]
