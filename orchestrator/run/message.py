"""A message: one thing that an attempt said, as the line of JSON that stands in its spool."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from pydantic import TypeAdapter

from orchestrator.views.runs import Failure
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
