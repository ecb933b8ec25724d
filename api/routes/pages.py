"""The pages for people: they show what the API shows, and their forms ask what it can be asked."""

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from api.dependencies import Asked, Cursor, Id, Limit, Name, SweepTag, person
from api.http.turns import Expensive
from api.routes.cells import CellIndex
from dashboards import pages
from orchestrator.cost.words import cost_in_words
from orchestrator.views.lifecycle import SweepState
from orchestrator.views.sweeps import Heat

LOG_CHARACTERS: Final = 65_536
"""How much of the end of a log the page of a trial reads."""

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
costly = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=Expensive)


@router.get("/")
def sweeps(
    service: Asked, state: str = "", name: Name = None, tag: SweepTag = None, cursor: Cursor = None, limit: Limit = 50
) -> HTMLResponse:
    """The sweeps, newest first; an empty field of the filter's form filters nothing."""
    wanted = next((one for one in SweepState if one.value == state), None)
    if state and wanted is None:
        raise HTTPException(404, f"no state {state!r}; there are {', '.join(SweepState)}")
    page = service.sweeps.page(wanted, name or None, cursor, limit, tag or None)
    return HTMLResponse(pages.sweeps_page(page, state=wanted, name=name or None, tag=tag or None))


@costly.get("/sweeps/{id}")
def sweep(number: Id, service: Asked, heat: Heat = "metric") -> HTMLResponse:
    """One sweep with its tables, grid and problems; `heat`: by what the tables are coloured."""
    found = service.sweeps.get(number)
    small = found.counts.total <= pages.MOST_TABLED
    tables = {name: service.tables.html(number, name, heat) if small else None for name in found.tables}
    grid, cells = service.sweeps.grid(number, pages.MOST_SQUARES), service.sweeps.cell_count(number)
    cost = service.sweeps.left(found)
    left = list(cost_in_words(cost)) if cost and cost.trainings else []
    shown = pages.BesideSweep(tables, heat, service.resolutions.latest(number), service.sweeps.allowed(number))
    return HTMLResponse(pages.sweep_page(found, grid, shown, cells=cells, left=left))


@costly.get("/sweeps/{id}/cells/{index}")
def cell(number: Id, index: CellIndex, service: Asked) -> HTMLResponse:
    """What stands behind the numbers of one cell."""
    found = service.sweeps.cell(number, index)
    return HTMLResponse(pages.cell_page(found, service.sweeps.cell_figure(found), service.sweeps.allowed(number)))


@costly.get("/trials/{id}")
def trial(number: Id, service: Asked) -> HTMLResponse:
    """One trial with its curves, recipe, error and log."""
    found = service.trials.get(number)
    log, files = service.trials.log(number, -LOG_CHARACTERS), service.trials.files(number)
    beside = pages.Surroundings(
        service.trials.neighbours(number), service.trials.kept(number), service.sweeps.allowed(found.sweep)
    )
    return HTMLResponse(pages.trial_page(found, service.trials.curves_figure(number), log, files, beside))


FormTrial = Annotated[int | None, Form(ge=1, le=2**31 - 1)]
FormCell = Annotated[int | None, Form(ge=0, le=2**31 - 1)]


@router.post("/sweeps/{id}/cancel")
def cancel(
    number: Id, service: Asked, request: Request, trial: FormTrial = None, cell: FormCell = None
) -> RedirectResponse:
    """The button of a sweep's page, of a cell's or of one trial's."""
    service.commands.cancel(number, person(request), trial, cell)
    return RedirectResponse(_where(number, trial, cell), status_code=303)


@router.post("/sweeps/{id}/retry")
def retry(
    number: Id,
    service: Asked,
    request: Request,
    trial: FormTrial = None,
    cell: FormCell = None,
    only: Annotated[Literal["failed"] | None, Form()] = None,
) -> RedirectResponse:
    """The button of a sweep's page, of a cell's or of one trial's; `only`: not those that were cancelled."""
    service.commands.retry(number, person(request), trial, cell, only or "")
    return RedirectResponse(_where(number, trial, cell), status_code=303)


def _where(sweep: int, trial: int | None, cell: int | None) -> str:
    """The page that a button leads back to."""
    if trial is not None:
        return f"/trials/{trial}"
    return f"/sweeps/{sweep}" if cell is None else f"/sweeps/{sweep}/cells/{cell}"


@router.post("/sweeps/{id}/pause")
def pause(number: Id, service: Asked, request: Request) -> RedirectResponse:
    """The button of a sweep's page."""
    service.commands.pause(number, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)


@router.post("/sweeps/{id}/resume")
def resume(number: Id, service: Asked, request: Request) -> RedirectResponse:
    """The button of a sweep's page."""
    service.commands.resume(number, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)


@router.post("/sweeps/{id}/priority")
def priority(
    number: Id,
    service: Asked,
    request: Request,
    value: Annotated[int, Form(ge=-100, le=100)],
) -> RedirectResponse:
    """The button of a sweep's page."""
    service.commands.prioritize(number, value, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)


@router.post("/sweeps/{id}/delete")
def delete(
    number: Id,
    service: Asked,
    request: Request,
    confirm: Annotated[str, Form(max_length=200)],
) -> RedirectResponse:
    """The button of a sweep's page; it leads to the list."""
    service.commands.delete(number, confirm, person(request))
    return RedirectResponse("/", status_code=303)
