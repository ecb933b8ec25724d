"""Routes and pages that list and compare trials, candidates, cells and sweeps."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import HTMLResponse, JSONResponse

from api.dependencies import Cursor, Id, Limit, Paged, ServiceParameter
from api.http.turns import Expensive
from api.problems import documented, shown
from dashboards.lists import ROWS, ListingAddress, listing_page
from dashboards.rendering import render
from dashboards.sweeps import MOST, cell_comparison_page, comparison_page
from orchestrator.service.trials import ListingQuery, Plot
from orchestrator.views.errors import ConflictError, InvalidFilterError, NotFoundError
from orchestrator.views.filters import LONGEST
from orchestrator.views.trials import Listed, ListedColumn, Listing

router = APIRouter(
    prefix="/v1", tags=["trials"], route_class=Expensive, responses=documented(401, 404, 421, 422, 500, 503)
)

LISTING: Final = {
    "items": [
        {
            "sweep": 7, "sweep_name": "sec-on-digits", "cell": 2, "candidate": 1, "trial": 41, "repeat": 0,
            "labels": {"loss": "triplet", "regularizer": "sec", "regularizer.eta": "0.5", "seed": "0"},
            "state": "finished", "diverged": False, "reused": False, "trials": 1, "finished": 1,
            "score": 0.6814, "seconds": 41.2, "started": "2026-05-01T12:00:00Z", "ended": "2026-05-01T12:00:41Z",
            "values": {"map@r": 0.6702, "recall@1": 0.9561}, "deviations": {}, "note": "", "tags": ["paper"],
        }
    ],
    "next_cursor": "WzAuNjcwMiwgNDFd", "total": 36, "metrics": ["map@r", "recall@1"], "groups": [],
}  # fmt: skip

COLUMNS: Final = [
    {"key": "loss", "name": "loss", "role": "compare", "numeric": False, "labelled": True},
    {"key": "regularizer.eta", "name": "eta", "role": "tune", "numeric": True, "labelled": True},
    {"key": "best/test/map@r", "name": "map@r", "role": "metric", "numeric": True, "labelled": False},
]

PLOT: Final = {
    "mark": {"type": "point", "filled": True},
    "encoding": {"x": {"field": "v0", "type": "quantitative", "title": "eta"}},
    "usermeta": {"title": "score against eta", "notes": [], "points": 36, "total": 36},
}

Where = Annotated[
    str,
    Query(
        max_length=LONGEST,
        pattern=r"^[^\x00]*$",
        description="A filter of words and conditions; see docs/pages.md.",
        examples=["loss:triplet eta<0.5 map@r>.6"],
    ),
]
Sort = Annotated[
    str,
    Query(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00]+$",
        description="A column; with `-` before it, in descending order. Rows without a value come last.",
        examples=["-map@r"],
    ),
]
OfSweep = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only this sweep.")]
Names = Annotated[
    str | None,
    Query(
        max_length=2_000,
        pattern=r"^[^\x00]*$",
        description="The metrics of a row, comma-separated; by default those of the sweep's tables.",
        examples=["map@r,validation/map@r"],
    ),
]


Text = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$", description="A column.", examples=["map@r"])]


async def _wanted(
    where: Where = "",
    of: Annotated[Listed, Query(description="Trials, or candidates with the means of their trials.")] = "trials",
    sweep: OfSweep = None,
) -> ListingQuery:
    return ListingQuery(where, of, sweep)


Rows = Annotated[ListingQuery, Depends(_wanted)]


def _names(columns: str | None) -> list[str] | None:
    """The names in a comma-separated list; `None` means that there is no list."""
    return None if columns is None else [name for name in map(str.strip, columns.split(",")) if name]


@router.get("/trials", summary="Find trials of any sweep", responses=shown(LISTING, "A page of rows."))
def listing(
    service: ServiceParameter,
    paging: Paged,
    query: Rows,
    sort: Sort = "-trial",
    columns: Names = None,
    count: Annotated[bool, Query(description="Count all rows in `total`.")] = False,
    group: Annotated[
        str, Query(max_length=200, pattern=r"^[^\x00]*$", description="An axis: adds the means of its `groups`.")
    ] = "",
) -> Listing:
    """Trials or candidates that match a filter, sorted by any column."""
    page = service.listings.page(query, sort, _names(columns), paging.cursor, paging.limit, count=count, group=group)
    paging.linked(page)
    return page


@router.get(
    "/plots/{plot}",
    summary="A plot of a listing",
    response_class=JSONResponse,
    responses=shown(PLOT, "Vega-Lite with its data, at most 2,000 points.") | documented(409),
)
def plot(
    service: ServiceParameter,
    plot: Annotated[Plot, Path(description="The plot.", examples=["scatter"])],
    query: Rows,
    x: Text = "",
    y: Text = "",
    colour: Text = "",
) -> JSONResponse:
    """The columns `x` and `y` are the axes, and `colour` gives the colours; each has a default."""
    return JSONResponse(service.listings.plot(plot, query, x, y, colour))


@router.get("/columns", summary="The columns of a listing", responses=shown(COLUMNS, "Axes, then metrics."))
def columns(service: ServiceParameter, sweep: OfSweep = None) -> list[ListedColumn]:
    """The axes and metrics of a sweep's trials, or of all, each with the shortest name that a filter accepts."""
    return service.store.listings.columns(sweep)


pages = APIRouter(include_in_schema=False, route_class=Expensive)

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
    group: FormText = "",
) -> ListingAddress:
    names = show or _names(columns)
    return ListingAddress(
        columns=None if names is None else tuple(names), plot=plot, x=x, y=y, colour=colour, group=group
    )


async def _sought(
    chosen: Annotated[ListingAddress, Depends(_chosen)],
    where: Annotated[str, Query(max_length=20 * LONGEST)] = "",  # the page says if it is longer than `LONGEST`
    sort: FormText = "",
    of: Listed = "trials",
    cursor: Cursor = None,
    limit: Limit = ROWS,
) -> ListingAddress:
    usual = "-trial" if of == "trials" else "-score"
    return replace(chosen, where=where.strip(), sort=sort or usual, of=of, cursor=cursor, limit=limit)


Address = Annotated[ListingAddress, Depends(_sought)]


@pages.get("/trials")
def _trials_page(service: ServiceParameter, address: Address) -> HTMLResponse:
    return _page(service, address, "")


@pages.get("/sweeps/{id}/trials")
def _trials_of_a_sweep(number: Id, service: ServiceParameter, address: Address) -> HTMLResponse:
    return _page(service, replace(address, sweep=number), service.sweeps.get(number).name)


def _page(service: ServiceParameter, address: ListingAddress, name: str) -> HTMLResponse:
    """Render the page; an invalid filter is shown as it was typed, with the error."""
    columns = service.store.listings.columns(address.sweep)
    query = ListingQuery(address.where, address.of, address.sweep)
    try:
        page = service.listings.page(
            query, address.sort, address.columns, address.cursor, address.limit, count=True, group=address.group
        )
    except InvalidFilterError as error:
        problem = f"The filter is wrong {error.detail}." if error.path == "where" else f"{error}."
        return HTMLResponse(listing_page(address, None, columns, sweep_name=name, problem=problem), status_code=422)
    return HTMLResponse(listing_page(address, page, columns, sweep_name=name))


@pages.get("/compare")
def compare(
    service: ServiceParameter,
    trial: Annotated[list[Number] | None, Query(max_length=200)] = None,
    candidate: Annotated[list[Number] | None, Query(max_length=200)] = None,
    cell: Annotated[list[CellPlace] | None, Query(max_length=200)] = None,
    sweep: Annotated[list[Number] | None, Query(max_length=200)] = None,
    of: Annotated[str, Query(pattern="^(trials|cells)$")] = "trials",
) -> HTMLResponse:
    """A comparison of trials, cells (`7/3`) or sweeps.

    A candidate stands for its first trial or, with `of=cells`, for its cell.
    """
    if sweep:
        return HTMLResponse(_compared_sweeps(service, list(dict.fromkeys(sweep))))
    chosen = list(dict.fromkeys([*(trial or []), *(candidate or [])]))
    if cell or of == "cells":
        cells = [(int(sweep), int(index)) for sweep, _, index in (place.partition("/") for place in cell or [])]
        cells += [(found.sweep, found.cell) for found in map(service.trials.get, chosen)]
        places = list(dict.fromkeys(cells))
        found = [service.sweeps.compared(*place) for place in places[:MOST]]
        return HTMLResponse(cell_comparison_page(found, len(places) - len(found)))
    views = [service.trials.get(number) for number in chosen[:MOST]]
    return HTMLResponse(comparison_page(views, len(chosen) - len(views)))


def _compared_sweeps(service: ServiceParameter, chosen: Sequence[int]) -> str:
    shown = chosen[:MOST]
    sweeps = [service.sweeps.get(number) for number in shown]
    tables, problem = dict[str, str](), ""
    try:
        if len(shown) > 1:
            tables["Of all their cells"] = service.tables.compare(shown, None, "merge", "html").content.decode()
        if len(shown) == 2:
            tables["Difference"] = service.tables.compare(shown, None, "difference", "html").content.decode()
    except (ConflictError, NotFoundError) as error:
        problem = str(error)
    numbers, left_out = ",".join(map(str, shown)), len(chosen) - len(shown)
    return render(
        "compare_sweeps.html", sweeps=sweeps, tables=tables, numbers=numbers, left_out=left_out, problem=problem
    )
