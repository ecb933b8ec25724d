"""Routes from a number of a table to what stands behind it: a cell, and a sweep's bundle."""

from collections.abc import Iterator
from typing import IO, Annotated, Final

from fastapi import APIRouter, Path
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask

from api import examples
from api.dependencies import Asked, Id
from api.http.turns import Expensive, ExpensiveBundle
from api.openapi import documented, shown
from orchestrator.views.cells import CellView

router = APIRouter(
    prefix="/v1/sweeps",
    tags=["provenance"],
    route_class=Expensive,
    responses=documented(401, 404, 409, 421, 422, 500, 503),
)

packing = APIRouter(prefix="/v1/sweeps", tags=["provenance"], route_class=ExpensiveBundle, responses=router.responses)

CellIndex = Annotated[
    int, Path(ge=0, le=2**31 - 1, description="The cell's number in the sweep's grid, from 0.", examples=[3])
]
_CHUNK: Final = 1024 * 1024


@router.get(
    "/{id}/cells/{index}",
    summary="What stands behind a cell",
    responses=shown(examples.CELL, "The selected candidate, those that lost, and the provenance of every trial."),
)
def cell(number: Id, index: CellIndex, service: Asked) -> CellView:
    """Its candidates with scores and trials: fingerprint, code commit, data set hash, versions, device, MLflow run."""
    return service.sweeps.cell(number, index)


@packing.get(
    "/{id}/bundle",
    summary="A sweep as one archive",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Every table and figure in every format, the spec, and every trial's recipe and metrics as "
            "Parquet, with a manifest of hashes; `metricsweep rebuild` makes the tables again from it.",
            "content": {"application/zip": {"schema": {"type": "string", "contentMediaType": "application/zip"}}},
        }
    },
)
def bundle(number: Id, service: Asked) -> StreamingResponse:
    """Made when it is asked for, of what is known then; the same content gives the same bytes."""
    file = service.bundles.make(number)
    size = file.seek(0, 2)
    file.seek(0)
    headers = {"Content-Length": str(size), "Content-Disposition": f'attachment; filename="sweep-{number}.zip"'}
    return StreamingResponse(
        _chunks(file), media_type="application/zip", headers=headers, background=BackgroundTask(file.close)
    )


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk
