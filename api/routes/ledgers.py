"""Routes of the ledgers: what own runs say of each number that the papers printed."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response

from api.dependencies import Asked
from api.http.turns import Expensive
from api.openapi import documented, shown
from api.routes.tables import as_file
from orchestrator.views.ledger import LedgerSummary

router = APIRouter(
    prefix="/v1/ledgers", tags=["published"], route_class=Expensive, responses=documented(401, 421, 500, 503)
)

PaperName = Annotated[
    str,
    Path(
        alias="paper",
        max_length=100,
        pattern=r"^[^\x00/]+$",
        description="As the list has it, in any case.",
        examples=["SEC"],
    ),
]
Within = Annotated[
    float,
    Query(ge=0.01, le=50, description="Points of percent that count as the same."),
]
_EXAMPLE = [
    {
        "paper": "SEC", "citation": "Zhang, Li, Zhang: Deep Metric Learning with Spherical Embedding, NeurIPS 2020",
        "counts": {"reproduced": 2, "not_reproduced": 1, "underpowered": 9, "not_run": 952},
    }
]  # fmt: skip


@router.get(
    "",
    summary="The ledgers of the papers",
    responses=shown(_EXAMPLE, "Each paper with how many of its numbers stand how."),
)
def ledgers(service: Asked) -> list[LedgerSummary]:
    """How many numbers of each paper are reproduced, not reproduced, underpowered or not run, over all sweeps."""
    return service.ledgers.summaries()


@router.get(
    "/{paper}",
    summary="The ledger of a paper",
    response_class=Response,
    responses=documented(404, 422)
    | {
        200: {
            "description": "Every printed number with how it stands, by which runs, and how these differ.",
            "content": {
                "application/json": {"example": _EXAMPLE[0]},
                "text/csv": {"example": "table,row,metric\n"},
                "text/markdown": {"example": "| table | reproduced |"},
                "application/x-tex": {"example": "\\begin{longtable}"},
            },
        },
        304: {"description": "It has not changed since `If-None-Match`."},
    },
)
def ledger(
    paper: PaperName,
    service: Asked,
    file_format: Annotated[
        str, Query(alias="format", pattern="^[a-z]{1,16}$", description="json, csv, markdown or latex.")
    ] = "json",
    within: Within = 1.0,
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """Computed from all sweeps whose tables name one of the paper's; a running sweep counts with what has ended."""
    return as_file(service.ledgers.render(paper, file_format, within), if_none_match)
