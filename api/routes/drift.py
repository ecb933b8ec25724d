"""The route of what changed between two tables, or in one over time."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from api.dependencies import Asked
from api.http.turns import Expensive
from api.openapi import documented
from api.routes.tables import as_file

router = APIRouter(
    prefix="/v1/drift", tags=["tables"], route_class=Expensive,
    responses=documented(401, 404, 409, 421, 422, 500, 503),
)  # fmt: skip

_SIDE = "A sweep's number, or it at a time (UTC unless it says otherwise)."


@router.get(
    "",
    summary="What changed between two tables",
    response_class=Response,
    responses={
        200: {
            "description": "Every number that is not as it was, by what, and whether by more than noise.",
            "content": {
                "application/json": {"example": {"table": "main", "unchanged": 23, "cells": []}},
                "text/plain": {"example": "From sweep 7 at 2026-11-20 12:00 UTC to sweep 7: ..."},
            },
        }
    },
)
def drift(
    before: Annotated[str, Query(max_length=60, description=_SIDE, examples=["7@2026-11-20T12:00"])],
    after: Annotated[str, Query(max_length=60, description=_SIDE, examples=["7"])],
    service: Asked,
    table: Annotated[
        str | None,
        Query(max_length=100, pattern=r"^[^\x00/]+$", description="A table of both; by default the first."),
    ] = None,
    file_format: Annotated[str, Query(alias="format", pattern="^[a-z]{1,16}$", description="json or text.")] = "json",
) -> Response:
    """Cells are matched by their labels; a sweep at a time counts what had ended by then."""
    return as_file(service.drifts.render(before, after, table, file_format))
