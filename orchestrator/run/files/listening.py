"""Listening to attempts where they are spooled: their lines as they come, and whether their slot still trains them."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orchestrator.run.dispatch import Execution, Report
from orchestrator.run.files.held import JoinedSlot
from orchestrator.run.message import Message
from orchestrator.run.spool import FILE, attempt_folder

QUIET_SECONDS: Final = 10.0
"""How long the end of an attempt may be missing in the spool once its slot trains it no more."""
MOST_BYTES: Final = 4 * 2**20
"""Of one spool in one turn, but for a line that is longer; the rest comes in the next ones."""


@dataclass(slots=True)
class _Heard:
    """One attempt that is listened to."""

    execution: Execution[JoinedSlot]
    file: Path
    offset: int = 0  # of the first line that was not read yet
    there: bool = False  # its host was told
    quiet: float | None = None  # since when its slot trains it no more
    ended: bool = field(default=False)


class Listening:
    """The attempts that are listened to.

    A spool is the one way by which messages come, and it is read from where it was left.
    """

    def __init__(self, storage: Path) -> None:
        self._storage = storage
        self._heard: dict[str, _Heard] = {}

    def follow(self, execution: Execution[JoinedSlot]) -> None:
        """Listen to one more."""
        file = self._storage / attempt_folder(execution.order) / FILE
        self._heard[execution.order.attempt] = _Heard(execution, file)

    def reports(self) -> Iterator[Report]:
        """What has come since."""
        for attempt, heard in list(self._heard.items()):
            for report in self._of(attempt, heard):
                if report.lost or heard.ended:
                    self._heard.pop(attempt, None)
                yield report

    def _of(self, attempt: str, heard: _Heard) -> Iterator[Report]:
        slot = heard.execution.slot
        state, gone = slot.state, slot.gone  # before the spool is read: what it wrote before it left is all there
        mine = state.attempt == attempt
        host = state.host if mine and not heard.there else None
        heard.there = heard.there or mine
        lines = _new_lines(heard)
        last = Message.of(lines[-1]) if lines else None
        heard.ended = last is not None and last.final
        if lines or host:
            yield Report(attempt, lines, host, worn=state.worn if mine and not state.busy else None)
        if heard.ended or len(lines) > 0:
            heard.quiet = None
            return
        if gone:
            yield Report(attempt, lost=gone)
        elif slot.answers and not (mine and state.busy):
            yield from self._silent(attempt, heard, mine)

    def _silent(self, attempt: str, heard: _Heard, mine: bool) -> Iterator[Report]:
        """Its slot trains it no more, and the spool has no end of it: the slot has failed, or its disk is full."""
        heard.quiet = time.monotonic() if heard.quiet is None else heard.quiet
        last = _failure(heard) if mine else None
        if last is not None:
            heard.ended = True
            yield Report(attempt, (last,))
        elif time.monotonic() - heard.quiet > QUIET_SECONDS:
            yield Report(attempt, lost="it ended without a word" if mine else "it does not train what it was given")


def _new_lines(heard: _Heard) -> list[bytes]:
    """The whole lines after those that were read; none where the storage does not answer now."""
    try:
        with heard.file.open("rb") as file:
            size = file.seek(0, 2)
            heard.offset = 0 if size < heard.offset else heard.offset  # a line that was cut off was none of these
            file.seek(heard.offset)
            content = file.read(MOST_BYTES)
            while b"\n" not in content and (more := file.read(MOST_BYTES)):
                content += more
    except OSError:
        return []
    lines: list[bytes] = []
    for line in content.splitlines(keepends=True):
        try:
            Message.of(line)
        except ValueError:
            break
        lines.append(line)
        heard.offset += len(line)
    return lines


def _failure(heard: _Heard) -> bytes | None:
    """The failure that its slot tells and no spool has, as the next message of its attempt; none: it tells none."""
    line, number = heard.execution.slot.state.last, heard.execution.seen + 1
    try:
        told = Message.of((line or "").encode())
        return Message.made(number, told.kind, told.body).line if told.seq < number else told.line
    except ValueError:
        return None
