"""The route of quotas: what users and projects may have, and what they have used."""

from typing import Any, Final

from fastapi import APIRouter

from api.dependencies import Asked
from api.openapi import documented, shown
from orchestrator.views.quotas import QuotaUse

EXAMPLE: Final[list[dict[str, Any]]] = [
    {
        "slots": 8,
        "gpu_hours": 500.0,
        "cpu_hours": None,
        "days": 30,
        "kind": "project",
        "name": "faces",
        "used_slots": 3,
        "used_gpu_hours": 211.4,
        "used_cpu_hours": 12.0,
    }
]

router = APIRouter(prefix="/v1/quotas", tags=["cluster"], responses=documented(401, 421, 500, 503))


@router.get("", summary="Quotas, and what is used of them", responses=shown(EXAMPLE, "Of users, then of projects."))
def quotas(service: Asked) -> list[QuotaUse]:
    """What each user and project may have of slots and hours, and has used; null: no limit.

    Administrators are told of all, users of themselves and of the projects that they see. Hours are those of the last
    `days`, or of all time. What attempts that began before there were quotas have used is not counted.
    """
    return service.operations.quotas()
