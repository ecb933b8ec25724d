"""What there is to read: the API's operations, drawn by Swagger UI, and the guide; both without a network."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from api.http.middleware import SECURITY_HEADERS
from api.routes.static import kept
from dashboards import guide, rendering

POLICY: Final = "Content-Security-Policy"

router = APIRouter(include_in_schema=False)


@router.get("/docs", response_class=HTMLResponse)
def operations() -> HTMLResponse:
    """Every operation of the API, to be read and tried."""
    return HTMLResponse(rendering.render("reference.html", None))


@router.get("/static/swagger-ui.js")
def swagger_script(request: Request) -> Response:
    """Swagger UI's script, from this server."""
    return kept(request, _swagger("swagger-ui-bundle.js"), "text/javascript; charset=utf-8")


@router.get("/static/swagger-ui.css")
def swagger_style(request: Request) -> Response:
    """Swagger UI's style, from this server."""
    return kept(request, _swagger("swagger-ui.css"), "text/css; charset=utf-8")


@cache
def _swagger(name: str) -> bytes:
    # fastapi-offline has the files, kept current with Swagger UI; its own pages are not used, which allow any origin.
    spec = find_spec("fastapi_offline")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "static" / name).read_bytes()


@router.get("/docs/guide")
def guide_root() -> RedirectResponse:
    """The guide's first page, below whose address its links lead."""
    return RedirectResponse("/docs/guide/", status_code=307)


@router.get("/docs/guide/{address:path}")
def guide_file(address: str, request: Request) -> Response:
    """A page of the guide, or a file that stands beside it."""
    found = guide.file(address)
    if found is None:
        raise HTTPException(404, f"the guide has no page {address!r}" if guide.built() else guide.ABSENT)
    answer = kept(request, found.content, found.media_type)
    # A page changes with the release; what names its content in the query (?v=) does not.
    if "v" not in request.query_params:
        answer.headers["Cache-Control"] = "no-cache"
    if found.scripts:
        hashes = " ".join(f"'{one}'" for one in found.scripts)
        answer.headers[POLICY] = SECURITY_HEADERS[POLICY].replace("script-src 'self'", f"script-src 'self' {hashes}")
    return answer
