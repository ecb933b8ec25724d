"""The files that stand beside the pages: style sheets, scripts and icons, all from this server."""

import hashlib
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from api.dependencies import Asked
from dashboards import rendering

router = APIRouter(include_in_schema=False)


@router.get("/static/vega.js")
def vega(service: Asked, request: Request) -> Response:
    """The library that draws the figures, from this server: the pages need no network."""
    return kept(request, service.vega(), "text/javascript; charset=utf-8")


@router.get("/static/{name}")
def static(name: Annotated[str, Path(max_length=100)], request: Request) -> Response:
    """A style sheet, script or icon."""
    content = rendering.static(name)
    if content is None:
        raise HTTPException(404, f"no file {name!r}")
    suffix = name.rpartition(".")[2]
    return kept(request, content, _MEDIA_TYPES.get(suffix, "application/octet-stream"))


_MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
}


def kept(request: Request, content: bytes, media_type: str) -> Response:
    """A file that browsers keep: for a year under an address that names its version (`?v=`), else for a day."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    age = "max-age=31536000, immutable" if "v" in request.query_params else "max-age=86400"
    headers = {"ETag": tag, "Cache-Control": f"public, {age}"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)
