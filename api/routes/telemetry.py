"""The route by which Prometheus scrapes this process."""

from fastapi import APIRouter, Request, Response

from api.telemetry.exposition import CONTENT_TYPE, Exposition

router = APIRouter(include_in_schema=False)


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """What is measured, in Prometheus' text format; asks for the token as everything does."""
    exposition: Exposition = request.app.state.exposition
    return Response(exposition.text(), headers={"Content-Type": CONTENT_TYPE})
