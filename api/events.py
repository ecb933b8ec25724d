"""Event streams: one task of the process reads changes and passes them to the stream of each client."""

import asyncio
import contextvars
import logging
import re
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Set
from typing import Final, NamedTuple, TypeAlias

from orchestrator.service.service import Service
from orchestrator.views.accounts import OWNER, Caller, calling
from orchestrator.views.errors import BusyError, MetricsweepError
from orchestrator.views.runs import ChangeEvent, ChangeKind, ChangeSpan

MEDIA_TYPE: Final = "text/event-stream"
_RETRY_MILLISECONDS: Final = 3_000
"""How long a browser waits before it reconnects."""

_ID: Final = re.compile(r"[0-9]{1,18}")


def resumed_from(header: str | None, query: int | None) -> int | None:
    """The last event id that a client has seen; -1, which causes a `reset`, if the header is not an id."""
    if header:  # a browser that reconnects sends it with the original address
        return int(header) if _ID.fullmatch(header) else -1
    return query


def _event(kind: str, position: int, data: str = "{}") -> bytes:
    return f"event: {kind}\nid: {position}\ndata: {data}\n\n".encode()


def _hello(position: int) -> bytes:
    """The first event of a stream: all changes after this position follow."""
    return f"retry: {_RETRY_MILLISECONDS}\n".encode() + _event("hello", position)


def _reset(position: int) -> bytes:
    """The event for a client that missed too much: it reads everything again and continues from here."""
    return _event("reset", position)


MOST_UNSENT: Final = 256 * 1024
"""Bytes that may wait for one client, on top of the 64 KiB of its connection; all streams share the chunks."""
_HEARTBEAT: Final = b":\n\n"


class Listener(NamedTuple):
    """A client of event streams: its name, by which streams are counted, its caller, and whether its login is valid."""

    name: str
    may: Callable[[], bool]
    requester: Caller = OWNER


class Stream:
    """A queue of events between the feed and one client, of one sweep or of all sweeps."""

    def __init__(self, listener: Listener, sweep: int | None, opening: bytes) -> None:
        self.listener, self.sweep = listener, sweep
        self._chunks: deque[bytes] = deque([opening])
        self._unsent = len(opening)
        self._something = asyncio.Event()
        self._something.set()
        self._ended = False

    def put(self, chunk: bytes) -> None:
        """Queue an event; a client that is too slow is disconnected, and resumes from its last id."""
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
        """Send the queued events, then end the stream."""
        self._ended = True
        self._something.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The queued events as bytes, until the stream ends."""
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


log = logging.getLogger(__name__)

Audience: TypeAlias = Mapping[Caller, Set[int] | None]
"""The changed sweeps that each listening user may see; `None` means all."""

READ_SECONDS: Final = 1.0
"""How often the database is read while a client listens; of several changes of one thing the last is sent."""
_HEARTBEAT_SECONDS: Final = 15.0
_REMEMBERED: Final = 2_000
"""How many events are kept for clients that reconnect; after more, a client gets a `reset`."""
MOST: Final = 320
"""How many streams a process serves."""
MOST_OF_A_CLIENT: Final = 8
"""How many streams a client may open. The tabs of a browser share one, and a script needs one."""


class Feed:
    """Reads changes from the database, remembers the latest, and sends them; it pauses while no client listens."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.most = MOST
        self._streams: set[Stream] = set()
        self._remembered: deque[tuple[ChangeEvent, bytes]] = deque()
        self._since, self.position = 0, 0  # all changes between these ids are remembered
        self._reading: asyncio.Task[None] | None = None
        self._caught_up: asyncio.Future[None]
        self._ended = False

    async def open(self, listener: Listener, sweep: int | None, last: int | None) -> Stream:
        """A stream of one sweep's events or of all, after the id `last` if it is known.

        Raises BusyError if there are too many streams, in all or of this listener.
        """
        self._check_room(listener.name)
        await self._awake()
        mine = await self._seen(listener.requester, {change.view.sweep for change, _ in self._remembered})
        self._check_room(listener.name)
        stream = Stream(listener, sweep, self._opening(sweep, last, mine))
        self._streams.add(stream)
        return stream

    def close(self, stream: Stream) -> None:
        """Remove a stream whose client has left; after the last one, reading stops."""
        self._streams.discard(stream)
        if not self._streams and self._reading is not None:
            self._reading.cancel()
            if not self._caught_up.done():
                self._caught_up.set_result(None)  # a waiting `open` starts reading again
            self._reading = None

    def end(self) -> None:
        """End all event streams, since the server ends."""
        self._ended = True
        for stream in self._streams:
            stream.end()

    def _after(self, position: int, most: int) -> ChangeSpan:
        return self._service.store.changes.after(position, most)

    def _check_room(self, client: str) -> None:
        if self._ended:
            raise BusyError("this server is ending; ask again in a moment")
        if len(self._streams) >= self.most:
            raise BusyError(f"there are {self.most} event streams already; poll, or ask again later")
        if Counter(stream.listener.name for stream in self._streams)[client] >= MOST_OF_A_CLIENT:
            reason = f"this client has {MOST_OF_A_CLIENT} event streams already, which is the most for one"
            raise BusyError(f"{reason}; end one, or let pages share one")

    async def _awake(self) -> None:
        """Start the reading task if necessary, and wait until it has read once."""
        while self._reading is None or not self._caught_up.done():
            if self._reading is None:
                self._caught_up = asyncio.get_running_loop().create_future()
                # Without a caller: what each listener may see is decided later.
                reading = self._read_on(self._caught_up)
                self._reading = asyncio.create_task(reading, context=contextvars.Context())
            await asyncio.shield(self._caught_up)

    async def _read_on(self, caught_up: asyncio.Future[None]) -> None:
        loop = asyncio.get_running_loop()
        beat, away = loop.time(), False
        while True:
            for stream in self._streams:
                if not stream.listener.may():
                    stream.end()
            try:
                span = await asyncio.to_thread(self._after, self.position, _REMEMBERED)
                self._take(span, await self._audience({change.view.sweep for change in span.changes}))
                away = False
            except Exception as error:  # after any error, later changes are still sent
                if not away:
                    known = isinstance(error, MetricsweepError)
                    log.warning("event streams tell nothing: %s", error, exc_info=None if known else error)
                away = True
            if not caught_up.done():
                caught_up.set_result(None)
            if loop.time() - beat > _HEARTBEAT_SECONDS:
                beat = loop.time()
                for stream in list(self._streams):
                    stream.put(_HEARTBEAT)
            await asyncio.sleep(READ_SECONDS)

    async def _audience(self, sweeps: Set[int]) -> Audience:
        """The sweeps that each listening user may see now; the streams of users without rights are ended."""
        users = {stream.listener.requester for stream in self._streams if not stream.listener.requester.is_owner}
        if not users:
            return {}
        now = await asyncio.to_thread(self._service.accounts.again, users)
        for stream in self._streams:
            if stream.listener.requester in users - now.keys():
                stream.end()
        return {requester: await self._seen(mine, sweeps) for requester, mine in now.items()}

    async def _seen(self, requester: Caller, sweeps: Set[int]) -> Set[int] | None:
        """The sweeps among these that a caller may see; `None` means all."""
        if requester.seen is None:
            return None
        with calling(requester):
            return await asyncio.to_thread(self._service.store.changes.seen, sweeps)

    def _take(self, span: ChangeSpan, audience: Audience) -> None:
        # An event's JSON contains no line break, so that it is one line of data.
        events = [
            (change, _event(change.view.type, change.id, change.view.model_dump_json(exclude_none=True)))
            for change in span.changes
        ]
        if span.since == self.position:
            self._send(events, audience)
        else:  # too many changes since the last read, or another database
            self._remembered.clear()
            self._since = span.since
            for stream in self._streams:
                stream.put(_reset(span.newest))
        forgotten = len(self._remembered) + len(events) - _REMEMBERED
        for _ in range(min(forgotten, len(self._remembered))):
            self._since = self._remembered.popleft()[0].id
        self._remembered.extend(events)
        self.position = span.newest

    def _send(self, events: Sequence[tuple[ChangeEvent, bytes]], audience: Audience) -> None:
        by_sweep: defaultdict[int, list[bytes]] = defaultdict(list)
        for change, event in events:
            by_sweep[change.view.sweep].append(event)
        if not by_sweep:
            return
        chunks = {sweep: b"".join(parts) for sweep, parts in by_sweep.items()}
        whole = b"".join(event for _, event in events)
        for stream in list(self._streams):
            requester = stream.listener.requester
            if not requester.is_owner and requester not in audience:  # new; it may have missed something
                chunk: bytes | None = _reset(events[-1][0].id)
            elif (mine := audience.get(requester)) is not None:
                chunk = b"".join(event for change, event in events if _is_for(change, stream.sweep, mine))
            else:
                chunk = whole if stream.sweep is None else chunks.get(stream.sweep)
            if chunk:
                stream.put(chunk)

    def _opening(self, sweep: int | None, last: int | None, mine: Set[int] | None) -> bytes:
        if last is None or last == self.position:
            return _hello(self.position)
        if not self._since <= last < self.position:
            return _hello(self.position) + _reset(self.position)
        missed: dict[tuple[ChangeKind, str], bytes] = {}
        for change, event in self._remembered:
            if change.id > last and _is_for(change, sweep, mine):
                key = (change.view.type, change.view.url)
                missed.pop(key, None)  # in the order of the last change
                missed[key] = event
        return _hello(last) + b"".join(missed.values())


def _is_for(change: ChangeEvent, sweep: int | None, mine: Set[int] | None) -> bool:
    """Whether a change concerns a stream of one sweep, or of all, whose user may see the sweeps `mine`, or all."""
    return sweep in (None, change.view.sweep) and (mine is None or change.view.sweep in mine)
