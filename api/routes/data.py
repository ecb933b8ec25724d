"""The route of the data that the nodes have."""

from fastapi import APIRouter

from api import examples
from api.dependencies import Asked
from api.openapi import documented, shown
from orchestrator.views.data import DataFinding

router = APIRouter(prefix="/v1/data", tags=["catalog"], responses=documented(401, 421, 500, 503))


@router.get("", summary="The data that the nodes have", responses=shown(examples.DATA, "By node and data set."))
def data(service: Asked) -> list[DataFinding]:
    """What every node that is there was found to have of the usual data sets, and of what sweeps asked for."""
    return service.data()
