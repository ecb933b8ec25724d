"""Routes of quotas: what users and projects may have, and what they have used."""

from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Path
from pydantic import ConfigDict, JsonValue, model_validator

from api.dependencies import AccountName, Asked
from api.openapi import documented, shown
from orchestrator.views.quotas import Quota, QuotaKind, QuotaUse

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

DAYS_OF_HOURS: Final[JsonValue] = [
    {"properties": {"days": {"type": "null"}}},
    {"required": ["gpu_hours"], "properties": {"gpu_hours": {"type": "number"}}},
    {"required": ["cpu_hours"], "properties": {"cpu_hours": {"type": "number"}}},
]
"""That a quota with days names hours, as `Quota.lacking` says it, for those who read the schema."""

router = APIRouter(prefix="/v1/quotas", tags=["cluster"], responses=documented(401, 421, 500, 503))


@router.get("", summary="Quotas, and what is used of them", responses=shown(EXAMPLE, "Of users, then of projects."))
def quotas(service: Asked) -> list[QuotaUse]:
    """What each user and project may have of slots and hours, and has used; null: no limit.

    Administrators are told of all, users of themselves and of the projects that they see. Hours are those of the last
    `days`, or of all time. What attempts that began before there were quotas have used is not counted.
    """
    return service.operations.quotas()


class NewQuota(Quota):
    """What a user or a project may have from now on; what is left out has no limit."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        defer_build=False,  # pydantic warns of a body that defers
        json_schema_extra={"anyOf": DAYS_OF_HOURS},
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.lacking:
            raise ValueError(self.lacking)
        return self


@router.put(
    "/{kind}/{name}",
    summary="Set a quota",
    responses=shown(EXAMPLE, "Of all, as they are now.") | documented(403, 404, 413, 422),
)
def set_quota(
    kind: Annotated[QuotaKind, Path(description="Of what it is.")], name: AccountName, limits: NewQuota, service: Asked
) -> list[QuotaUse]:
    """For administrators: a quota in place of what there was; one without limits takes it away."""
    service.people.set_quota(kind, name, limits)
    return service.operations.quotas(anew=True)
