"""The pages of listings: trials or candidates of any sweep, and of one."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse

from api.dependencies import Asked
from api.protection.limits import Cursor, Id, Limit
from api.protection.turns import ListingTurn
from api.routes.listings import named
from dashboards import comparison, listing
from dashboards.listing import ListingAddress
from orchestrator.service.listings import ListingWish
from orchestrator.views.errors import InvalidFilterError
from orchestrator.views.filters import LONGEST
from orchestrator.views.listings import Listed

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=ListingTurn)

Number = Annotated[int, Query(ge=1, le=2**31 - 1)]
Text = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]


def _chosen(
    x: Text = "",
    y: Text = "",
    colour: Text = "",
    plot: Annotated[str, Query(max_length=20)] = "",
    show: Annotated[list[Text] | None, Query(max_length=200)] = None,
    columns: Annotated[str | None, Query(max_length=2_000)] = None,
) -> ListingAddress:
    several = tuple(show) if show else None if columns is None else tuple(named(columns) or ())
    return ListingAddress(columns=several, plot=plot, x=x, y=y, colour=colour)


def _sought(
    chosen: Annotated[ListingAddress, Depends(_chosen)],
    where: Annotated[str, Query(max_length=20 * LONGEST)] = "",  # a longer one is told so on the page, too
    sort: Text = "",
    of: Listed = "trials",
    cursor: Cursor = None,
) -> ListingAddress:
    usual = "-trial" if of == "trials" else "-score"
    return ListingAddress(
        where=where.strip(), sort=sort or usual, columns=chosen.columns, of=of, cursor=cursor, plot=chosen.plot,
        x=chosen.x, y=chosen.y, colour=chosen.colour,
    )  # fmt: skip


Page = Annotated[ListingAddress, Depends(_sought)]


@router.get("/trials")
def trials(service: Asked, asked: Page, limit: Limit = 50) -> HTMLResponse:
    """Of all sweeps."""
    return _page(service, asked, limit, "")


@router.get("/sweeps/{id}/trials")
def trials_of_a_sweep(number: Id, service: Asked, asked: Page, limit: Limit = 50) -> HTMLResponse:
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


@router.get("/compare")
def compare(
    service: Asked,
    trial: Annotated[list[Number] | None, Query(max_length=200)] = None,
    candidate: Annotated[list[Number] | None, Query(max_length=200)] = None,
) -> HTMLResponse:
    """Trials side by side; a candidate is shown by its first trial."""
    chosen = list(dict.fromkeys([*(trial or []), *(candidate or [])]))
    views = [service.trials.get(number) for number in chosen[: comparison.MOST]]
    return HTMLResponse(comparison.comparison_page(views, len(chosen) - len(views)))
