"""Event streams: each sends its client the changes of all sweeps or of one, read from the database once a second."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, Final, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import EventSourceResponse, ServerSentEvent

from api.dependencies import Admission, Id, ServiceParameter
from api.problems import documented
from orchestrator.service.service import Service
from orchestrator.views.accounts import OWNER, Caller, caller, calling
from orchestrator.views.errors import BusyError, MetricsweepError
from orchestrator.views.runs import ChangeSpan, ChangeView

log = logging.getLogger(__name__)
router = APIRouter(prefix="/v1", tags=["events"], responses=documented(401, 403, 421, 422, 500, 503))

READ_SECONDS: Final = 1.0
"""How often a stream reads the database; of several changes of one thing the last is sent."""
MOST_MISSED: Final = 2_000
"""How many changes a client that reconnects gets; after more, it gets a `reset`."""
MOST: Final = 100
"""How many streams a process serves."""
MOST_OF_A_CLIENT: Final = 8
"""How many streams a client may open. The tabs of a browser share one, and a script needs one."""
_RETRY_MILLISECONDS: Final = 3_000
"""How long a browser waits before it reconnects."""
_ID: Final = re.compile(r"[0-9]{1,18}")


class Listener(NamedTuple):
    """A client of event streams: its name, by which streams are counted, and whether its login is valid."""

    name: str
    may: Callable[[], bool]


class Streams:
    """Counts the open event streams of this process by client, and ends them with the server."""

    def __init__(self) -> None:
        self.most = MOST
        self.ended = False
        self._open: Counter[str] = Counter()

    @contextmanager
    def place(self, client: str) -> Iterator[None]:
        """Count a stream of a client within the block; raises BusyError if there are too many, in all or of it."""
        if self.ended:
            raise BusyError("this server is ending; ask again in a moment")
        if self._open.total() >= self.most:
            raise BusyError(f"there are {self.most} event streams already; poll, or ask again later")
        if self._open[client] >= MOST_OF_A_CLIENT:
            reason = f"this client has {MOST_OF_A_CLIENT} event streams already, which is the most for one"
            raise BusyError(f"{reason}; end one, or let pages share one")
        self._open[client] += 1
        try:
            yield
        finally:
            self._open -= Counter([client])


def _listener(request: Request, access: Admission) -> Listener:
    """The listener of a request: a browser by its session, a program by its user or its address."""
    session = access.sessions.of(request)
    requester = caller()
    if session and "authorization" not in request.headers:
        return Listener(f"session {session.id}", access.sessions.lasting(session))
    if not requester.is_owner:  # its rights are read with the changes
        name = f"link {min(requester.links)}" if requester.is_visitor else f"user {requester.user}"
        return Listener(name, lambda: True)
    token = request.headers.get("authorization", "").partition(" ")[2]
    return Listener(f"address {request.client.host if request.client else ''}", partial(access.is_token, token))


async def _counted(request: Request, access: Admission) -> AsyncIterator[Listener]:
    listener = _listener(request, access)
    streams: Streams = request.app.state.streams
    with streams.place(listener.name):
        yield listener


def _position(
    last_event_id: Annotated[
        str | None, Header(description="The id of the last event that was seen; browsers send it.")
    ] = None,
    after: Annotated[
        int | None,
        Query(ge=0, le=2**53, description="As `Last-Event-ID`, for clients that cannot send headers; the header wins."),
    ] = None,
) -> int | None:
    """The last event id that a client has seen; -1, which causes a `reset`, if the header is not an id."""
    if last_event_id:  # a browser that reconnects sends it with the original address
        return int(last_event_id) if _ID.fullmatch(last_event_id) else -1
    return after


def _require(number: Id, service: ServiceParameter) -> None:
    service.store.changes.require(number)


Counted = Annotated[Listener, Depends(_counted)]
Position = Annotated[int | None, Depends(_position)]

_EVENT: Final = {  # in addition to FastAPI's schema of any event
    "required": ["event", "id", "data"],
    "properties": {
        "data": {
            "contentMediaType": "application/json",
            # `hello` and `reset` have no data.
            "contentSchema": {
                "anyOf": [
                    {"$ref": f"#/components/schemas/{ChangeView.__name__}"},
                    {"type": "object", "maxProperties": 0},
                ]
            },
        },
    },
}
_EXAMPLE: Final = (
    "event: trial\nid: 812\n"
    'data: {"type":"trial","sweep":7,"url":"/v1/trials/41","state":"finished","cell":3,"trial":41,"step":300,'
    '"total_steps":300,"score":0.61,"diverged":false}\n\n'
)
_CONTENT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Events, each with an `id`, the type as `event`, and as `data` JSON of this form.",
        "content": {"text/event-stream": {"itemSchema": _EVENT, "example": _EXAMPLE}},
    }
}


@router.get("/events", summary="Events of all sweeps", response_class=EventSourceResponse, responses=_CONTENT)
async def events(
    request: Request, service: ServiceParameter, listener: Counted, position: Position
) -> AsyncIterator[ServerSentEvent]:
    """A stream that begins with `hello` and continues after the given id; `reset` means: load everything again."""
    async for event in _events(request, service, listener, None, position):
        yield event


@router.get(
    "/sweeps/{id}/events",
    summary="Events of one sweep",
    response_class=EventSourceResponse,
    responses=_CONTENT | documented(404),
    dependencies=[Depends(_require)],
)
async def sweep_events(
    number: Id, request: Request, service: ServiceParameter, listener: Counted, position: Position
) -> AsyncIterator[ServerSentEvent]:
    """The same with the events of one sweep; the ids are those of all events."""
    async for event in _events(request, service, listener, number, position):
        yield event


async def _events(
    request: Request, service: Service, listener: Listener, sweep: int | None, position: int | None
) -> AsyncIterator[ServerSentEvent]:
    """The events of a stream, until its client has no rights any more or the server ends."""
    streams: Streams = request.app.state.streams
    greeted = failing = False
    while True:
        try:
            span = await run_in_threadpool(_visible, service, caller(), sweep, position)
            if span is None:
                return
            gap = position is not None and span.since != position  # too many changes, or another database
            if not greeted:
                begin = str(span.newest if gap else span.since)
                yield ServerSentEvent(event="hello", id=begin, data={}, retry=_RETRY_MILLISECONDS)
            if gap:
                yield ServerSentEvent(event="reset", id=str(span.newest), data={})
            for change in () if gap else span.changes:
                data = change.view.model_dump_json(exclude_none=True)
                yield ServerSentEvent(event=change.view.type, id=str(change.id), raw_data=data)
            position, greeted, failing = span.newest, True, False
        except Exception as error:  # after any error, later changes are still sent
            if not failing:
                known = isinstance(error, MetricsweepError)
                log.warning("an event stream cannot be continued: %s", error, exc_info=None if known else error)
            failing = True
        if streams.ended or not listener.may():
            return
        await asyncio.sleep(READ_SECONDS)


def _visible(service: Service, requester: Caller, sweep: int | None, position: int | None) -> ChangeSpan | None:
    """The changes after a position that a client may see by its present rights; `None` if it has none any more."""
    accounts, changes = service.store.accounts, service.store.changes
    with calling(OWNER):  # rights depend on other accounts; ids count the changes of all sweeps, also of deleted ones
        now = accounts.again(requester)
        if now is None:
            return None
        if position is None:
            newest = changes.newest()
            return ChangeSpan(newest, newest, [])
        span = changes.after(position, MOST_MISSED)
    wanted = {change.view.sweep for change in span.changes if sweep in (None, change.view.sweep)}
    with calling(now):
        seen = wanted if now.seen is None else changes.seen(wanted)
    return span._replace(changes=[change for change in span.changes if change.view.sweep in seen])
