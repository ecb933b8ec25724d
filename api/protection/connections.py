"""How many connections there may be, how long each may take, and which of them give way to a new one."""

import asyncio
import json
import logging
import resource
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.server import ServerState

from api.problems import KINDS, MEDIA_TYPE
from api.protection.guards import SECURITY_HEADERS
from api.protection.request_head import HeadRefusedError, StrictReading

log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 512
"""A browser keeps six: this is a department at once. Each may hold a body of 1 MiB while it comes in."""
LEAST_CONNECTIONS: Final = 16
"""Allowed however few files the process may open."""
BACKLOG: Final = 32
"""Connections that wait in the kernel, and that asyncio accepts in one turn of its loop."""
ARRIVING: Final = 4 * BACKLOG
"""File descriptors of those that were accepted and not looked at yet: from there to being closed takes three turns."""
OTHER_FILES: Final = 160
"""File descriptors kept back: 40 threads with a database's three files each, and what is open from the start."""


@dataclass(frozen=True, slots=True)
class ConnectionPatience:
    """Seconds that a client is waited for, and how fast it must read."""

    head: float = 10.0
    """From the first byte of a request to the end of its headers, which any network carries in one packet or two."""
    body: float = 60.0
    """From there to the end of the body: 1 MiB in a minute is a slow telephone line."""
    upload_rate: int = 16 * 1024
    """A file for MLflow may take longer, as long as so many bytes a second come in, over the time of a body."""
    idle: float = 15.0
    """Between two requests, and before the first; longer than the 5 s after which httpx drops a connection itself, so
    that a client never writes into one that we are closing."""
    stalled: float = 20.0
    """What waits to be read is looked at in this interval,"""
    least_rate: int = 1024
    """and must have shrunk by so many bytes a second."""
    look: float = 1.0
    """How often all of them are looked at."""
    end: float = 3.0
    """For an answer that is under way when the server ends; its supervisor kills it after ten."""


class Phase(IntEnum):
    """What a connection waits for; when there are too many, those of the lowest phase give way, the oldest first."""

    IDLE = 0  # a request
    HEAD = 1  # the rest of a request's head
    LEAVING = 2  # closed by us; its client has not read everything yet
    BODY = 3  # the rest of a request's body
    READER = 4  # its client to read
    STREAM = 5  # something to tell; its client resumes where it was
    WORKING = 6  # us: never closed


class Crowd:
    """All connections of a server: looks at them once a second and keeps their number below a bound."""

    def __init__(
        self,
        most: int,
        patience: ConnectionPatience,
        is_upload: Callable[[str, str], bool] = lambda method, path: False,
        is_stream: Callable[[str, str], bool] = lambda method, path: False,
    ) -> None:
        self.most = most
        self.patience = patience
        self.is_upload = is_upload
        self.is_stream = is_stream
        self._here: set[Connection] = set()
        self._next: asyncio.TimerHandle | None = None

    def enter(self, newcomer: "Connection") -> None:
        """Take a connection in; where there are too many, the one that can be spared best is closed for it."""
        others = [one for one in self._here if one.phase() is not Phase.WORKING]
        self._here.add(newcomer)
        if self._next is None:
            self._next = newcomer.loop.call_later(self.patience.look, self._look)
        if len(self._here) <= self.most:
            return
        if not others:
            log.warning("a connection was refused: %s others are at work", self.most)
            newcomer.refuse(HeadRefusedError(503, f"all {self.most} connections are at work; try again in a moment"))
            self.leave(newcomer)
            return
        spared = min(others, key=lambda one: (one.phase(), one.since))
        log.warning("over %s connections: the ones that wait longest are closed", self.most)
        spared.transport.abort()
        self.leave(spared)

    def leave(self, connection: "Connection") -> None:
        """Forget a connection."""
        self._here.discard(connection)

    def _look(self) -> None:
        self._next = None
        for connection in list(self._here):
            connection.look()
        if self._here:
            self._next = next(iter(self._here)).loop.call_later(self.patience.look, self._look)


class Connection(H11Protocol):
    """A connection of uvicorn's that is strict about what it reads and ends when its client makes it wait too long."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        crowd: Crowd,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn: StrictReading = StrictReading()
        self.since = self.loop.time()
        self._crowd = crowd
        self._seen: tuple[Phase, int] = (Phase.IDLE, 0)
        self._unread, self._measured = 0, self.since
        self._came = 0  # bytes since then

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Join the crowd, which may close another for this one."""
        super().connection_made(transport)
        self._crowd.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the crowd."""
        self._crowd.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; bytes of the same request do not buy it more time."""
        if self.transport.is_closing():
            return
        self._came += len(data)
        super().data_received(data)
        self._note()

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls where a request cannot be read."""
        self.refuse(self.conn.refused or HeadRefusedError(400, msg))

    def shutdown(self) -> None:
        """End when what is under way has been answered; what is not whole yet is dropped."""
        self.loop.call_later(self._crowd.patience.end, self.transport.abort)
        if self.conn.their_state is h11.SEND_BODY:
            self.refuse(HeadRefusedError(503, "this server is ending; send the request again in a moment"))
        elif self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self.cycle.keep_alive = False

    def phase(self) -> Phase:
        """What it waits for now."""
        if self.transport.is_closing():
            return Phase.LEAVING
        if self.transport.get_write_buffer_size():
            return Phase.READER
        if self.conn.their_state is h11.SEND_BODY:
            return Phase.BODY
        if self.cycle is None or self.cycle.response_complete:
            return Phase.HEAD if self.conn.trailing_data[0] else Phase.IDLE
        streams = self._crowd.is_stream(self.scope["method"], self.scope["path"])
        return Phase.STREAM if streams and self.cycle.response_started else Phase.WORKING

    def look(self) -> None:
        """End it where its client was waited for long enough."""
        self._note()
        phase, patience, now = self._seen[0], self._crowd.patience, self.loop.time()
        waited = now - self.since
        if phase is Phase.IDLE and waited > patience.idle:
            self.transport.close()
        elif phase is Phase.HEAD and waited > patience.head:
            self.refuse(HeadRefusedError(408, f"the request's headers did not come within {patience.head:g} s"))
        elif phase is Phase.BODY and waited > patience.body:
            if self.flow.read_paused and not self.cycle.response_complete:
                self.since, self._came = now, 0  # it is we who have not read on
            elif self._uploads() and self._came >= patience.upload_rate * waited:
                self.since, self._came = now, 0  # a large file that comes on
            else:
                self.refuse(HeadRefusedError(408, f"the request's body did not come within {patience.body:g} s"))
        elif phase in {Phase.READER, Phase.LEAVING} and now - self._measured > patience.stalled:
            self._measure(now)

    def refuse(self, error: HeadRefusedError) -> None:
        """Answer what cannot be taken with a problem document, if there is still something to answer; then close."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            body = json.dumps(_problem(error)).encode()
            headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), "Connection": "close"}
            headers |= {**SECURITY_HEADERS, "Cache-Control": "no-store"}
            reason = STATUS_PHRASES[error.status]
            response = h11.Response(status_code=error.status, headers=list(headers.items()), reason=reason)
            with suppress(h11.LocalProtocolError):
                for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # whoever reads the body or writes an answer is told that nobody is there
            self.cycle.message_event.set()
        self.transport.close()

    def _note(self) -> None:
        """Start the clock anew where it waits for something else than before."""
        seen = (self.phase(), id(self.cycle))
        if seen != self._seen:
            self._seen, self.since, self._came = seen, self.loop.time(), 0
            self._unread, self._measured = self.transport.get_write_buffer_size(), self.since

    def _uploads(self) -> bool:
        """Whether its body is a file that is passed on while it comes in; once that was refused it is none."""
        return not self.cycle.response_complete and self._crowd.is_upload(self.scope["method"], self.scope["path"])

    def _measure(self, now: float) -> None:
        """Drop a client that has hardly read anything since the last look; nothing is written meanwhile."""
        unread = self.transport.get_write_buffer_size()
        if self._unread - unread < min(self._unread, self._crowd.patience.least_rate * (now - self._measured)):
            self.transport.abort()
        self._unread, self._measured = unread, now


def allowed_connections() -> int:
    """How many connections the limit on open files leaves room for; raises that limit as far as it may be."""
    wanted = MOST_CONNECTIONS + ARRIVING + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            more = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = wanted if soft == resource.RLIM_INFINITY else soft
    return max(LEAST_CONNECTIONS, min(MOST_CONNECTIONS, room - ARRIVING - OTHER_FILES))


def _problem(error: HeadRefusedError) -> dict[str, str | int]:
    return {
        "type": f"urn:metricsweep:problem:{KINDS.get(error.status, 'other')}",
        "title": STATUS_PHRASES[error.status].decode(),
        "status": error.status,
        "detail": error.detail,
        "instance": "",
    }
