"""Routes of sweeps: submission, requests, cells, bundles, notes and tags, and resolutions."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

import yaml
from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.background import BackgroundTask

from api import examples
from api.dependencies import (
    SPEC_TYPES,
    Actor,
    CellIndex,
    Id,
    IdempotencyKey,
    Name,
    Paged,
    Priority,
    ProjectName,
    ResolutionLimits,
    ServiceParameter,
    SweepTag,
    TableName,
    person,
    spec_body,
)
from api.http.turns import Expensive, ExpensiveBundle, ExpensiveSpec
from api.problems import documented, shown
from orchestrator.views.evidence import ResolutionBudget, ResolutionView
from orchestrator.views.operations import MirrorView
from orchestrator.views.pages import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS, AnnotatedKind, Annotation, Page, TagChange
from orchestrator.views.states import SweepState
from orchestrator.views.sweeps import GridCell, Preview, RequestView, Submitted, SweepSummary, SweepView
from orchestrator.views.tables import CellView

sweeps_router = APIRouter(prefix="/v1/sweeps", tags=["sweeps"], responses=documented(401, 403, 421, 422, 500, 503))
posting = APIRouter(prefix="/v1/sweeps", tags=["sweeps"], route_class=ExpensiveSpec, responses=sweeps_router.responses)

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
    service: ServiceParameter,
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


@sweeps_router.get(
    "", summary="List sweeps, newest first", responses=shown(examples.SWEEPS, "A page of sweeps.") | documented(404)
)
def sweeps(
    service: ServiceParameter,
    paging: Paged,
    state: Annotated[SweepState | None, Query(description="Only sweeps in this state.")] = None,
    name: Name = None,
    tag: SweepTag = None,
) -> Page[SweepSummary]:
    """Sweeps by state, name and tag; `next_cursor`, and a Link header, lead to the next page."""
    return paging.linked(service.sweeps.page(state, name, paging.cursor, paging.limit, tag or None))


@sweeps_router.get("/{id}", summary="One sweep", responses=shown(examples.SWEEP, "The sweep.") | documented(404))
def sweep(number: Id, service: ServiceParameter) -> SweepView:
    """Its state, counts, spec, problems and links."""
    return service.sweeps.get(number)


@sweeps_router.get(
    "/{id}/grid",
    summary="A sweep's cells, candidates and trials",
    responses=shown(examples.GRID, "The cells in the order of the plan.") | documented(404),
)
def grid(number: Id, service: ServiceParameter) -> list[GridCell]:
    """Every trial with its state, grouped by candidate and cell; the selected candidate is marked."""
    return service.sweeps.grid(number)


requests_router = APIRouter(prefix="/v1", tags=["requests"], responses=documented(401, 403, 404, 421, 422, 500, 503))
extending = APIRouter(prefix="/v1", tags=["requests"], route_class=ExpensiveSpec, responses=requests_router.responses)

_REQUESTED = shown(examples.SWEEP, "The sweep; `Location` is the address of the request.", 202)
_request = partial(requests_router.post, status_code=202, responses=_REQUESTED | documented(409))

Trial = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only this trial.")]
Cell = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only the trials of this cell.")]


@_request("/sweeps/{id}/cancel", summary="Cancel a sweep")
def cancel(
    number: Id, service: ServiceParameter, actor: Actor, response: Response, trial: Trial = None, cell: Cell = None
) -> SweepView:
    """Request that active trials stop; trainings that other sweeps need continue. 409 if all trials have ended."""
    return _requested(service.commands.cancel(number, actor, trial, cell), service, response)


@_request("/sweeps/{id}/retry", summary="Retry a sweep's failed and cancelled trials")
def retry(
    number: Id,
    service: ServiceParameter,
    actor: Actor,
    response: Response,
    trial: Trial = None,
    cell: Cell = None,
    only: Annotated[
        Literal["failed", "all"] | None,
        Query(description="`failed` leaves out cancelled trials; `all` adds pruned trials."),
    ] = None,
) -> SweepView:
    """Request that failed and cancelled trials run again; finished ones are kept."""
    return _requested(service.commands.retry(number, actor, trial, cell, only or ""), service, response)


@_request("/sweeps/{id}/pause", summary="Pause a sweep")
def pause(number: Id, service: ServiceParameter, actor: Actor, response: Response) -> SweepView:
    """Request that no further trial start; running trainings continue."""
    return _requested(service.commands.pause(number, actor), service, response)


@_request("/sweeps/{id}/resume", summary="Resume a paused sweep")
def resume(number: Id, service: ServiceParameter, actor: Actor, response: Response) -> SweepView:
    """Request that the sweep continue."""
    return _requested(service.commands.resume(number, actor), service, response)


@_request("/sweeps/{id}/priority", summary="Set a sweep's priority")
def priority(number: Id, service: ServiceParameter, actor: Actor, response: Response, value: Priority) -> SweepView:
    """Request a priority; sweeps of higher priority are trained first, and no training is stopped for it."""
    return _requested(service.commands.prioritize(number, value, actor), service, response)


@extending.post(
    "/sweeps/{id}/extend",
    status_code=202,
    summary="Extend a sweep",
    responses=_REQUESTED | documented(409, 413, 415),
    response_model=SweepView | Preview,
    openapi_extra={"requestBody": {"required": True, "content": SPEC_CONTENT}},
)
def extend(
    number: Id,
    body: Annotated[bytes, Depends(spec_body)],
    service: ServiceParameter,
    actor: Actor,
    response: Response,
    dry_run: Annotated[bool, Query(description="Only check it, and answer 200 with what it would become.")] = False,
) -> SweepView | Preview:
    """Request that the sweep grow to a wider spec (more seeds, a new loss); only new trials are trained."""
    if dry_run:
        response.status_code = 200
        return service.commands.preview_extension(number, body)
    return _requested(service.commands.extend(number, body, actor), service, response)


@_request("/sweeps/{id}/mirror", summary="Write a sweep to MLflow again")
def mirror(number: Id, service: ServiceParameter, actor: Actor, response: Response) -> SweepView:
    """Request that all runs of the sweep be written again to an MLflow that was wiped or is out of date."""
    return _requested(service.commands.mirror(number, actor), service, response)


@requests_router.delete(
    "/sweeps/{id}",
    status_code=202,
    summary="Delete a sweep",
    responses=shown(examples.DELETION, "The request; `Location` is its address.", 202) | documented(409),
)
def delete(
    number: Id,
    service: ServiceParameter,
    actor: Actor,
    response: Response,
    confirm: Annotated[str, Query(max_length=200, description="The sweep's name, as a confirmation.")],
) -> RequestView:
    """Request the deletion of an ended sweep, with checkpoints, logs and results that no other sweep uses."""
    request = service.commands.delete(number, confirm, actor)
    response.headers["Location"] = f"/v1/requests/{request.id}"
    return request


@requests_router.get(
    "/sweeps/{id}/requests",
    summary="List the requests to a sweep",
    responses=shown(examples.REQUESTS, "A page of requests."),
)
def requests(number: Id, service: ServiceParameter, paging: Paged) -> Page[RequestView]:
    """The requests to a sweep and their results, newest first; also of a deleted sweep."""
    return paging.linked(service.store.requests.page(number, paging.cursor, paging.limit))


@requests_router.get("/requests/{id}", summary="One request", responses=shown(examples.REQUEST, "The request."))
def request(number: Id, service: ServiceParameter) -> RequestView:
    """Whether a request waits, was carried out or was refused, and why."""
    return service.store.requests.get(number)


@requests_router.get("/mirror", summary="Runs missing in MLflow", responses=shown(examples.MIRROR, "How many runs."))
def mirrored(
    service: ServiceParameter,
    sweep: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only this sweep.")] = None,
) -> MirrorView:
    """How many runs, of a sweep or of all, are not up to date in MLflow, and why a run could not be written."""
    return service.sweeps.mirror(sweep)


def _requested(request_id: RequestView, service: ServiceParameter, response: Response) -> SweepView:
    response.headers["Location"] = f"/v1/requests/{request_id.id}"
    return service.sweeps.get(request_id.sweep)


cells_router = APIRouter(
    prefix="/v1/sweeps",
    tags=["provenance"],
    route_class=Expensive,
    responses=documented(401, 404, 409, 421, 422, 500, 503),
)
packing = APIRouter(
    prefix="/v1/sweeps", tags=["provenance"], route_class=ExpensiveBundle, responses=cells_router.responses
)

_CHUNK: Final = 1024 * 1024


@cells_router.get(
    "/{id}/cells/{index}",
    summary="A cell with its candidates and provenance",
    responses=shown(examples.CELL, "The selected candidate, those that lost, and the provenance of every trial."),
)
def cell(number: Id, index: CellIndex, service: ServiceParameter) -> CellView:
    """A cell's candidates and trials with fingerprint, code commit, data set hash, versions, device and MLflow run."""
    return service.sweeps.cell(number, index)


@packing.get(
    "/{id}/bundle",
    summary="A sweep as a bundle",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Every table and figure in every format, the spec, and every trial's recipe and metrics as "
            "Parquet, with a manifest of hashes; `metricsweep rebuild` makes the tables again from it.",
            "content": {"application/zip": {"schema": {"type": "string", "contentMediaType": "application/zip"}}},
        }
    },
)
def bundle(number: Id, service: ServiceParameter) -> StreamingResponse:
    """Made at each request from the results so far; the same content gives the same bytes."""
    file = service.bundles.make(number)
    size = file.seek(0, 2)
    file.seek(0)
    headers = {"Content-Length": str(size), "Content-Disposition": f'attachment; filename="sweep-{number}.zip"'}
    pieces = iter(partial(file.read, _CHUNK), b"")
    return StreamingResponse(
        pieces, media_type="application/zip", headers=headers, background=BackgroundTask(file.close)
    )


annotations_router = APIRouter(
    prefix="/v1", tags=["annotations"], responses=documented(401, 403, 404, 421, 422, 500, 503)
)
annotation_forms = APIRouter(include_in_schema=False)

ANNOTATION: Final = {
    "note": "eta 1 diverges on two seeds", "tags": ["paper"], "actor": "ada@lab", "changed": "2026-05-01T12:00:00Z",
}  # fmt: skip

_SHOWN = shown(ANNOTATION, "The note and the tags.")
Tag = Annotated[str, Field(min_length=1, max_length=LONGEST_TAG, pattern=r"^[^\x00,]+$")]
Note = Annotated[str, Form(max_length=2 * LONGEST_NOTE)]  # a browser sends two characters for a line's end
Tags = Annotated[str, Form(max_length=1_000)]
AnnotatedPlace = tuple[AnnotatedKind, int, int]
"""The kind, the number of the sweep or trial, and that of the cell."""


class AnnotationChange(BaseModel):
    """Changes of a note and tags; a field that is left out or null keeps its value."""

    model_config = ConfigDict(extra="forbid")

    note: Annotated[str | None, Field(max_length=LONGEST_NOTE, pattern=r"^[^\x00]*$")] = None
    """An empty note removes it."""
    tags: Annotated[list[Tag] | None, Field(max_length=MOST_TAGS)] = None
    """All tags; others are removed."""
    added: Annotated[list[Tag], Field(max_length=MOST_TAGS)] = Field(default_factory=list)
    """Tags to add."""
    removed: Annotated[list[Tag], Field(max_length=MOST_TAGS)] = Field(default_factory=list)
    """Tags to remove, in any case of letters."""

    @property
    def words(self) -> TagChange | None:
        """The change of tags."""
        some = self.tags is not None or self.added or self.removed
        return TagChange(self.tags, self.added, self.removed) if some else None


def _of_sweep(number: Id) -> AnnotatedPlace:
    return "sweep", number, 0


def _of_cell(number: Id, index: CellIndex) -> AnnotatedPlace:
    return "cell", number, index


def _of_trial(number: Id) -> AnnotatedPlace:
    return "trial", number, 0


def _annotated(noun: str, path: str, place_of: Callable[..., AnnotatedPlace]) -> None:
    """Add the routes and the form of the note and tags of sweeps, cells or trials, whose page is at `path`."""
    path = f"{path}/annotation"
    Place = Annotated[AnnotatedPlace, Depends(place_of)]  # noqa: N806 - a type

    @annotations_router.get(path, summary=f"A {noun}'s note and tags", responses=_SHOWN)
    def annotation(place: Place, service: ServiceParameter) -> Annotation:
        """The note and tags that people gave it."""
        return service.annotations.of(*place)

    @annotations_router.patch(
        path,
        summary=f"Note or tag a {noun}",
        description=f"Set a {noun}'s note and tags immediately, without the conductor.",
        responses=_SHOWN | documented(409, 413),
    )
    def annotate(place: Place, change: AnnotationChange, service: ServiceParameter, actor: Actor) -> Annotation:
        return service.annotations.put(place, change.note, change.words, actor)

    @annotation_forms.post(path)
    def annotation_form(
        place: Place, service: ServiceParameter, request: Request, note: Note = "", tags: Tags = ""
    ) -> RedirectResponse:
        words = TagChange([tag for tag in tags.split(",") if tag.strip()][:MOST_TAGS])
        service.annotations.put(place, note, words, person(request))
        return RedirectResponse(f"{request.url.path.removesuffix('/annotation')}#annotation", status_code=303)


_annotated("sweep", "/sweeps/{id}", _of_sweep)
_annotated("cell", "/sweeps/{id}/cells/{index}", _of_cell)
_annotated("trial", "/trials/{id}", _of_trial)


resolutions_router = APIRouter(
    prefix="/v1/sweeps",
    tags=["resolutions"],
    route_class=Expensive,
    responses=documented(401, 403, 404, 409, 421, 422, 500, 503),
)
resolution_forms = APIRouter(include_in_schema=False, route_class=Expensive)


@resolutions_router.post(
    "/{id}/resolve", status_code=202, summary="Resolve a table's comparisons", responses=_REQUESTED
)
def resolve(
    number: Id,
    service: ServiceParameter,
    actor: Actor,
    response: Response,
    allowed: ResolutionLimits,
    table: TableName = None,
) -> SweepView:
    """Request further seeds for open comparisons, in rounds, within the budget."""
    return _requested(service.resolutions.request(number, allowed, table, actor), service, response)


@resolutions_router.post("/{id}/halt", status_code=202, summary="Stop a resolution", responses=_REQUESTED)
def halt(number: Id, service: ServiceParameter, actor: Actor, response: Response) -> SweepView:
    """Request that no further round start; running trainings continue. 409 if no resolution is active."""
    return _requested(service.resolutions.halt(number, actor), service, response)


@resolutions_router.get("/{id}/resolution", summary="The last resolution")
def resolution(number: Id, service: ServiceParameter) -> ResolutionView:
    """The sweep's last resolution: verdicts before, rounds, verdicts after, what was spent and saved."""
    return service.resolutions.get(number)


@resolutions_router.get("/{id}/resolution/plan", summary="The first round of a resolution")
def plan(number: Id, service: ServiceParameter, allowed: ResolutionLimits, table: TableName = None) -> ResolutionView:
    """The first round by the results so far, and what it leaves out and why; nothing is requested."""
    return service.resolutions.plan(number, allowed, table)


@resolution_forms.post("/sweeps/{id}/resolve")
def _resolve_button(
    number: Id,
    service: ServiceParameter,
    request: Request,
    table: Annotated[str, Form(max_length=100)],
    hours: Annotated[float | None, Form(gt=0, le=1_000_000)] = None,
    seeds: Annotated[int | None, Form(ge=1, le=48)] = None,
    within: Annotated[float | None, Form(gt=0, le=1_000_000)] = None,
) -> RedirectResponse:
    allowed = ResolutionBudget(hours=hours, seeds=seeds, within=within)
    service.resolutions.request(number, allowed, table, person(request))
    return RedirectResponse(f"/sweeps/{number}/statistics?{urlencode({'table': table})}", status_code=303)


@resolution_forms.post("/sweeps/{id}/halt")
def _halt_button(number: Id, service: ServiceParameter, request: Request) -> RedirectResponse:
    service.resolutions.halt(number, person(request))
    return RedirectResponse(f"/sweeps/{number}/statistics", status_code=303)
