"""The route of tables that are made of several sweeps."""

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response

from api.dependencies import Asked
from api.http.turns import Expensive
from api.openapi import documented
from api.routes.tables import as_file

router = APIRouter(
    prefix="/v1/tables",
    tags=["tables"],
    route_class=Expensive,
    responses=documented(401, 404, 409, 421, 422, 500, 503),
)


@router.get(
    "",
    summary="A table of several sweeps",
    response_class=Response,
    responses={
        200: {
            "description": "The table; its caption says which number is from which sweep, and how these differ.",
            "content": {
                "application/json": {"example": {"table": "main"}},
                "text/markdown": {"example": "| Loss | R@1 |"},
                "text/x-tex": {"example": "\\begin{tabular}{lr}"},
            },
        },
        304: {"description": "The table has not changed since `If-None-Match`."},
    },
)
def compare(
    sweeps: Annotated[
        str,
        Query(
            pattern=r"^[1-9][0-9]{0,8}(,[1-9][0-9]{0,8}){1,9}$",
            description="The sweeps' numbers; where several have a cell the first named one's numbers stand.",
            examples=["7,9"],
        ),
    ],
    service: Asked,
    table: Annotated[
        str | None,
        Query(max_length=100, pattern=r"^[^\x00/]+$", description="A table of the first sweep; by default its first."),
    ] = None,
    view: Annotated[
        Literal["merge", "difference"],
        Query(description="One table of all cells, or two sweeps' numbers side by side with own - other."),
    ] = "merge",
    file_format: Annotated[
        str,
        Query(alias="format", pattern="^[a-z0-9_]{1,32}$", description="latex, markdown, html, csv or json."),
    ] = "json",
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """In the layout of the first sweep's table; 409 where the sweeps do not compare."""
    numbers = [int(one) for one in sweeps.split(",")]
    return as_file(service.tables.compare(numbers, table, view, file_format), if_none_match)
