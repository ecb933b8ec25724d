"""The route of the planner: what a plan and a budget would decide of a spec's table."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from api.dependencies import Asked
from api.openapi import documented
from api.protection.limits import spec_body
from api.protection.turns import Checking
from api.routes.resolutions import Budget, Table
from api.routes.sweeps import SPEC_CONTENT
from orchestrator.views.foresight import ForesightView, SupposedTruth

router = APIRouter(
    prefix="/v1",
    tags=["resolutions"],
    route_class=Checking,
    responses=documented(401, 403, 404, 409, 413, 415, 421, 422, 500, 503),
)


async def truth(
    spread: Annotated[
        float | None, Query(gt=0, le=1_000_000, description="Deviation of a paired difference, in the column's unit.")
    ] = None,
    effect: Annotated[
        float | None, Query(ge=0, le=1_000_000, description="Deviation of the true differences, drawn around 0.")
    ] = None,
    like: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="The sweep whose differences and spreads are taken.")
    ] = None,
) -> SupposedTruth:
    """What is supposed, of the query."""
    return SupposedTruth(spread=spread, effect=effect, like=like)


@router.post(
    "/foresight",
    summary="What a plan and a budget would decide",
    openapi_extra={"requestBody": {"required": True, "content": SPEC_CONTENT}},
)
def foresee(
    body: Annotated[bytes, Depends(spec_body)],
    service: Asked,
    allowed: Budget,
    supposed: Annotated[SupposedTruth, Depends(truth)],
    table: Table = None,
) -> ForesightView:
    """Resolutions of a table played on supposed truths; nothing is stored or trained. `within` is refused."""
    return service.foresight.foresee(body, allowed, supposed, table)
