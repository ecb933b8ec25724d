"""The spool: what an attempt says, numbered and kept on disk until a conductor has recorded it."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from orchestrator.trial import Order

MessageKind = Literal["progress", "finished", "failed", "stopped"]
FILE: Final = "spool.jsonl"


@dataclass(frozen=True, slots=True)
class Message:
    """One thing an attempt said; `seq` counts from 1."""

    seq: int
    kind: MessageKind
    body: dict[str, Any]

    @property
    def final(self) -> bool:
        """True for the last message of an attempt."""
        return self.kind != "progress"


def attempt_folder(storage: Path, order: Order) -> Path:
    """The folder of an attempt's checkpoints, artifacts and spool."""
    return storage / order.training / str(order.number)


class Spool:
    """Appends messages to a file; each is on disk before it is given to anybody."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / FILE).open("a", encoding="utf-8")
        self._seq = 0

    def append(self, kind: MessageKind, body: dict[str, Any]) -> Message:
        """Write one message and return it with its number."""
        self._seq += 1
        message = Message(self._seq, kind, body)
        self._file.write(json.dumps(asdict(message), allow_nan=True) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        return message

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(folder: Path, seen: int = 0) -> Iterator[Message]:
    """The messages after number `seen`; a line cut off by a crash, and what follows it, never was."""
    try:
        text = (folder / FILE).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    for line in text.splitlines():
        try:
            message = Message(**json.loads(line))
        except (json.JSONDecodeError, TypeError):
            return
        if message.seq > seen:
            yield message
