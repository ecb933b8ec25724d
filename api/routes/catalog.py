"""Routes of what there is to choose from: the catalog of parts and the schema of a spec."""

from typing import Any

from fastapi import APIRouter

from api.dependencies import Asked
from api.openapi import documented
from workers.catalog import Catalog

router = APIRouter(prefix="/v1", tags=["catalog"], responses=documented(401, 421, 500))


@router.get("/catalog", summary="The catalog of parts")
def catalog(service: Asked) -> Catalog:
    """Every part that a recipe may name, with its label, paper, hyper-parameters and their defaults."""
    return service.catalog()


@router.get("/schema", summary="The JSON schema of a spec", response_model=None)
def schema(service: Asked) -> dict[str, Any]:
    """For editors that complete and check while one types."""
    return service.json_schema()
