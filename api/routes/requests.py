"""Routes by which clients ask for something to be done with a sweep, and see what the conductor made of it."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response

from api import examples
from api.dependencies import Actor, Asked, Id, Paged, Priority, spec_body
from api.http.turns import ExpensiveSpec
from api.openapi import documented, shown
from api.routes.sweeps import SPEC_CONTENT
from orchestrator.views.mirror import MirrorView
from orchestrator.views.pages import Page
from orchestrator.views.requests import RequestView
from orchestrator.views.sweeps import SweepView

router = APIRouter(prefix="/v1", tags=["requests"], responses=documented(401, 403, 421, 422, 500, 503))
extending = APIRouter(prefix="/v1", tags=["requests"], route_class=ExpensiveSpec, responses=router.responses)

_ASKED = shown(examples.SWEEP, "Asked for; `Location` says what becomes of it.", 202)

Trial = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only this trial.")]
Cell = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only the trials of this cell.")]


@router.post("/sweeps/{id}/cancel", status_code=202, summary="Cancel a sweep", responses=_ASKED | documented(404, 409))
def cancel(
    number: Id,
    service: Asked,
    actor: Actor,
    response: Response,
    trial: Trial = None,
    cell: Cell = None,
) -> SweepView:
    """Ask that trials that have not ended be stopped; what other sweeps want goes on. 409 where all have ended."""
    return _asked(service.commands.cancel(number, actor, trial, cell), service, response)


@router.post(
    "/sweeps/{id}/retry",
    status_code=202,
    summary="Retry a sweep's failed and cancelled trials",
    responses=_ASKED | documented(404, 409),
)
def retry(
    number: Id,
    service: Asked,
    actor: Actor,
    response: Response,
    trial: Trial = None,
    cell: Cell = None,
    only: Annotated[
        Literal["failed", "all"] | None,
        Query(description="`failed`: not those that were cancelled; `all`: pruned ones too."),
    ] = None,
) -> SweepView:
    """Ask that failed and cancelled trials wait again; finished ones are kept."""
    return _asked(service.commands.retry(number, actor, trial, cell, only or ""), service, response)


@router.post("/sweeps/{id}/pause", status_code=202, summary="Pause a sweep", responses=_ASKED | documented(404, 409))
def pause(number: Id, service: Asked, actor: Actor, response: Response) -> SweepView:
    """Ask that nothing more of the sweep be started; what trains goes on to its end."""
    return _asked(service.commands.pause(number, actor), service, response)


@router.post(
    "/sweeps/{id}/resume", status_code=202, summary="Resume a paused sweep", responses=_ASKED | documented(404, 409)
)
def resume(number: Id, service: Asked, actor: Actor, response: Response) -> SweepView:
    """Ask that the sweep take its turn again."""
    return _asked(service.commands.resume(number, actor), service, response)


@router.post(
    "/sweeps/{id}/priority", status_code=202, summary="Set a sweep's priority", responses=_ASKED | documented(404, 409)
)
def priority(number: Id, service: Asked, actor: Actor, response: Response, value: Priority) -> SweepView:
    """Ask that the sweep be drawn before those of lower priority; nothing that trains is stopped for it."""
    return _asked(service.commands.prioritize(number, value, actor), service, response)


@extending.post(
    "/sweeps/{id}/extend",
    status_code=202,
    summary="Extend a sweep",
    responses=_ASKED | documented(404, 409, 413, 415),
    openapi_extra={"requestBody": {"required": True, "content": SPEC_CONTENT}},
)
def extend(
    number: Id,
    body: Annotated[bytes, Depends(spec_body)],
    service: Asked,
    actor: Actor,
    response: Response,
) -> SweepView:
    """Ask that the sweep grow to a wider spec (more seeds, a new loss); only what is new is trained."""
    return _asked(service.commands.extend(number, body, actor), service, response)


@router.post(
    "/sweeps/{id}/mirror",
    status_code=202,
    summary="Tell MLflow of a sweep anew",
    responses=_ASKED | documented(404, 409),
)
def mirror(number: Id, service: Asked, actor: Actor, response: Response) -> SweepView:
    """Ask that MLflow be told of all runs of the sweep anew: of one that was wiped or is out of date."""
    return _asked(service.commands.mirror(number, actor), service, response)


@router.delete(
    "/sweeps/{id}",
    status_code=202,
    summary="Delete a sweep",
    responses=shown(examples.DELETION, "Asked for; `Location` says what becomes of it.", 202) | documented(404, 409),
)
def delete(
    number: Id,
    service: Asked,
    actor: Actor,
    response: Response,
    confirm: Annotated[str, Query(max_length=200, description="The sweep's name, against slips.")],
) -> RequestView:
    """Ask that an ended sweep be deleted, with checkpoints, logs and results that no other sweep uses."""
    asked = service.commands.delete(number, confirm, actor)
    response.headers["Location"] = f"/v1/requests/{asked.id}"
    return asked


@router.get(
    "/sweeps/{id}/requests",
    summary="List what was asked of a sweep",
    responses=shown(examples.REQUESTS, "A page of requests.") | documented(404),
)
def requests(number: Id, service: Asked, paging: Paged) -> Page[RequestView]:
    """What was asked, newest first, and what became of it; also of a sweep that was deleted."""
    return paging.linked(service.commands.requests(number, paging.cursor, paging.limit))


@router.get(
    "/requests/{id}", summary="One request", responses=shown(examples.REQUEST, "The request.") | documented(404)
)
def request(number: Id, service: Asked) -> RequestView:
    """Whether it waits, was carried out or was refused, and why."""
    return service.commands.request(number)


@router.get(
    "/mirror",
    summary="What MLflow is still to be told",
    responses=shown(examples.MIRROR, "How much.") | documented(404),
)
def mirrored(
    service: Asked,
    sweep: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only of this sweep.")] = None,
) -> MirrorView:
    """How many runs, of a sweep or of all, MLflow does not show as they are, and why one could not be told."""
    return service.sweeps.mirror(sweep)


def _asked(asked: RequestView, service: Asked, response: Response) -> SweepView:
    response.headers["Location"] = f"/v1/requests/{asked.id}"
    return service.sweeps.get(asked.sweep)
