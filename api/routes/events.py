"""Routes of the event streams: what changes, as it changes, of all sweeps or of one."""

from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from api.dependencies import Admission, Asked, Id
from api.events import MEDIA_TYPE, Feed, Listener, Stream, resumed_from
from api.problems import documented
from orchestrator.views.accounts import caller
from orchestrator.views.runs import ChangeView

router = APIRouter(prefix="/v1", tags=["events"], responses=documented(401, 403, 421, 422, 500, 503))

_EVENT: Final = {
    "type": "object",
    "required": ["event", "id", "data"],
    "properties": {
        "event": {"type": "string"},
        "id": {"type": "string"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            # `hello` and `reset` say nothing but their id.
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
        "content": {
            MEDIA_TYPE: {
                "schema": _EVENT,
                "example": _EXAMPLE,
            }
        },
    }
}

LastSeen = Annotated[str | None, Header(description="The id of the last event that was seen; browsers send it.")]
After = Annotated[
    int | None, Query(ge=0, le=2**53, description="The same, from who cannot send a header; the header wins.")
]


def is_stream(method: str, path: str) -> bool:
    """Whether a request asks for events: it is answered as long as its client listens, and counted apart."""
    return method == "GET" and path.startswith("/v1/") and path.endswith("/events")


@router.get("/events", summary="What changes, of all sweeps", response_class=StreamingResponse, responses=_CONTENT)
async def events(
    request: Request, access: Admission, last_event_id: LastSeen = None, after: After = None
) -> StreamingResponse:
    """A stream that begins with `hello` and goes on from a known id; `reset` says that too much came since."""
    return await _streamed(request, access, None, resumed_from(last_event_id, after))


@router.get(
    "/sweeps/{id}/events",
    summary="What changes of one sweep",
    response_class=StreamingResponse,
    responses=_CONTENT | documented(404),
)
async def sweep_events(
    number: Id,
    request: Request,
    access: Admission,
    service: Asked,
    last_event_id: LastSeen = None,
    after: After = None,
) -> StreamingResponse:
    """The same with one sweep's events alone; the ids are those of all."""
    await run_in_threadpool(service.changes.require, number)
    return await _streamed(request, access, number, resumed_from(last_event_id, after))


async def _streamed(request: Request, access: Admission, sweep: int | None, last: int | None) -> "EventStream":
    feed: Feed = request.app.state.feed
    return EventStream(feed, await feed.open(_listener(request, access), sweep, last))


class EventStream(StreamingResponse):
    """Sends what a stream has until it ends or its client leaves, and frees its place however that comes."""

    media_type = MEDIA_TYPE

    def __init__(self, feed: Feed, stream: Stream) -> None:
        super().__init__(stream.chunks(), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._feed, self._stream = feed, stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._feed.close(self._stream)


def _listener(request: Request, access: Admission) -> Listener:
    """Who has a stream: a browser by its login and for as long as that lasts, a program by its user or its address."""
    session = access.sessions.of(request)
    who = caller()
    if session and "authorization" not in request.headers:
        return Listener(f"session {session.id}", access.sessions.lasting(session), who)
    if who.user is not None:  # the feed asks anew what a user may
        return Listener(f"user {who.user}", lambda: True, who)
    given = request.headers.get("authorization", "").partition(" ")[2]
    return Listener(f"address {request.client.host if request.client else ''}", partial(access.is_token, given), who)
