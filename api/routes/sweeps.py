"""Routes of the sweeps: submit, list and read."""

from typing import Annotated, Any

import yaml
from fastapi import APIRouter, Depends, Query, Response

from api import examples
from api.dependencies import (
    SPEC_TYPES,
    Actor,
    Asked,
    Id,
    IdempotencyKey,
    Name,
    Paged,
    Priority,
    ProjectName,
    SweepTag,
    spec_body,
)
from api.http.turns import ExpensiveSpec
from api.openapi import documented, shown
from orchestrator.views.lifecycle import SweepState
from orchestrator.views.pages import Page
from orchestrator.views.submissions import Preview, Submitted
from orchestrator.views.sweeps import GridCell, SweepSummary, SweepView

router = APIRouter(prefix="/v1/sweeps", tags=["sweeps"], responses=documented(401, 403, 421, 422, 500, 503))
posting = APIRouter(prefix="/v1/sweeps", tags=["sweeps"], route_class=ExpensiveSpec, responses=router.responses)

_EXAMPLE: Any = yaml.safe_load(examples.SPEC)
SPEC_CONTENT: dict[str, Any] = {kind: {"schema": {"type": "object"}, "example": _EXAMPLE} for kind in SPEC_TYPES}


@posting.post(
    "",
    status_code=201,
    response_model=Submitted | Preview,
    summary="Submit a sweep",
    responses=documented(404, 409, 413, 415)
    | {
        200: {
            "description": "With `dry_run`: what the spec would become. With a known key: the known sweep.",
            "model": Submitted | Preview,
            "content": {
                "application/json": {
                    "examples": {
                        "dry run": {"value": examples.PREVIEW},
                        "known key": {"value": examples.SUBMITTED | {"created": False}},
                    }
                }
            },
        }
    }
    | shown(examples.SUBMITTED, "The sweep is queued; `Location` says where it is.", 201),
    openapi_extra={"requestBody": {"required": True, "content": SPEC_CONTENT}},
)
def submit(  # noqa: PLR0913, PLR0917  a parameter each of the route's
    body: Annotated[bytes, Depends(spec_body)],
    service: Asked,
    actor: Actor,
    response: Response,
    idempotency_key: IdempotencyKey = None,
    dry_run: Annotated[bool, Query(description="Only say what the spec would become; nothing is stored.")] = False,
    priority: Priority = 0,
    project: ProjectName = None,
) -> Submitted | Preview:
    """Check a spec and queue it; every problem is reported at once, and nothing of a refused spec is stored."""
    if dry_run:
        response.status_code = 200
        return service.submissions.preview(body, project)
    submitted = service.submissions.submit(body, idempotency_key, actor, priority, project)
    response.status_code = 201 if submitted.created else 200
    response.headers["Location"] = f"/v1/sweeps/{submitted.id}"
    return submitted


@router.get(
    "",
    summary="List sweeps, newest first",
    responses=shown(examples.SWEEPS, "A page of sweeps.") | documented(404),
)
def sweeps(
    service: Asked,
    paging: Paged,
    state: Annotated[SweepState | None, Query(description="Only sweeps in this state.")] = None,
    name: Name = None,
    tag: SweepTag = None,
) -> Page[SweepSummary]:
    """Sweeps by state, name and tag; `next_cursor`, and a Link header, lead to the next page."""
    return paging.linked(service.sweeps.page(state, name, paging.cursor, paging.limit, tag or None))


@router.get("/{id}", summary="One sweep", responses=shown(examples.SWEEP, "The sweep.") | documented(404))
def sweep(number: Id, service: Asked) -> SweepView:
    """Its state, counts, spec, problems and links."""
    return service.sweeps.get(number)


@router.get(
    "/{id}/grid",
    summary="A sweep's cells, candidates and trials",
    responses=shown(examples.GRID, "The cells in the order of the plan.") | documented(404),
)
def grid(number: Id, service: Asked) -> list[GridCell]:
    """Every trial with its state, grouped by candidate and cell; the selected candidate is marked."""
    return service.sweeps.grid(number)
