"""Event streams: one task of the process reads what changed, and hands it to the stream of each client."""

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
from orchestrator.views.runs import ChangeKind, ChangeSpan, Told

MEDIA_TYPE: Final = "text/event-stream"
RETRY_MILLISECONDS: Final = 3_000
"""After how long a browser asks again when a stream ends."""

_ID: Final = re.compile(r"[0-9]{1,18}")


def encoded(told: Told) -> bytes:
    """One event; its JSON holds no line break, so that it is one line of data."""
    return _event(told.view.type, told.id, told.view.model_dump_json(exclude_none=True))


def hello(position: int) -> bytes:
    """The first event of a stream: from where it tells everything."""
    return f"retry: {RETRY_MILLISECONDS}\n".encode() + _event("hello", position, "{}")


def reset(position: int) -> bytes:
    """What a client that comes back too late is told: look at everything anew, and go on from here."""
    return _event("reset", position, "{}")


def resumed_from(header: str | None, query: int | None) -> int | None:
    """The last id that a client has seen. Of what is no id at all we know nothing: -1, which has it look anew."""
    if header:  # a browser that reconnects sends it, with the address that it had at first
        return int(header) if _ID.fullmatch(header) else -1
    return query


def _event(kind: str, position: int, data: str) -> bytes:
    return f"event: {kind}\nid: {position}\ndata: {data}\n\n".encode()


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


log = logging.getLogger(__name__)

Audience: TypeAlias = Mapping[Caller, Set[int] | None]
"""Of listening users, which sweeps of what just changed each sees; none: all."""

READ_SECONDS: Final = 1.0
"""Between two looks at the database while somebody listens; of several changes of one thing the last is told."""
HEARTBEAT_SECONDS: Final = 15.0
REMEMBERED: Final = 2_000
"""Events that a client which comes back is told; after more it looks at everything anew."""
MOST: Final = 320
"""Streams of one process."""
MOST_OF_A_CLIENT: Final = 8
"""A browser's tabs share one stream, a script has one."""


class Feed:
    """Reads changes after its position, remembers the latest, and hands them on; it rests while nobody listens."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.most = MOST
        self._streams: set[Stream] = set()
        self._remembered: deque[tuple[Told, bytes]] = deque()
        self._since, self.position = 0, 0  # nothing between these ids is forgotten
        self._reading: asyncio.Task[None] | None = None
        self._caught_up: asyncio.Future[None]
        self._ended = False

    async def open(self, listener: Listener, sweep: int | None, last: int | None) -> Stream:
        """A stream of one sweep's events or of all, after the id `last` where it is known.

        Raises BusyError where there are as many streams as there may be, in all or of this listener.
        """
        self._check_room(listener.name)
        await self._awake()
        mine = await self._seen(listener.who, {one.view.sweep for one, _ in self._remembered})
        self._check_room(listener.name)
        stream = Stream(listener, sweep, self._opening(sweep, last, mine))
        self._streams.add(stream)
        return stream

    def close(self, stream: Stream) -> None:
        """Forget a stream whose client has gone; with the last one, reading ends."""
        self._streams.discard(stream)
        if not self._streams and self._reading is not None:
            self._reading.cancel()
            if not self._caught_up.done():
                self._caught_up.set_result(None)  # who waits for it begins anew
            self._reading = None

    def end(self) -> None:
        """End all streams, as the server does."""
        self._ended = True
        for stream in self._streams:
            stream.end()

    @property
    def streams(self) -> int:
        """How many there are."""
        return len(self._streams)

    def _after(self, position: int, most: int) -> ChangeSpan:
        return self._service.changes.after(position, most)

    def _check_room(self, client: str) -> None:
        if self._ended:
            raise BusyError("this server is ending; ask again in a moment")
        if len(self._streams) >= self.most:
            raise BusyError(f"there are {self.most} event streams already; poll, or ask again later")
        if Counter(stream.listener.name for stream in self._streams)[client] >= MOST_OF_A_CLIENT:
            said = f"this client has {MOST_OF_A_CLIENT} event streams already, which is the most for one"
            raise BusyError(f"{said}; end one, or let pages share one")

    async def _awake(self) -> None:
        """Have the task read, and wait until it has read once."""
        while self._reading is None or not self._caught_up.done():
            if self._reading is None:
                self._caught_up = asyncio.get_running_loop().create_future()
                # For nobody in particular: what each listener sees of it is asked for each.
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
                span = await asyncio.to_thread(self._after, self.position, REMEMBERED)
                self._take(span, await self._audience({one.view.sweep for one in span.changes}))
                away = False
            except Exception as error:  # whatever it is, who listens now and later is told of what comes after it
                if not away:
                    known = isinstance(error, MetricsweepError)
                    log.warning("event streams tell nothing: %s", error, exc_info=None if known else error)
                away = True
            if not caught_up.done():
                caught_up.set_result(None)
            if loop.time() - beat > HEARTBEAT_SECONDS:
                beat = loop.time()
                for stream in list(self._streams):
                    stream.put(HEARTBEAT)
            await asyncio.sleep(READ_SECONDS)

    async def _audience(self, sweeps: Set[int]) -> Audience:
        """Which of the sweeps each listening user sees, as rights are now; who has none left is sent away."""
        users = {stream.listener.who for stream in self._streams if stream.listener.who.user is not None}
        if not users:
            return {}
        now = await asyncio.to_thread(self._service.accounts.again, users)
        for stream in self._streams:
            if stream.listener.who in users - now.keys():
                stream.end()
        return {who: await self._seen(mine, sweeps) for who, mine in now.items()}

    async def _seen(self, who: Caller, sweeps: Set[int]) -> Set[int] | None:
        """Those of the sweeps that a caller sees; none: all."""
        if who.seen is None:
            return None
        with calling(who):
            return await asyncio.to_thread(self._service.changes.seen, sweeps)

    def _take(self, span: ChangeSpan, audience: Audience) -> None:
        said = [(one, encoded(one)) for one in span.changes]
        if span.since == self.position:
            self._hand_on(said, audience)
        else:  # too much happened since, or another database took this one's place
            self._remembered.clear()
            self._since = span.since
            for stream in self._streams:
                stream.put(reset(span.newest))
        forgotten = len(self._remembered) + len(said) - REMEMBERED
        for _ in range(min(forgotten, len(self._remembered))):
            self._since = self._remembered.popleft()[0].id
        self._remembered.extend(said)
        self.position = span.newest

    def _hand_on(self, told: Sequence[tuple[Told, bytes]], audience: Audience) -> None:
        by_sweep: defaultdict[int, list[bytes]] = defaultdict(list)
        for change, said in told:
            by_sweep[change.view.sweep].append(said)
        if not by_sweep:
            return
        chunks = {sweep: b"".join(said) for sweep, said in by_sweep.items()}
        whole = b"".join(said for _, said in told)
        for stream in list(self._streams):
            who = stream.listener.who
            mine = None if who.user is None else audience.get(who, frozenset())
            if mine is not None:
                chunk: bytes | None = _shown(told, mine, stream.sweep)
                if who not in audience:  # it began while that was asked, and may have missed something
                    chunk = reset(told[-1][0].id)
            else:
                chunk = whole if stream.sweep is None else chunks.get(stream.sweep)
            if chunk:
                stream.put(chunk)

    def _opening(self, sweep: int | None, last: int | None, mine: Set[int] | None) -> bytes:
        if last is None or last == self.position:
            return hello(self.position)
        if not self._since <= last < self.position:
            return hello(self.position) + reset(self.position)
        missed: dict[tuple[ChangeKind, str], bytes] = {}
        for one, said in self._remembered:
            if one.id > last and sweep in (None, one.view.sweep) and (mine is None or one.view.sweep in mine):
                key = (one.view.type, one.view.url)
                missed.pop(key, None)  # told in the order of the last change
                missed[key] = said
        return hello(last) + b"".join(missed.values())


def _shown(told: Sequence[tuple[Told, bytes]], mine: Set[int], sweep: int | None) -> bytes:
    """What somebody is told who sees these sweeps and listens to one, or to all of them."""
    return b"".join(said for one, said in told if one.view.sweep in mine and sweep in (None, one.view.sweep))
