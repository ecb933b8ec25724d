"""Routes of notes and tags: of sweeps, cells and trials, over REST and by the forms of pages."""

from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from api.dependencies import Actor, Asked, Id, person
from api.openapi import documented, shown
from api.routes.cells import CellIndex
from orchestrator.views.remarks import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS, Remark, TagChange

router = APIRouter(prefix="/v1", tags=["remarks"], responses=documented(401, 403, 404, 421, 422, 500, 503))
page = APIRouter(include_in_schema=False)

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


@router.get("/sweeps/{id}/remark", summary="A sweep's note and tags", responses=_SHOWN)
def of_sweep(number: Id, service: Asked) -> Remark:
    """What people said of it."""
    return service.remarks.of("sweep", number)


@router.patch("/sweeps/{id}/remark", summary="Note or tag a sweep", responses=_SHOWN | documented(409, 413))
def put_sweep(number: Id, change: RemarkChange, service: Asked, actor: Actor) -> Remark:
    """Set at once, without the conductor."""
    return service.remarks.put(("sweep", number, 0), change.note, change.words, actor)


@router.get("/sweeps/{id}/cells/{index}/remark", summary="A cell's note and tags", responses=_SHOWN)
def of_cell(number: Id, index: CellIndex, service: Asked) -> Remark:
    """What people said of it."""
    return service.remarks.of("cell", number, index)


@router.patch(
    "/sweeps/{id}/cells/{index}/remark", summary="Note or tag a cell", responses=_SHOWN | documented(409, 413)
)
def put_cell(number: Id, index: CellIndex, change: RemarkChange, service: Asked, actor: Actor) -> Remark:
    """Set at once, without the conductor."""
    return service.remarks.put(("cell", number, index), change.note, change.words, actor)


@router.get("/trials/{id}/remark", summary="A trial's note and tags", responses=_SHOWN)
def of_trial(number: Id, service: Asked) -> Remark:
    """What people said of it."""
    return service.remarks.of("trial", number)


@router.patch("/trials/{id}/remark", summary="Note or tag a trial", responses=_SHOWN | documented(409, 413))
def put_trial(number: Id, change: RemarkChange, service: Asked, actor: Actor) -> Remark:
    """Set at once, without the conductor."""
    return service.remarks.put(("trial", number, 0), change.note, change.words, actor)


@page.post("/sweeps/{id}/remark")
def from_sweep(number: Id, service: Asked, request: Request, note: Note = "", tags: Tags = "") -> RedirectResponse:
    """The form of a sweep's page."""
    service.remarks.put(("sweep", number, 0), note, _words(tags), person(request))
    return RedirectResponse(f"/sweeps/{number}#remark", status_code=303)


@page.post("/sweeps/{id}/cells/{index}/remark")
def from_cell(
    number: Id, index: CellIndex, service: Asked, request: Request, note: Note = "", tags: Tags = ""
) -> RedirectResponse:
    """The form of a cell's page."""
    service.remarks.put(("cell", number, index), note, _words(tags), person(request))
    return RedirectResponse(f"/sweeps/{number}/cells/{index}#remark", status_code=303)


@page.post("/trials/{id}/remark")
def from_trial(number: Id, service: Asked, request: Request, note: Note = "", tags: Tags = "") -> RedirectResponse:
    """The form of a trial's page."""
    service.remarks.put(("trial", number, 0), note, _words(tags), person(request))
    return RedirectResponse(f"/trials/{number}#remark", status_code=303)


def _words(tags: str) -> TagChange:
    return TagChange([tag for tag in tags.split(",") if tag.strip()][:MOST_TAGS])
