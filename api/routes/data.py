"""The route of the data that the nodes have."""

from typing import Final

from fastapi import APIRouter

from api.dependencies import Asked
from api.openapi import documented, shown
from orchestrator.views.data import DataFinding

DATA: Final = [
    {
        "host": "lab",
        "node": "a56940a9c5f5e3cbba3081aefaf95d91da2a88741bf92210274638bf",
        "data": "cub200",
        "state": "missing",
        "said": "CUB_200_2011/images.txt is missing: looked in /data; `python -m workers data fetch cub200` fetches it",
        "looked": "2025-11-20T09:00:02Z",
    }
]

router = APIRouter(prefix="/v1/data", tags=["catalog"], responses=documented(401, 421, 500, 503))


@router.get("", summary="The data that the nodes have", responses=shown(DATA, "By node and data set."))
def data(service: Asked) -> list[DataFinding]:
    """What every node that is there was found to have of the usual data sets, and of what sweeps asked for."""
    return service.data()
