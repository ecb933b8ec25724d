"""Routes of the listings: trials or candidates over any sweeps, and the columns that these have."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import JSONResponse

from api.dependencies import Asked, Paged
from api.http.turns import Expensive
from api.problems import documented, shown
from orchestrator.service.trials import ListingWish, Plot
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
