"""Routes of what the papers printed: their tables, and every number of one."""

from typing import Annotated

from fastapi import APIRouter, Path

from api import examples
from api.dependencies import Asked
from api.openapi import documented, shown
from orchestrator.views.published import PublishedSummary, PublishedView

router = APIRouter(prefix="/v1/published", tags=["published"], responses=documented(401, 421, 500))

PublishedId = Annotated[
    str,
    Path(
        alias="id",
        max_length=100,
        pattern=r"^[^\x00/]+$",
        description="As the list has it, in any case: paper and table.",
        examples=["SEC-T3"],
    ),
]


@router.get(
    "",
    summary="The published tables",
    responses=shown(examples.PUBLISHED, "Each with its axes, metrics and how many numbers it has."),
)
def published(service: Asked) -> list[PublishedSummary]:
    """The papers' results tables that own numbers can be compared with, paper by paper."""
    return service.published()


@router.get(
    "/{id}",
    summary="A published table",
    responses=documented(404, 422) | shown(examples.PUBLISHED_TABLE, "All its numbers, as printed and as fractions."),
)
def published_table(table_id: PublishedId, service: Asked) -> PublishedView:
    """Every printed number with its place, and what is known to be contradictory about the table."""
    return service.published_table(table_id)
