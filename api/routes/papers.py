"""Routes of what a paper takes in of a sweep: macros of a table."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from api.dependencies import Asked, Id, Named
from api.http.turns import Expensive
from api.openapi import documented
from api.routes.tables import as_file

router = APIRouter(
    prefix="/v1/sweeps", tags=["tables"], route_class=Expensive, responses=documented(401, 404, 421, 422, 500, 503)
)


@router.get(
    "/{id}/tables/{name}/macros",
    summary="A table as macros of LaTeX",
    response_class=Response,
    responses=documented(409)
    | {
        200: {
            "description": "One macro for each number.",
            "content": {
                "application/x-tex": {"example": "\\ms@number{msMainTripletRecallAtOne}{60.82}"},
                "application/json": {"example": {"sweep": 7, "table": "main", "numbers": []}},
            },
        }
    },
)
def macros(
    number: Id,
    name: Named,
    service: Asked,
    file_format: Annotated[
        Literal["latex", "json"],
        Query(alias="format", description="latex or json."),
    ] = "latex",
    prefix: Annotated[
        str, Query(pattern=r"^[A-Za-z]{1,20}$", description="With what the macros begin: letters from a to z.")
    ] = "ms",
) -> Response:
    """Each has value, interval, standard deviation and number of runs, as the table prints them."""
    return as_file(service.papers.render(number, name, file_format, prefix))
