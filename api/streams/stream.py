"""One event stream: what waits to be sent to one client, which is dropped rather than waited for."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple

from orchestrator.views.callers import OWNER, Caller

MOST_UNSENT: Final = 256 * 1024
"""Bytes that wait for one client, beside the 64 KiB that its connection takes; the chunks are shared by all streams."""
HEARTBEAT: Final = b":\n\n"


class Listener(NamedTuple):
    """Who listens: the name under which his streams are counted, whether his login still runs, and whose it is."""

    name: str
    may: Callable[[], bool]
    who: Caller = OWNER


class Stream:
    """A queue of chunks between the feed and one client, of one sweep's events or of all."""

    def __init__(self, listener: Listener, sweep: int | None, opening: bytes) -> None:
        self.listener, self.sweep = listener, sweep
        self._chunks: deque[bytes] = deque([opening])
        self._unsent = len(opening)
        self._something = asyncio.Event()
        self._something.set()
        self._ended = False

    def put(self, chunk: bytes) -> None:
        """Have a chunk sent; a client that has not read what came before is dropped, and resumes by its last id."""
        if self._ended:
            return
        if self._unsent + len(chunk) > MOST_UNSENT:
            self._chunks.clear()
            self.end()
            return
        self._chunks.append(chunk)
        self._unsent += len(chunk)
        self._something.set()

    def end(self) -> None:
        """Send what waits, and then no more."""
        self._ended = True
        self._something.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """What is to be sent, as it comes, until the stream ends."""
        while True:
            await self._something.wait()
            if self._chunks:
                chunk = b"".join(self._chunks)
                self._chunks.clear()
                self._unsent = len(chunk)  # until the connection has taken it
                yield chunk
                self._unsent -= len(chunk)
            elif self._ended:
                return
            else:
                self._something.clear()
