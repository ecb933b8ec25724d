"""The pages of the catalog."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from api.dependencies import Asked
from dashboards import catalog

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

Word = Annotated[str, Path(max_length=100, pattern=r"^\w+$")]


@router.get("/catalog")
def parts(service: Asked) -> HTMLResponse:
    """Every part, by kind."""
    return HTMLResponse(catalog.catalog_page(service.catalog()))


@router.get("/catalog/{kind}/{name}")
def part(kind: Word, name: Word, service: Asked) -> HTMLResponse:
    """One part, with its formula and the sweeps that used it."""
    entry = next((one for one in service.catalog().of(kind) if one.name == name), None)
    if entry is None:
        raise HTTPException(404, f"no {kind} named {name!r}")
    found = [one for one in service.data() if name in one.data.split()] if kind in {"dataset", "backbone"} else []
    return HTMLResponse(catalog.part_page(entry, service.sweeps.using(kind, name, catalog.USES), found))
