"""Routes and pages that list trials or candidates of any sweeps."""

from collections.abc import Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import HTMLResponse, JSONResponse

from api.dependencies import Asked, Cursor, Id, Limit, Paged
from api.http.turns import Expensive
from api.problems import documented, shown
from dashboards.lists import ListingAddress, listing_page
from dashboards.sweeps import MOST, cell_comparison_page, comparison_page, sweep_comparison_page
from orchestrator.service.trials import ListingWish, Plot
from orchestrator.views.errors import ConflictError, InvalidFilterError, NotFoundError
from orchestrator.views.filters import LONGEST
from orchestrator.views.trials import Listed, ListedColumn, Listing

router = APIRouter(
    prefix="/v1", tags=["trials"], route_class=Expensive, responses=documented(401, 404, 421, 422, 500, 503)
)

LISTING: Final = {
    "items": [
        {
            "sweep": 7,
            "sweep_name": "sec-on-digits",
            "cell": 2,
            "candidate": 1,
            "trial": 41,
            "repeat": 0,
            "labels": {"loss": "triplet", "regularizer": "sec", "regularizer.eta": "0.5", "seed": "0"},
            "state": "finished",
            "diverged": False,
            "reused": False,
            "trials": 1,
            "finished": 1,
            "score": 0.6814,
            "seconds": 41.2,
            "started": "2026-05-01T12:00:00Z",
            "ended": "2026-05-01T12:00:41Z",
            "values": {"map@r": 0.6702, "recall@1": 0.9561},
            "deviations": {},
            "note": "",
            "tags": ["paper"],
        }
    ],
    "next_cursor": "WzAuNjcwMiwgNDFd",
    "total": 36,
    "metrics": ["map@r", "recall@1"],
}

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
        description="Words and conditions that rows meet; see docs/pages.md.",
        examples=["loss:triplet eta<0.5 map@r>.6"],
    ),
]
Sort = Annotated[
    str,
    Query(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00]+$",
        description="A column; with `-` before it from the greatest down. What lacks it comes last.",
        examples=["-map@r"],
    ),
]
OfSweep = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only of this sweep.")]
Names = Annotated[
    str | None,
    Query(
        max_length=2_000,
        pattern=r"^[^\x00]*$",
        description="Metrics that rows show, with commas between them; without it those of the sweep's tables.",
        examples=["map@r,validation/map@r"],
    ),
]


Text = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$", description="A column.", examples=["map@r"])]


async def _wanted(
    where: Where = "",
    of: Annotated[Listed, Query(description="Trials, or candidates with the means of their trials.")] = "trials",
    sweep: OfSweep = None,
) -> ListingWish:
    return ListingWish(where, of, sweep)


Rows = Annotated[ListingWish, Depends(_wanted)]


def named(columns: str | None) -> list[str] | None:
    """The names that a list with commas has; none where there is no list."""
    return None if columns is None else [name for name in (one.strip() for one in columns.split(",")) if name]


@router.get("/trials", summary="Find trials of any sweep", responses=shown(LISTING, "A page of rows."))
def listing(
    service: Asked,
    paging: Paged,
    wanted: Rows,
    sort: Sort = "-trial",
    columns: Names = None,
    count: Annotated[bool, Query(description="Say in `total` how many rows there are.")] = False,
) -> Listing:
    """Trials or candidates that a filter holds for, sorted by any column."""
    page = service.listings.page(wanted, sort, named(columns), paging.cursor, paging.limit, count=count)
    paging.linked(page)
    return page


@router.get(
    "/plots/{plot}",
    summary="A plot of a listing",
    response_class=JSONResponse,
    responses=shown(PLOT, "Vega-Lite with its data, at most 2,000 points.") | documented(409),
)
def plot(
    service: Asked,
    plot: Annotated[Plot, Path(description="Which plot.", examples=["scatter"])],
    wanted: Rows,
    x: Text = "",
    y: Text = "",
    colour: Text = "",
) -> JSONResponse:
    """Over the columns `x` and `y`, in the colours of `colour`; the usual ones where none are named."""
    return JSONResponse(service.plots.draw(plot, wanted, x, y, colour))


@router.get("/columns", summary="What trials are found by", responses=shown(COLUMNS, "Axes, then metrics."))
def columns(service: Asked, sweep: OfSweep = None) -> list[ListedColumn]:
    """The axes and metrics of a sweep's trials, or of all, with the shortest names by which a filter knows them."""
    return service.listings.columns(sweep)


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
        return HTMLResponse(listing_page(asked, None, columns, sweep_name=name, problem=told), status_code=422)
    return HTMLResponse(listing_page(asked, page, columns, sweep_name=name))


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
        found = [service.sweeps.compared(*place) for place in places[:MOST]]
        return HTMLResponse(cell_comparison_page(found, len(places) - len(found)))
    views = [service.trials.get(number) for number in chosen[:MOST]]
    return HTMLResponse(comparison_page(views, len(chosen) - len(views)))


def _sweeps_beside(service: Asked, chosen: Sequence[int]) -> str:
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
    return sweep_comparison_page(sweeps, tables, left_out=len(chosen) - len(shown), problem=problem)
