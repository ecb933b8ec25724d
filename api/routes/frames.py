"""Routes for notebooks: sweeps, trials, candidates and curves as Arrow's stream, each in one answer."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from api.dependencies import Asked, Id
from api.http.turns import Expensive
from api.problems import documented
from orchestrator.service.trials import MEDIA_TYPE

router = APIRouter(prefix="/v1", tags=["frames"], responses=documented(401, 403, 404, 409, 421, 422, 500, 503))
drawing = APIRouter(prefix="/v1", tags=["frames"], route_class=Expensive, responses=router.responses)

_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Record batches, one after the other.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "contentMediaType": MEDIA_TYPE}}},
    }
}


@router.get("/frames/sweeps", summary="All sweeps as Arrow", response_class=StreamingResponse, responses=_STREAM)
def sweeps(service: Asked) -> StreamingResponse:
    """A row a sweep, newest first."""
    return _streamed(service.frames.sweeps())


@router.get(
    "/sweeps/{id}/frames/trials",
    summary="A sweep's trials as Arrow",
    response_class=StreamingResponse,
    responses=_STREAM,
)
def trials(number: Id, service: Asked) -> StreamingResponse:
    """A row a trial in the order of the plan, with labels, metrics, recipe and provenance."""
    return _streamed(service.frames.trials(number))


@drawing.get(
    "/sweeps/{id}/frames/candidates",
    summary="A sweep's candidates as Arrow",
    response_class=StreamingResponse,
    responses=_STREAM,
)
def candidates(number: Id, service: Asked) -> StreamingResponse:
    """A row a candidate: means and deviations over its repeats, and whether its cell shows it."""
    return _streamed(service.frames.candidates(number))


@router.get(
    "/sweeps/{id}/frames/curves",
    summary="A sweep's curves as Arrow",
    response_class=StreamingResponse,
    responses=_STREAM,
)
def curves(
    number: Id,
    service: Asked,
    key: Annotated[str | None, Query(max_length=200, description="One curve, such as `train/loss`; else all.")] = None,
) -> StreamingResponse:
    """A row a point, trial by trial."""
    return _streamed(service.frames.curves(number, key))


def _streamed(pieces: Iterator[bytes]) -> StreamingResponse:
    return StreamingResponse(pieces, media_type=MEDIA_TYPE)
