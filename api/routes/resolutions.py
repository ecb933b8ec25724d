"""Routes of resolutions: have a table's comparisons decided, see what that takes, and what became of it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from api import examples
from api.dependencies import Actor, Asked, Id, person
from api.http.turns import Expensive
from api.openapi import documented, shown
from orchestrator.views.resolutions import ResolutionBudget, ResolutionView
from orchestrator.views.sweeps import SweepView

router = APIRouter(
    prefix="/v1/sweeps",
    tags=["resolutions"],
    route_class=Expensive,
    responses=documented(401, 403, 404, 409, 421, 422, 500, 503),
)
page = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=Expensive)

_ASKED = shown(examples.SWEEP, "Asked for; `Location` says what becomes of it.", 202)

Table = Annotated[
    str | None,
    Query(max_length=100, pattern=r"^[^\x00/]+$", description="A table of the sweep; by default its first."),
]


async def budget(
    hours: Annotated[float | None, Query(gt=0, le=1_000_000, description="Of training, on one slot.")] = None,
    seeds: Annotated[int | None, Query(ge=1, le=48, description="Further ones of any one cell.")] = None,
    within: Annotated[
        float | None,
        Query(
            gt=0, le=1_000_000,
            description="What is known to so much, in the unit of the column, is decided too: half its interval.",
        ),
    ] = None,
) -> ResolutionBudget:  # fmt: skip
    """What a resolution may take, of the query."""
    return ResolutionBudget(hours=hours, seeds=seeds, within=within)


Budget = Annotated[ResolutionBudget, Depends(budget)]


@router.post("/{id}/resolve", status_code=202, summary="Resolve a table's comparisons", responses=_ASKED)
def resolve(
    number: Id, service: Asked, actor: Actor, response: Response, allowed: Budget, table: Table = None
) -> SweepView:
    """Ask that what is open be given further seeds, and nothing else, in rounds, as far as the budget goes."""
    asked = service.resolutions.ask(number, allowed, table, actor)
    response.headers["Location"] = f"/v1/requests/{asked.id}"
    return service.sweeps.get(number)


@router.post("/{id}/halt", status_code=202, summary="End a resolution", responses=_ASKED)
def halt(number: Id, service: Asked, actor: Actor, response: Response) -> SweepView:
    """Ask that no further round follow; what the last one trains goes on. 409 where no resolution goes on."""
    asked = service.resolutions.halt(number, actor)
    response.headers["Location"] = f"/v1/requests/{asked.id}"
    return service.sweeps.get(number)


@router.get("/{id}/resolution", summary="What became of a resolution")
def resolution(number: Id, service: Asked) -> ResolutionView:
    """The last one that was asked of the sweep: verdicts before, rounds, verdicts after, what was spent and saved."""
    return service.resolutions.get(number)


@router.get("/{id}/resolution/plan", summary="What a resolution would begin with")
def plan(number: Id, service: Asked, allowed: Budget, table: Table = None) -> ResolutionView:
    """The first round by what is known now, and what is left out of it, and why; nothing is asked for."""
    return service.resolutions.plan(number, allowed, table)


@page.post("/sweeps/{id}/resolve")
def resolve_button(
    number: Id,
    service: Asked,
    request: Request,
    table: Annotated[str, Form(max_length=100)],
    hours: Annotated[float | None, Form(gt=0, le=1_000_000)] = None,
    seeds: Annotated[int | None, Form(ge=1, le=48)] = None,
    within: Annotated[float | None, Form(gt=0, le=1_000_000)] = None,
) -> RedirectResponse:
    """The button of a sweep's page."""
    allowed = ResolutionBudget(hours=hours, seeds=seeds, within=within)
    service.resolutions.ask(number, allowed, table, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)


@page.post("/sweeps/{id}/halt")
def halt_button(number: Id, service: Asked, request: Request) -> RedirectResponse:
    """The button of a sweep's page."""
    service.resolutions.halt(number, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)
