"""Routes by which a supervisor asks whether the process lives and whether it can do its work."""

from typing import Final

from fastapi import APIRouter, Request, Response

from api.dependencies import Asked
from api.openapi import documented, shown
from api.problems import answer, details
from orchestrator.views.health import Readiness

READINESS: Final = {"ok": True, "checks": [{"name": "database", "ok": True, "detail": "answers"}]}

router = APIRouter(tags=["health"], responses=documented(421, 500))


@router.get("/healthz", summary="Does the process live?", responses=shown({"ok": True}, "It lives."))
async def healthz() -> dict[str, bool]:
    """Asks nothing of the database, and needs no free thread."""
    return {"ok": True}


@router.get(
    "/readyz",
    summary="Can the service do its work?",
    response_model=Readiness,
    responses=shown(READINESS, "It can.") | documented(503),
)
def readyz(service: Asked, request: Request) -> Response | Readiness:
    """Asks what is needed: database, schema, conductor, engine, MLflow, room and storage; 503 where one is missing.

    Each check is named with what is wrong in words. The answer is a second old at most, however often it is asked for.
    """
    found = service.operations.ready()
    if found.ok:
        return found
    missing = ", ".join(f"{check.name}: {check.detail}" for check in found.checks if not check.ok)
    cut = request.app.state.folderless
    checks = [check.model_dump() | {"detail": cut(check.detail)} for check in found.checks]
    return answer(request, details(request, 503, missing, ok=False, checks=checks), {"Retry-After": "5"})
