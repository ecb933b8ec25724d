"""Routes of trials: lists, logs, curves, and frames for notebooks."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, StreamingResponse
from pydantic import Field, StringConstraints

from api import examples
from api.dependencies import AllSeeds, Id, Offset, Paged, ServiceParameter, TestSplit
from api.http.turns import Expensive
from api.problems import documented, shown
from dashboards.sweeps import curves_page
from orchestrator.service.trials import MEDIA_TYPE, CurvesQuery, LinesQuery
from orchestrator.views.pages import Page
from orchestrator.views.states import TrialState
from orchestrator.views.trials import ClassScores, Curve, CurveLines, LogView, TrialSummary, TrialView

router = APIRouter(prefix="/v1", tags=["trials"], responses=documented(401, 404, 421, 422, 500, 503))


@router.get(
    "/sweeps/{id}/trials", summary="List a sweep's trials", responses=shown(examples.TRIALS, "A page of trials.")
)
def trials(
    number: Id,
    service: ServiceParameter,
    paging: Paged,
    state: Annotated[TrialState | None, Query(description="Only trials in this state.")] = None,
    cell: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only trials of this cell of the grid.")] = None,
) -> Page[TrialSummary]:
    """Trials by state and cell, in the order of the plan."""
    return paging.linked(service.store.trials.page(number, state, cell, paging.cursor, paging.limit))


@router.get("/trials/{id}", summary="One trial", responses=shown(examples.TRIAL, "The trial."))
def trial(number: Id, service: ServiceParameter) -> TrialView:
    """Its recipe, attempts, metrics, error and provenance."""
    return service.trials.get(number)


@router.get(
    "/trials/{id}/metrics",
    summary="A trial's curves",
    responses=shown(examples.CURVES, "One curve per metric; null where the value is not a number."),
)
def curves(number: Id, service: ServiceParameter) -> list[Curve]:
    """What the trial's training reported, as (step, value) points by metric."""
    return service.store.curves.of(number)


@router.get(
    "/trials/{id}/logs",
    summary="A trial's log",
    response_model=LogView,
    responses={
        200: {
            "description": "The log from `offset` on; as text where `Accept` prefers it, with the next offset in "
            "`X-Next-Offset` and `true` in `X-Complete` once there will be no more.",
            "content": {
                "application/json": {"example": examples.LOG},
                "text/plain": {"schema": {"type": "string"}, "example": examples.LOG["text"]},
            },
        }
    },
)
def logs(number: Id, service: ServiceParameter, request: Request, offset: Offset = 0) -> Response:
    """The lines that the training wrote."""
    log = service.store.logs.of(number, offset)
    vary = {"Vary": "Accept"}
    accepted = request.headers.get("accept", "")
    if "text/" in accepted and "application/json" not in accepted:
        state = {"X-Next-Offset": str(log.next_offset), "X-Complete": str(log.complete).lower()}
        return PlainTextResponse(log.text, headers=vary | state)
    return JSONResponse(log.model_dump(mode="json"), headers=vary)


@router.get(
    "/trials/{id}/model",
    summary="A trial's model",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The kept weights as `model.safetensors`, with `recipe.json`, `preprocessing.json` and a "
            "`README.md` that says how to load them.",
            "content": {"application/zip": {"schema": {"type": "string", "contentMediaType": "application/zip"}}},
        }
    },
)
def model(number: Id, service: ServiceParameter) -> StreamingResponse:
    """The best weights of a finished training, or the last ones if its recipe selects these."""
    filename, pieces = service.files.model(number)
    headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
    return StreamingResponse(pieces, media_type="application/zip", headers=headers)


classes_router = APIRouter(prefix="/v1", tags=["trials"], route_class=Expensive, responses=router.responses)


@classes_router.get(
    "/trials/{id}/classes",
    summary="Recall, precision and F1 of each class",
    responses=shown(examples.CLASSES, "The lowest F1 first. `precision` and `f1` are null where they are not known."),
)
def classes(number: Id, service: ServiceParameter, split: TestSplit = "test", seeds: AllSeeds = False) -> ClassScores:
    """Of a trial's test queries, each taken for the class of its nearest neighbour."""
    return service.trials.classes(number, split, seeds=seeds)


curves_router = APIRouter(
    prefix="/v1/curves", tags=["trials"], route_class=Expensive, responses=documented(401, 404, 409, 421, 422, 500, 503)
)
curves_page_router = APIRouter(include_in_schema=False, route_class=Expensive)

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


MOST_KEYS: Final = 9
"""How many small multiples the page of curves has at most."""


class CurvesPageQuery(LinesQuery):
    """The query of the page, which has several keys, the scale of the values, and whether bands are drawn."""

    key: list[Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]] = Field(
        default_factory=list, max_length=MOST_KEYS
    )
    bands: bool = True

    y: Literal["linear", "log"] = "linear"


@curves_router.get("", summary="Curves of several trainings", responses=shown(_EXAMPLE, "The lines."))
def curve_lines(query: Annotated[CurvesQuery, Query()], service: ServiceParameter) -> CurveLines:
    """Lines are reduced to `points` points with their extremes; means have a band of one standard deviation."""
    return service.curves.traces(query, query.key)


@curves_page_router.get("/curves")
def compared(query: Annotated[CurvesPageQuery, Query()], service: ServiceParameter) -> HTMLResponse:
    """The curves as a figure, with a form."""
    found = [service.curves.traces(query, key) for key in dict.fromkeys(query.key)] or [service.curves.traces(query)]
    figure = service.curves.chart(found, log=query.y == "log", bands=query.bands)
    name = service.sweeps.get(query.sweep).name if query.sweep else None
    given = {"trials": query.trials, "sweep": query.sweep and str(query.sweep), "cells": query.cells}
    kept = {field: value for field, value in given.items() if value}
    page = curves_page(found, figure, selection=kept, by=query.by, y=query.y, bands=query.bands, sweep_name=name)
    return HTMLResponse(page)


_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Record batches, one after the other.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "contentMediaType": MEDIA_TYPE}}},
    }
}
_frames = partial(
    APIRouter,
    prefix="/v1",
    tags=["frames"],
    default_response_class=StreamingResponse,
    responses=documented(401, 403, 404, 409, 421, 422, 500, 503) | _STREAM,
)
frames_router, candidates_router = _frames(), _frames(route_class=Expensive)


@frames_router.get("/frames/sweeps", summary="All sweeps as Arrow")
def sweeps_frame(service: ServiceParameter) -> StreamingResponse:
    """A row for each sweep, newest first."""
    return _streamed(service.frames.sweeps())


@frames_router.get("/sweeps/{id}/frames/trials", summary="A sweep's trials as Arrow")
def trials_frame(number: Id, service: ServiceParameter) -> StreamingResponse:
    """A row for each trial in the order of the plan, with labels, metrics, recipe and provenance."""
    return _streamed(service.frames.trials(number))


@candidates_router.get("/sweeps/{id}/frames/candidates", summary="A sweep's candidates as Arrow")
def candidates_frame(number: Id, service: ServiceParameter) -> StreamingResponse:
    """A row for each candidate: means and deviations over its repeats, and whether it is selected."""
    return _streamed(service.frames.candidates(number))


@frames_router.get("/sweeps/{id}/frames/curves", summary="A sweep's curves as Arrow")
def curves_frame(
    number: Id,
    service: ServiceParameter,
    key: Annotated[
        str | None, Query(max_length=200, description="One curve, such as `train/loss`; by default all.")
    ] = None,
) -> StreamingResponse:
    """A row for each point, trial by trial."""
    return _streamed(service.frames.curves(number, key))


def _streamed(pieces: Iterator[bytes]) -> StreamingResponse:
    return StreamingResponse(pieces, media_type=MEDIA_TYPE)
