"""The route of the audit: who did what when, from where."""

from collections.abc import Iterator
from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from api.dependencies import Asked
from api.openapi import documented
from orchestrator.views.accounts import AuditEntry

router = APIRouter(prefix="/v1", tags=["audit"], responses=documented(401, 403, 421, 422, 500, 503))

MEDIA_TYPE: Final = "application/x-ndjson"
_EXAMPLE: Final = (
    '{"id":12,"at":"2026-05-01T12:00:00Z","who":"ada","user":1,"token":3,"what":"delete","target":"sweep 7",'
    '"detail":"request 31","address":"10.0.0.7","request":"0b6f2c5e2f574a539d0a3f6f1b0c8a11"}\n'
)


@router.get(
    "/audit",
    summary="Who did what, for administrators",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "A line of JSON for each entry, the oldest first.",
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": _EXAMPLE}},
        }
    },
)
def audit(
    service: Asked,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only what came after the entry of this number.")] = 0,
) -> StreamingResponse:
    """What was submitted, asked for and remarked, who logged in, and what became of users, projects and tokens."""
    return StreamingResponse(_lines(service.accounts.audit(after)), media_type=MEDIA_TYPE)


def _lines(entries: Iterator[AuditEntry]) -> Iterator[bytes]:
    for one in entries:
        yield one.model_dump_json().encode() + b"\n"
