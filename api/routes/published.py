"""Routes of what the papers printed: their tables, and every number of one."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path

from api.dependencies import Asked
from api.openapi import documented, shown
from orchestrator.views.published import PublishedSummary, PublishedView

PUBLISHED_SUMMARY: Final[dict[str, Any]] = {
    "id": "SEC-T2",
    "paper": "SEC",
    "title": "The weight of SEC: triplet loss on Cars196",
    "axes": ["dataset", "loss", "regularizer", "regularizer.eta"],
    "metrics": ["nmi", "f1", "recall@1", "recall@2", "recall@4", "recall@8"],
    "count": 30,
}

PUBLISHED: Final = [PUBLISHED_SUMMARY]

PUBLISHED_TABLE: Final = PUBLISHED_SUMMARY | {
    "citation": "Zhang, Li, Zhang: Deep Metric Learning with Spherical Embedding, NeurIPS 2020, and its appendix",
    "note": "The first row is printed as eta = 0.",
    "conflicts": {"C7": "The triplet baseline on Cars is printed with two values: two runs."},
    "numbers": [
        {
            "labels": {"dataset": "cars196", "loss": "triplet", "regularizer": "sec", "regularizer.eta": "0.5"},
            "tuned": {},
            "metric": "recall@1",
            "printed": "67.89",
            "value": 0.6789,
            "std": None,
            "bold": True,
            "unit": "percent",
            "std_unit": "percent",
            "source": None,
        }
    ],
}

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
    responses=shown(PUBLISHED, "Each with its axes, metrics and how many numbers it has."),
)
def published(service: Asked) -> list[PublishedSummary]:
    """The papers' results tables that own numbers can be compared with, paper by paper."""
    return service.published()


@router.get(
    "/{id}",
    summary="A published table",
    responses=documented(404, 422) | shown(PUBLISHED_TABLE, "All its numbers, as printed and as fractions."),
)
def published_table(table_id: PublishedId, service: Asked) -> PublishedView:
    """Every printed number with its place, and what is known to be contradictory about the table."""
    return service.published_table(table_id)
