"""Sweeps: submitting and reading them, notes and tags, and what may be asked of one."""

from collections.abc import Iterator
from typing import IO, Annotated, Any, Final, Literal

import yaml
from fastapi import APIRouter, Depends, Form, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.background import BackgroundTask

from api import examples
from api.dependencies import (
    SPEC_TYPES,
    Actor,
    Asked,
    Id,
    IdempotencyKey,
    Name,
    Paged,
    Priority,
    ProjectName,
    SweepTag,
    TableName,
    person,
    spec_body,
)
from api.http.turns import Expensive, ExpensiveBundle, ExpensiveSpec
from api.problems import documented, shown
from orchestrator.views.evidence import ResolutionBudget, ResolutionView
from orchestrator.views.operations import MirrorView
from orchestrator.views.pages import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS, Page, Remark, TagChange
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
    service: Asked,
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
    "",
    summary="List sweeps, newest first",
    responses=shown(examples.SWEEPS, "A page of sweeps.") | documented(404),
)
def sweeps(
    service: Asked,
    paging: Paged,
    state: Annotated[SweepState | None, Query(description="Only sweeps in this state.")] = None,
    name: Name = None,
    tag: SweepTag = None,
) -> Page[SweepSummary]:
    """Sweeps by state, name and tag; `next_cursor`, and a Link header, lead to the next page."""
    return paging.linked(service.sweeps.page(state, name, paging.cursor, paging.limit, tag or None))


@sweeps_router.get("/{id}", summary="One sweep", responses=shown(examples.SWEEP, "The sweep.") | documented(404))
def sweep(number: Id, service: Asked) -> SweepView:
    """Its state, counts, spec, problems and links."""
    return service.sweeps.get(number)


@sweeps_router.get(
    "/{id}/grid",
    summary="A sweep's cells, candidates and trials",
    responses=shown(examples.GRID, "The cells in the order of the plan.") | documented(404),
)
def grid(number: Id, service: Asked) -> list[GridCell]:
    """Every trial with its state, grouped by candidate and cell; the selected candidate is marked."""
    return service.sweeps.grid(number)


requests_router = APIRouter(prefix="/v1", tags=["requests"], responses=documented(401, 403, 421, 422, 500, 503))
extending = APIRouter(prefix="/v1", tags=["requests"], route_class=ExpensiveSpec, responses=requests_router.responses)

_REQUESTED = shown(examples.SWEEP, "Asked for; `Location` says what becomes of it.", 202)

Trial = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only this trial.")]
Cell = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only the trials of this cell.")]


@requests_router.post(
    "/sweeps/{id}/cancel", status_code=202, summary="Cancel a sweep", responses=_REQUESTED | documented(404, 409)
)
def cancel(
    number: Id,
    service: Asked,
    actor: Actor,
    response: Response,
    trial: Trial = None,
    cell: Cell = None,
) -> SweepView:
    """Ask that trials that have not ended be stopped; what other sweeps want goes on. 409 where all have ended."""
    return _asked(service.commands.cancel(number, actor, trial, cell), service, response)


@requests_router.post(
    "/sweeps/{id}/retry",
    status_code=202,
    summary="Retry a sweep's failed and cancelled trials",
    responses=_REQUESTED | documented(404, 409),
)
def retry(
    number: Id,
    service: Asked,
    actor: Actor,
    response: Response,
    trial: Trial = None,
    cell: Cell = None,
    only: Annotated[
        Literal["failed", "all"] | None,
        Query(description="`failed`: not those that were cancelled; `all`: pruned ones too."),
    ] = None,
) -> SweepView:
    """Ask that failed and cancelled trials wait again; finished ones are kept."""
    return _asked(service.commands.retry(number, actor, trial, cell, only or ""), service, response)


@requests_router.post(
    "/sweeps/{id}/pause", status_code=202, summary="Pause a sweep", responses=_REQUESTED | documented(404, 409)
)
def pause(number: Id, service: Asked, actor: Actor, response: Response) -> SweepView:
    """Ask that nothing more of the sweep be started; what trains goes on to its end."""
    return _asked(service.commands.pause(number, actor), service, response)


@requests_router.post(
    "/sweeps/{id}/resume", status_code=202, summary="Resume a paused sweep", responses=_REQUESTED | documented(404, 409)
)
def resume(number: Id, service: Asked, actor: Actor, response: Response) -> SweepView:
    """Ask that the sweep take its turn again."""
    return _asked(service.commands.resume(number, actor), service, response)


@requests_router.post(
    "/sweeps/{id}/priority",
    status_code=202,
    summary="Set a sweep's priority",
    responses=_REQUESTED | documented(404, 409),
)
def priority(number: Id, service: Asked, actor: Actor, response: Response, value: Priority) -> SweepView:
    """Ask that the sweep be drawn before those of lower priority; nothing that trains is stopped for it."""
    return _asked(service.commands.prioritize(number, value, actor), service, response)


@extending.post(
    "/sweeps/{id}/extend",
    status_code=202,
    summary="Extend a sweep",
    responses=_REQUESTED | documented(404, 409, 413, 415),
    openapi_extra={"requestBody": {"required": True, "content": SPEC_CONTENT}},
)
def extend(
    number: Id,
    body: Annotated[bytes, Depends(spec_body)],
    service: Asked,
    actor: Actor,
    response: Response,
) -> SweepView:
    """Ask that the sweep grow to a wider spec (more seeds, a new loss); only what is new is trained."""
    return _asked(service.commands.extend(number, body, actor), service, response)


@requests_router.post(
    "/sweeps/{id}/mirror",
    status_code=202,
    summary="Write a sweep to MLflow again",
    responses=_REQUESTED | documented(404, 409),
)
def mirror(number: Id, service: Asked, actor: Actor, response: Response) -> SweepView:
    """Ask that all runs of the sweep be written to MLflow again, which was wiped or is out of date."""
    return _asked(service.commands.mirror(number, actor), service, response)


@requests_router.delete(
    "/sweeps/{id}",
    status_code=202,
    summary="Delete a sweep",
    responses=shown(examples.DELETION, "Asked for; `Location` says what becomes of it.", 202) | documented(404, 409),
)
def delete(
    number: Id,
    service: Asked,
    actor: Actor,
    response: Response,
    confirm: Annotated[str, Query(max_length=200, description="The sweep's name, against slips.")],
) -> RequestView:
    """Ask that an ended sweep be deleted, with checkpoints, logs and results that no other sweep uses."""
    asked = service.commands.delete(number, confirm, actor)
    response.headers["Location"] = f"/v1/requests/{asked.id}"
    return asked


@requests_router.get(
    "/sweeps/{id}/requests",
    summary="List what was asked of a sweep",
    responses=shown(examples.REQUESTS, "A page of requests.") | documented(404),
)
def requests(number: Id, service: Asked, paging: Paged) -> Page[RequestView]:
    """What was asked, newest first, and what became of it; also of a sweep that was deleted."""
    return paging.linked(service.commands.requests(number, paging.cursor, paging.limit))


@requests_router.get(
    "/requests/{id}", summary="One request", responses=shown(examples.REQUEST, "The request.") | documented(404)
)
def request(number: Id, service: Asked) -> RequestView:
    """Whether it waits, was carried out or was refused, and why."""
    return service.commands.request(number)


@requests_router.get(
    "/mirror",
    summary="What MLflow lacks",
    responses=shown(examples.MIRROR, "How much.") | documented(404),
)
def mirrored(
    service: Asked,
    sweep: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only of this sweep.")] = None,
) -> MirrorView:
    """How many runs, of a sweep or of all, MLflow does not show as they are, and why one could not be written."""
    return service.sweeps.mirror(sweep)


def _asked(asked: RequestView, service: Asked, response: Response) -> SweepView:
    response.headers["Location"] = f"/v1/requests/{asked.id}"
    return service.sweeps.get(asked.sweep)


cells_router = APIRouter(
    prefix="/v1/sweeps",
    tags=["provenance"],
    route_class=Expensive,
    responses=documented(401, 404, 409, 421, 422, 500, 503),
)

packing = APIRouter(
    prefix="/v1/sweeps", tags=["provenance"], route_class=ExpensiveBundle, responses=cells_router.responses
)

CellIndex = Annotated[
    int, Path(ge=0, le=2**31 - 1, description="The cell's number in the sweep's grid, from 0.", examples=[3])
]
_CHUNK: Final = 1024 * 1024


@cells_router.get(
    "/{id}/cells/{index}",
    summary="What stands behind a cell",
    responses=shown(examples.CELL, "The selected candidate, those that lost, and the provenance of every trial."),
)
def cell(number: Id, index: CellIndex, service: Asked) -> CellView:
    """Its candidates with scores and trials: fingerprint, code commit, data set hash, versions, device, MLflow run."""
    return service.sweeps.cell(number, index)


@packing.get(
    "/{id}/bundle",
    summary="A sweep as one archive",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Every table and figure in every format, the spec, and every trial's recipe and metrics as "
            "Parquet, with a manifest of hashes; `metricsweep rebuild` makes the tables again from it.",
            "content": {"application/zip": {"schema": {"type": "string", "contentMediaType": "application/zip"}}},
        }
    },
)
def bundle(number: Id, service: Asked) -> StreamingResponse:
    """Made when it is asked for, of what is known then; the same content gives the same bytes."""
    file = service.bundles.make(number)
    size = file.seek(0, 2)
    file.seek(0)
    headers = {"Content-Length": str(size), "Content-Disposition": f'attachment; filename="sweep-{number}.zip"'}
    return StreamingResponse(
        _chunks(file), media_type="application/zip", headers=headers, background=BackgroundTask(file.close)
    )


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk


remarks_router = APIRouter(prefix="/v1", tags=["remarks"], responses=documented(401, 403, 404, 421, 422, 500, 503))
remark_forms = APIRouter(include_in_schema=False)

REMARK: Final = {
    "note": "eta 1 diverges on two seeds", "tags": ["paper"], "actor": "ada@lab", "changed": "2026-05-01T12:00:00Z",
}  # fmt: skip

_SHOWN = shown(REMARK, "The note and the tags.")
Tag = Annotated[str, Field(min_length=1, max_length=LONGEST_TAG, pattern=r"^[^\x00,]+$")]


Note = Annotated[str, Form(max_length=2 * LONGEST_NOTE)]  # a browser sends two characters for a line's end
Tags = Annotated[str, Form(max_length=1_000)]


class RemarkChange(BaseModel):
    """What is set; what is left out, or null, stays as it is."""

    model_config = ConfigDict(extra="forbid")

    note: Annotated[str | None, Field(max_length=LONGEST_NOTE, pattern=r"^[^\x00]*$")] = None
    """An empty one removes it."""
    tags: Annotated[list[Tag] | None, Field(max_length=MOST_TAGS)] = None
    """All of them: those that are left out go."""
    added: Annotated[list[Tag], Field(max_length=MOST_TAGS)] = Field(default_factory=list)
    """Tags that join those that are there."""
    removed: Annotated[list[Tag], Field(max_length=MOST_TAGS)] = Field(default_factory=list)
    """Tags that go, in any case of letters."""

    @property
    def words(self) -> TagChange | None:
        """What of it concerns tags."""
        some = self.tags is not None or self.added or self.removed
        return TagChange(self.tags, self.added, self.removed) if some else None


@remarks_router.get("/sweeps/{id}/remark", summary="A sweep's note and tags", responses=_SHOWN)
def of_sweep(number: Id, service: Asked) -> Remark:
    """What people said of it."""
    return service.remarks.of("sweep", number)


@remarks_router.patch("/sweeps/{id}/remark", summary="Note or tag a sweep", responses=_SHOWN | documented(409, 413))
def put_sweep(number: Id, change: RemarkChange, service: Asked, actor: Actor) -> Remark:
    """Set at once, without the conductor."""
    return service.remarks.put(("sweep", number, 0), change.note, change.words, actor)


@remarks_router.get("/sweeps/{id}/cells/{index}/remark", summary="A cell's note and tags", responses=_SHOWN)
def of_cell(number: Id, index: CellIndex, service: Asked) -> Remark:
    """What people said of it."""
    return service.remarks.of("cell", number, index)


@remarks_router.patch(
    "/sweeps/{id}/cells/{index}/remark", summary="Note or tag a cell", responses=_SHOWN | documented(409, 413)
)
def put_cell(number: Id, index: CellIndex, change: RemarkChange, service: Asked, actor: Actor) -> Remark:
    """Set at once, without the conductor."""
    return service.remarks.put(("cell", number, index), change.note, change.words, actor)


@remarks_router.get("/trials/{id}/remark", summary="A trial's note and tags", responses=_SHOWN)
def of_trial(number: Id, service: Asked) -> Remark:
    """What people said of it."""
    return service.remarks.of("trial", number)


@remarks_router.patch("/trials/{id}/remark", summary="Note or tag a trial", responses=_SHOWN | documented(409, 413))
def put_trial(number: Id, change: RemarkChange, service: Asked, actor: Actor) -> Remark:
    """Set at once, without the conductor."""
    return service.remarks.put(("trial", number, 0), change.note, change.words, actor)


@remark_forms.post("/sweeps/{id}/remark")
def from_sweep(number: Id, service: Asked, request: Request, note: Note = "", tags: Tags = "") -> RedirectResponse:
    """The form of a sweep's page."""
    service.remarks.put(("sweep", number, 0), note, _words(tags), person(request))
    return RedirectResponse(f"/sweeps/{number}#remark", status_code=303)


@remark_forms.post("/sweeps/{id}/cells/{index}/remark")
def from_cell(
    number: Id, index: CellIndex, service: Asked, request: Request, note: Note = "", tags: Tags = ""
) -> RedirectResponse:
    """The form of a cell's page."""
    service.remarks.put(("cell", number, index), note, _words(tags), person(request))
    return RedirectResponse(f"/sweeps/{number}/cells/{index}#remark", status_code=303)


@remark_forms.post("/trials/{id}/remark")
def from_trial(number: Id, service: Asked, request: Request, note: Note = "", tags: Tags = "") -> RedirectResponse:
    """The form of a trial's page."""
    service.remarks.put(("trial", number, 0), note, _words(tags), person(request))
    return RedirectResponse(f"/trials/{number}#remark", status_code=303)


def _words(tags: str) -> TagChange:
    return TagChange([tag for tag in tags.split(",") if tag.strip()][:MOST_TAGS])


resolutions_router = APIRouter(
    prefix="/v1/sweeps",
    tags=["resolutions"],
    route_class=Expensive,
    responses=documented(401, 403, 404, 409, 421, 422, 500, 503),
)
resolution_forms = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=Expensive)


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


@resolutions_router.post(
    "/{id}/resolve", status_code=202, summary="Resolve a table's comparisons", responses=_REQUESTED
)
def resolve(
    number: Id, service: Asked, actor: Actor, response: Response, allowed: Budget, table: TableName = None
) -> SweepView:
    """Ask that what is open be given further seeds, and nothing else, in rounds, as far as the budget goes."""
    return _asked(service.resolutions.ask(number, allowed, table, actor), service, response)


@resolutions_router.post("/{id}/halt", status_code=202, summary="End a resolution", responses=_REQUESTED)
def halt(number: Id, service: Asked, actor: Actor, response: Response) -> SweepView:
    """Ask that no further round follow; what the last one trains goes on. 409 where no resolution goes on."""
    return _asked(service.resolutions.halt(number, actor), service, response)


@resolutions_router.get("/{id}/resolution", summary="What became of a resolution")
def resolution(number: Id, service: Asked) -> ResolutionView:
    """The last one that was asked of the sweep: verdicts before, rounds, verdicts after, what was spent and saved."""
    return service.resolutions.get(number)


@resolutions_router.get("/{id}/resolution/plan", summary="What a resolution would begin with")
def plan(number: Id, service: Asked, allowed: Budget, table: TableName = None) -> ResolutionView:
    """The first round by what is known now, and what is left out of it, and why; nothing is asked for."""
    return service.resolutions.plan(number, allowed, table)


@resolution_forms.post("/sweeps/{id}/resolve")
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


@resolution_forms.post("/sweeps/{id}/halt")
def halt_button(number: Id, service: Asked, request: Request) -> RedirectResponse:
    """The button of a sweep's page."""
    service.resolutions.halt(number, person(request))
    return RedirectResponse(f"/sweeps/{number}", status_code=303)
