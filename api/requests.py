"""Routes by which clients ask for something to be done with a sweep; the conductor does it a moment later."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from api import examples
from api.limits import Id, Priority, spec_body
from api.openapi import documented, shown
from api.provided import Actor, Asked
from api.sweeps import SPEC_CONTENT
from orchestrator.views import SweepView

router = APIRouter(prefix="/v1/sweeps", tags=["sweeps"], responses=documented(401, 403, 421, 422, 500, 503))

_ASKED = shown(examples.SWEEP, "Asked for; the conductor applies it.", 202)

Trial = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only this trial.")]
Cell = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only the trials of this cell.")]


@router.post("/{id}/cancel", status_code=202, summary="Cancel a sweep", responses=_ASKED | documented(404, 409))
def cancel(id: Id, service: Asked, actor: Actor, trial: Trial = None, cell: Cell = None) -> SweepView:  # noqa: A002
    """Ask that trials that have not ended be stopped; what they have in common with other sweeps goes on."""
    return service.cancel(id, actor, trial, cell)


@router.post(
    "/{id}/retry",
    status_code=202,
    summary="Retry a sweep's failed and cancelled trials",
    responses=_ASKED | documented(404, 409),
)
def retry(
    id: Id,  # noqa: A002
    service: Asked,
    actor: Actor,
    trial: Trial = None,
    cell: Cell = None,
    only: Annotated[
        Literal["failed", "all"] | None,
        Query(description="`failed`: not those that were cancelled; `all`: pruned ones too."),
    ] = None,
) -> SweepView:
    """Ask that failed and cancelled trials wait again; finished ones are kept."""
    return service.retry(id, actor, trial, cell, only or "")


@router.post("/{id}/pause", status_code=202, summary="Pause a sweep", responses=_ASKED | documented(404, 409))
def pause(id: Id, service: Asked, actor: Actor) -> SweepView:  # noqa: A002
    """Ask that nothing more of the sweep be started; what trains goes on to its end."""
    return service.pause(id, actor)


@router.post("/{id}/resume", status_code=202, summary="Resume a paused sweep", responses=_ASKED | documented(404, 409))
def resume(id: Id, service: Asked, actor: Actor) -> SweepView:  # noqa: A002
    """Ask that the sweep take its turn again."""
    return service.resume(id, actor)


@router.post("/{id}/priority", status_code=202, summary="Set a sweep's priority", responses=_ASKED | documented(404))
def priority(id: Id, service: Asked, actor: Actor, value: Priority) -> SweepView:  # noqa: A002
    """Ask that the sweep be drawn before those of lower priority; nothing that trains is stopped for it."""
    return service.prioritize(id, value, actor)


@router.post(
    "/{id}/extend",
    status_code=202,
    summary="Extend a sweep",
    responses=_ASKED | documented(404, 409, 413, 415),
    openapi_extra={"requestBody": {"required": True, "content": SPEC_CONTENT}},
)
def extend(
    id: Id,  # noqa: A002
    body: Annotated[bytes, Depends(spec_body)],
    service: Asked,
    actor: Actor,
) -> SweepView:
    """Ask that the sweep grow to a wider spec (more seeds, a new loss); only what is new is trained."""
    return service.extend(id, body, actor)


@router.delete("/{id}", status_code=202, summary="Delete a sweep", responses=documented(404, 409))
def delete(
    id: Id,  # noqa: A002
    service: Asked,
    actor: Actor,
    confirm: Annotated[str, Query(max_length=200, description="The sweep's name, against slips.")],
) -> None:
    """Ask that an ended sweep be deleted, with checkpoints, logs and results that no other sweep uses."""
    service.delete(id, confirm, actor)
