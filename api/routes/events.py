"""Routes of the event streams: the changes of all sweeps or of one."""

from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from api.dependencies import Admission, Id, ServiceParameter
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
        "content": {MEDIA_TYPE: {"schema": _EVENT, "example": _EXAMPLE}},
    }
}

LastSeen = Annotated[str | None, Header(description="The id of the last event that was seen; browsers send it.")]
After = Annotated[
    int | None,
    Query(ge=0, le=2**53, description="As `Last-Event-ID`, for clients that cannot send headers; the header wins."),
]


@router.get("/events", summary="Events of all sweeps", response_class=StreamingResponse, responses=_CONTENT)
async def events(
    request: Request, access: Admission, last_event_id: LastSeen = None, after: After = None
) -> StreamingResponse:
    """A stream that begins with `hello` and continues after the given id; `reset` means: load everything again."""
    return await _streamed(request, access, None, resumed_from(last_event_id, after))


@router.get(
    "/sweeps/{id}/events",
    summary="Events of one sweep",
    response_class=StreamingResponse,
    responses=_CONTENT | documented(404),
)
async def sweep_events(
    number: Id,
    request: Request,
    access: Admission,
    service: ServiceParameter,
    last_event_id: LastSeen = None,
    after: After = None,
) -> StreamingResponse:
    """The same with the events of one sweep; the ids are those of all events."""
    await run_in_threadpool(service.store.changes.require, number)
    return await _streamed(request, access, number, resumed_from(last_event_id, after))


async def _streamed(request: Request, access: Admission, sweep: int | None, last: int | None) -> "EventStream":
    feed: Feed = request.app.state.feed
    return EventStream(feed, await feed.open(_listener(request, access), sweep, last))


class EventStream(StreamingResponse):
    """Sends a stream until it ends or its client leaves, and then removes it from the feed."""

    media_type = MEDIA_TYPE

    def __init__(self, feed: Feed, stream: Stream) -> None:
        super().__init__(stream.chunks(), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._feed, self._stream = feed, stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._feed.close(self._stream)


def _listener(request: Request, access: Admission) -> Listener:
    """The listener of a request: a browser by its session, a program by its user or its address."""
    session = access.sessions.of(request)
    requester = caller()
    if session and "authorization" not in request.headers:
        return Listener(f"session {session.id}", access.sessions.lasting(session), requester)
    if not requester.is_owner:  # the feed reads its rights again
        name = f"link {min(requester.links)}" if requester.is_visitor else f"user {requester.user}"
        return Listener(name, lambda: True, requester)
    token = request.headers.get("authorization", "").partition(" ")[2]
    return Listener(
        f"address {request.client.host if request.client else ''}", partial(access.is_token, token), requester
    )
