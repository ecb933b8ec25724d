"""Routes of the trials: list, read, curves and logs."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from api import examples
from api.dependencies import Asked, Id, Offset, Paged
from api.problems import documented, shown
from orchestrator.views.pages import Page
from orchestrator.views.states import TrialState
from orchestrator.views.trials import Curve, LogView, TrialSummary, TrialView

router = APIRouter(prefix="/v1", tags=["trials"], responses=documented(401, 404, 421, 422, 500, 503))


@router.get(
    "/sweeps/{id}/trials",
    summary="List a sweep's trials",
    responses=shown(examples.TRIALS, "A page of trials."),
)
def trials(
    number: Id,
    service: Asked,
    paging: Paged,
    state: Annotated[TrialState | None, Query(description="Only trials in this state.")] = None,
    cell: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only trials of this cell of the grid.")] = None,
) -> Page[TrialSummary]:
    """Trials by state and cell, in the order of the plan."""
    return paging.linked(service.trials.page(number, state, cell, paging.cursor, paging.limit))


@router.get("/trials/{id}", summary="One trial", responses=shown(examples.TRIAL, "The trial."))
def trial(number: Id, service: Asked) -> TrialView:
    """Its recipe, attempts, metrics, error and provenance."""
    return service.trials.get(number)


@router.get(
    "/trials/{id}/metrics",
    summary="A trial's curves",
    responses=shown(examples.CURVES, "One curve per metric; null where the value is not a number."),
)
def curves(number: Id, service: Asked) -> list[Curve]:
    """What the trial's training reported, as (step, value) points by metric."""
    return service.trials.curves(number)


@router.get(
    "/trials/{id}/logs",
    summary="A trial's log",
    response_model=LogView,
    responses={
        200: {
            "description": "The log from `offset` on; as text where `Accept` prefers it, with the next offset in "
            "`X-Next-Offset` and `true` in `X-Complete` once there will be no more.",
            "content": {
                "application/json": {"example": examples.LOG},
                "text/plain": {"schema": {"type": "string"}, "example": examples.LOG["text"]},
            },
        }
    },
)
def logs(number: Id, service: Asked, request: Request, offset: Offset = 0) -> Response:
    """The lines that the training wrote."""
    log = service.trials.log(number, offset)
    vary = {"Vary": "Accept"}
    if prefers_text(request.headers.get("accept", "")):
        state = {"X-Next-Offset": str(log.next_offset), "X-Complete": str(log.complete).lower()}
        return PlainTextResponse(log.text, headers=vary | state)
    return JSONResponse(log.model_dump(mode="json"), headers=vary)


def prefers_text(accept: str) -> bool:
    """Whether an Accept header wants text rather than JSON; a browser's does, `*/*` does not."""
    weights: dict[str, float] = {}
    for one in accept.split(","):
        kind, *parameters = (piece.strip() for piece in one.split(";"))
        quality = next((piece[2:] for piece in parameters if piece.startswith("q=")), "1")
        try:
            weights[kind.lower()] = float(quality)
        except ValueError:
            weights[kind.lower()] = 0.0
    text = max(weights.get(kind, 0.0) for kind in ("text/plain", "text/html", "text/*"))
    return text > 0 and text > weights.get("application/json", 0.0)
