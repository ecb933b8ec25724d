"""The route of a sweep's tables, in every format."""

import hashlib
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Response

from api.dependencies import Asked, Id, Named
from api.http.turns import Expensive
from api.openapi import documented
from orchestrator.views.files import Rendered
from orchestrator.views.optimism import OptimismView
from orchestrator.views.verdicts import VerdictsView

router = APIRouter(
    prefix="/v1/sweeps",
    tags=["tables"],
    route_class=Expensive,
    responses=documented(401, 404, 409, 421, 422, 500, 503),
)

_EXAMPLES = {
    "text/x-tex": "\\begin{tabular}{llrr}\n\\toprule\n ... \\bottomrule\n\\end{tabular}\n",
    "text/markdown": "| Loss | Regularizer | R@1 |\n| --- | --- | --- |\n",
    "text/html": "<table>...</table>",
    "text/csv": "loss,regularizer,recall@1\n",
    "application/json": {"name": "main"},
}


@router.get(
    "/{id}/tables/{name}",
    summary="A table of a sweep",
    response_class=Response,
    responses={
        200: {
            "description": "The table as it stands: cells that have not ended, failed or diverged are marked as such.",
            "content": {kind: {"example": example} for kind, example in _EXAMPLES.items()},
        },
        304: {"description": "The table has not changed since `If-None-Match`."},
    },
)
def table(
    number: Id,
    name: Named,
    service: Asked,
    file_format: Annotated[
        str,
        Query(alias="format", pattern="^[a-z0-9_]{1,32}$", description="latex, markdown, html, csv or json."),
    ] = "json",
    tuned: Annotated[bool | None, Query(description="Show the selected candidate; else as the spec says.")] = None,
    numbers: Annotated[
        Literal["own", "published", "difference", "both", "verdict"],
        Query(
            description="The sweep's own numbers, those of the published table that the table names, own - published, "
            "both side by side, or own ones with a verdict; 409 where it names no published table."
        ),
    ] = "own",
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """Computed from the trials each time it is read, so that a running sweep gives a partial table."""
    return as_file(service.tables.render(number, name, file_format, tuned, numbers), if_none_match)


@router.get("/{id}/verdicts", summary="Whether cells are better than their baselines")
def verdicts(
    number: Id,
    service: Asked,
    table: Annotated[
        str | None,
        Query(max_length=100, pattern=r"^[^\x00/]+$", description="A table of the sweep; by default its first."),
    ] = None,
    covers: Annotated[
        Literal["seeds", "queries", "both"] | None,
        Query(
            description="What intervals and words cover: other seeds, other test queries of these trainings, or both; "
            "by default what the table's spec says."
        ),
    ] = None,
) -> VerdictsView:
    """Each comparison that the table declares: better, worse, equivalent or unresolved, or why it is untested."""
    return service.tables.verdicts(number, table, covers)


@router.get("/{id}/optimism", summary="How optimistic the best of several candidates is")
def optimism(number: Id, service: Asked) -> OptimismView:
    """By how much the best candidate of each cell looks better than it is, and the expected best of fewer."""
    return service.tables.optimism(number)


def as_file(rendered: Rendered, known: str | None = None) -> Response:
    """A rendered file with its name and an ETag; 304 where the client has it already."""
    tag = f'"{hashlib.sha256(rendered.content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if known and tag in (one.strip().removeprefix("W/") for one in known.split(",")):
        return Response(status_code=304, headers=headers)
    headers["Content-Disposition"] = f"inline; filename*=UTF-8''{quote(rendered.filename)}"
    return Response(rendered.content, media_type=rendered.media_type, headers=headers)
