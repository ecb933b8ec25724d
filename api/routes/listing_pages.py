"""The pages of listings: trials or candidates of any sweep, and of one."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse

from api.dependencies import Asked, Cursor, Id, Limit
from api.http.turns import Expensive
from api.routes.listings import named
from dashboards import comparison, listing
from dashboards.listing import ListingAddress
from orchestrator.service.trials import ListingWish
from orchestrator.views.errors import ConflictError, InvalidFilterError, NotFoundError
from orchestrator.views.filters import LONGEST
from orchestrator.views.trials import Listed

pages = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=Expensive)

Number = Annotated[int, Query(ge=1, le=2**31 - 1)]
CellPlace = Annotated[str, Query(max_length=20, pattern=r"^[1-9][0-9]{0,8}/[0-9]{1,9}$")]
FormText = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]


async def _chosen(
    x: FormText = "",
    y: FormText = "",
    colour: FormText = "",
    plot: Annotated[str, Query(max_length=20)] = "",
    show: Annotated[list[FormText] | None, Query(max_length=200)] = None,
    columns: Annotated[str | None, Query(max_length=2_000)] = None,
) -> ListingAddress:
    several = tuple(show) if show else None if columns is None else tuple(named(columns) or ())
    return ListingAddress(columns=several, plot=plot, x=x, y=y, colour=colour)


async def _sought(
    chosen: Annotated[ListingAddress, Depends(_chosen)],
    where: Annotated[str, Query(max_length=20 * LONGEST)] = "",  # a longer one is told so on the page, too
    sort: FormText = "",
    of: Listed = "trials",
    cursor: Cursor = None,
) -> ListingAddress:
    usual = "-trial" if of == "trials" else "-score"
    return ListingAddress(
        where=where.strip(), sort=sort or usual, columns=chosen.columns, of=of, cursor=cursor, plot=chosen.plot,
        x=chosen.x, y=chosen.y, colour=chosen.colour,
    )  # fmt: skip


Address = Annotated[ListingAddress, Depends(_sought)]


@pages.get("/trials")
def trials_page(service: Asked, asked: Address, limit: Limit = 50) -> HTMLResponse:
    """Of all sweeps."""
    return _page(service, asked, limit, "")


@pages.get("/sweeps/{id}/trials")
def trials_of_a_sweep(number: Id, service: Asked, asked: Address, limit: Limit = 50) -> HTMLResponse:
    """Of one sweep."""
    name = service.sweeps.get(number).name
    return _page(service, asked.of_sweep(number), limit, name)


def _page(service: Asked, asked: ListingAddress, limit: int, name: str) -> HTMLResponse:
    """The page; a filter that is wrong stays as it was typed, with what is wrong beside it."""
    columns = service.listings.columns(asked.sweep)
    wanted = ListingWish(asked.where, asked.of, asked.sweep)
    try:
        page = service.listings.page(wanted, asked.sort, asked.columns, asked.cursor, limit, count=True)
    except InvalidFilterError as error:
        told = f"The filter is wrong {error.said}." if error.path == "where" else f"{error}."
        return HTMLResponse(listing.listing_page(asked, None, columns, sweep_name=name, problem=told), status_code=422)
    return HTMLResponse(listing.listing_page(asked, page, columns, sweep_name=name))


@pages.get("/compare")
def compare(
    service: Asked,
    trial: Annotated[list[Number] | None, Query(max_length=200)] = None,
    candidate: Annotated[list[Number] | None, Query(max_length=200)] = None,
    cell: Annotated[list[CellPlace] | None, Query(max_length=200)] = None,
    sweep: Annotated[list[Number] | None, Query(max_length=200)] = None,
    of: Annotated[str, Query(pattern="^(trials|cells)$")] = "trials",
) -> HTMLResponse:
    """Trials side by side, or cells (`7/3`), or sweeps; a candidate by its first trial, or with `of=cells` its cell."""
    if sweep:
        return HTMLResponse(_sweeps_beside(service, list(dict.fromkeys(sweep))))
    chosen = list(dict.fromkeys([*(trial or []), *(candidate or [])]))
    if cell or of == "cells":
        named_cells = [(int(sweep), int(index)) for sweep, _, index in (one.partition("/") for one in cell or [])]
        theirs = [service.trials.get(number) for number in chosen]
        places = list(dict.fromkeys([*named_cells, *((one.sweep, one.cell) for one in theirs)]))
        found = [service.sweeps.compared(*place) for place in places[: comparison.MOST]]
        return HTMLResponse(comparison.cell_comparison_page(found, len(places) - len(found)))
    views = [service.trials.get(number) for number in chosen[: comparison.MOST]]
    return HTMLResponse(comparison.comparison_page(views, len(chosen) - len(views)))


def _sweeps_beside(service: Asked, chosen: Sequence[int]) -> str:
    shown = chosen[: comparison.MOST]
    sweeps = [service.sweeps.get(number) for number in shown]
    tables, problem = dict[str, str](), ""
    try:
        if len(shown) > 1:
            tables["Of all their cells"] = service.tables.compare(shown, None, "merge", "html").content.decode()
        if len(shown) == 2:
            tables["Difference"] = service.tables.compare(shown, None, "difference", "html").content.decode()
    except (ConflictError, NotFoundError) as error:
        problem = str(error)
    return comparison.sweep_comparison_page(sweeps, tables, left_out=len(chosen) - len(shown), problem=problem)
