"""The curves of several trainings beside each other: as data for programs, and as a page."""

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from api.dependencies import Asked
from api.http.turns import Expensive
from api.problems import documented, shown
from dashboards import sweeps as curves_page
from orchestrator.service.trials import DEFAULT_POINTS, By, CurvesAsked
from orchestrator.views.errors import ConflictError
from orchestrator.views.trials import Against, CurveLines

router = APIRouter(
    prefix="/v1/curves",
    tags=["trials"],
    route_class=Expensive,
    responses=documented(401, 404, 409, 421, 422, 500, 503),
)
page = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=Expensive)

_NUMBERS = r"^[0-9]{1,9}(,[0-9]{1,9}){0,199}$"

_EXAMPLE: Final[dict[str, Any]] = {
    "key": "validation/map@r", "x": "step", "smoothing": 0.6, "keys": ["train/loss", "validation/map@r"],
    "traces": [
        {
            "label": "triplet · sec · eta 0.5", "sweep": 7, "cell": 2, "candidate": 1, "trials": [40, 41], "runs": 2,
            "running": True, "points": [[30, 0.41], [60, 0.52]], "band": [[30, 0.39, 0.43], [60, 0.51, 0.53]],
        }
    ],
    "left_out": 0,
}  # fmt: skip


class CurvesQuery(BaseModel):
    """Which curves, and how: `trials` or a `sweep`."""

    trials: str | None = Field(default=None, pattern=_NUMBERS, description="Trials, a line each.", examples=["41,42"])
    sweep: int | None = Field(default=None, ge=1, le=2**31 - 1, description="A sweep, in place of trials.")
    cells: str | None = Field(default=None, pattern=_NUMBERS, description="Only these cells of it.", examples=["0,3"])
    by: By = Field(
        default="cell",
        description="A line for each cell's best candidate, each candidate (means over runs), or each trial.",
    )
    key: str | None = Field(
        default=None, max_length=200, pattern=r"^[^\x00]*$", description="Such as `train/loss`."
    )  # fmt: skip
    x: Against = Field(default="step", description="Over steps, or over the seconds trained.")
    smoothing: float = Field(
        default=0.0, ge=0, lt=1, description="Weight of what was in a debiased exponential moving average; 0: none."
    )
    points: int = Field(default=DEFAULT_POINTS, ge=4, le=2_000, description="At most so many points a line.")

    @property
    def asked(self) -> CurvesAsked:
        """The question, in the service's words; ConflictError where it is none."""
        if bool(self.trials) == (self.sweep is not None):
            raise ConflictError("ask for `trials` or for a `sweep`: one of them")
        return CurvesAsked(
            trials=_numbers(self.trials) or (), sweep=self.sweep, cells=_numbers(self.cells), by=self.by,
            key=self.key or None, x=self.x, smoothing=self.smoothing, points=self.points,
        )  # fmt: skip


class CurvesPageQuery(CurvesQuery):
    """The same on the page, which also chooses the scale of the values."""

    y: Literal["linear", "log"] = "linear"


def _numbers(text: str | None) -> list[int] | None:
    return [int(one) for one in text.split(",")] if text else None


@router.get("", summary="Curves of several trainings", responses=shown(_EXAMPLE, "A line each."))
def curves(query: Annotated[CurvesQuery, Query()], service: Asked) -> CurveLines:
    """Down-sampled so that extremes stay; the mean over a candidate's runs with a band of one sample deviation."""
    return service.curves.traces(query.asked)


@page.get("/curves")
def compared(query: Annotated[CurvesPageQuery, Query()], service: Asked) -> HTMLResponse:
    """The same drawn, with what can be chosen."""
    wanted = query.asked
    found = service.curves.traces(wanted)
    figure = service.curves.chart(found, log=query.y == "log")
    name = service.sweeps.get(wanted.sweep).name if wanted.sweep else None
    return HTMLResponse(curves_page.curves_page(wanted, found, figure, y=query.y, sweep_name=name))
