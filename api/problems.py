"""Errors as RFC 9457 problem documents: the status of each error, for programs and for browsers."""

import logging
import re
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

import orchestrator
from dashboards.rendering import render
from orchestrator.host.disk import is_disk_error
from orchestrator.settings import Settings
from orchestrator.views.errors import (
    ConflictError,
    InvalidFilterError,
    InvalidSpecError,
    LoginRefusedError,
    MetricsweepError,
    NotAllowedError,
    NotFoundError,
    NumbersChangedError,
    TooLargeError,
    UnavailableError,
)
from orchestrator.views.runs import ChangeView
from workers.catalog import Problem

MEDIA_TYPE: Final = "application/problem+json"
log = logging.getLogger(__name__)

_STATUS: Final[Mapping[type[MetricsweepError], int]] = {
    InvalidSpecError: 422,
    InvalidFilterError: 422,
    TooLargeError: 413,
    LoginRefusedError: 403,
    NotAllowedError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    UnavailableError: 503,
}
"""The status of each of our errors; any other is a 500."""

KINDS: Final[Mapping[int, str]] = {
    400: "bad-request",
    401: "token-needed",
    403: "foreign-origin",
    404: "not-found",
    405: "method-not-allowed",
    408: "too-slow",
    409: "conflict",
    413: "too-large",
    415: "unsupported-media-type",
    421: "foreign-host",
    422: "invalid",
    429: "too-many-wrong",
    431: "headers-too-large",
    500: "internal",
    501: "not-implemented",
    503: "unavailable",
}
"""The last part of a problem's `type`, on which programs may rely."""


OPENAPI_PATH: Final = "/v1/openapi.json"
Responses = dict[int | str, dict[str, Any]]


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = str(error.detail)
    if detail == HTTPStatus(error.status_code).phrase:  # the router's own 404 and 405
        method = request.method
        detail = {404: f"there is nothing at {request.url.path}", 405: f"{method} is not allowed here"}.get(
            error.status_code, detail
        )
    headers = dict(error.headers or {})
    if error.status_code == 405 and (methods := _allowed(request)):
        headers["Allow"] = ", ".join(methods)
    return answer(request, details(request, error.status_code, detail), headers)


def _allowed(request: Request) -> list[str]:
    """The methods of all routes of a path; the router names only those of the first route."""
    items: dict[str, Any] = request.app.openapi()["paths"]
    found = [item for path, item in items.items() if compile_path(path)[0].match(request.url.path)]
    return sorted({method.upper() for item in found[:1] for method in item})


class ProblemDetails(BaseModel):
    """The problem document of an error (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["urn:metricsweep:problem:not-found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(ge=400, le=599, examples=[404])
    detail: str = Field(examples=["no sweep 7"])
    instance: str = Field(examples=["/v1/sweeps/7"])
    """The path that was asked for."""
    problems: list[Problem] = Field(default_factory=list)
    """Everything that is wrong with a spec or a request, at once (422); what has other numbers today (409).

    A path is a place in the spec (`compare.loss[3]`) or in the request (`query.limit`).
    """
    request_id: str | None = None
    """By which the log tells more (500)."""


def answer(request: Request, problem: ProblemDetails, headers: Mapping[str, str] | None = None) -> Response:
    """The response to an error: the problem as JSON, or as a page for a browser."""
    kept = dict(headers or {})
    if is_page(request):
        lines = [problem.detail, *map(str, problem.problems)]
        if problem.request_id:
            lines.append(f"Request {problem.request_id}")
        text = render("problem.html", status=problem.status, title=problem.title, lines="\n".join(lines).splitlines())
        return HTMLResponse(text, status_code=problem.status, headers=kept)
    body = problem.model_dump(mode="json", exclude_none=True)
    return JSONResponse(body, status_code=problem.status, headers=kept, media_type=MEDIA_TYPE)


def is_page(request: Request) -> bool:
    """Whether a person's browser asked, outside the API."""
    path = request.url.path
    return not path.startswith("/v1/") and "text/html" in request.headers.get("accept", "")


def details(request: Request, status: int, detail: str, **more: Any) -> ProblemDetails:
    """The document for one error, without paths of our folders; `more` are further fields, such as `problems`."""
    cut: Callable[[str], str] = request.app.state.folderless
    detail = cut(detail)
    if "problems" in more:
        more["problems"] = [replace(problem, message=cut(problem.message)) for problem in more["problems"]]
    title = HTTPStatus(status).phrase
    kind = f"urn:metricsweep:problem:{KINDS.get(status, 'other')}"
    fields = {"type": kind, "title": title, "status": status, "detail": detail, "instance": request.url.path} | more
    return ProblemDetails.model_validate(fields)


async def _invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [Problem(".".join(map(str, fault["loc"])), str(fault["msg"])) for fault in error.errors()]
    noun = "problem" if len(found) == 1 else "problems"
    return answer(request, details(request, 422, f"The request has {len(found)} {noun}.", problems=found))


async def _our_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, MetricsweepError)
    status = next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)
    if status == 500:
        raise error
    if status == 503:
        log.warning("%s %s: %s", request.method, request.url.path, error)
    problems: list[Problem] = []
    detail = str(error)
    if isinstance(error, InvalidSpecError | NumbersChangedError):
        problems = list(error.problems)
        detail = detail.splitlines()[0]
    if isinstance(error, InvalidFilterError):
        problems = [Problem(f"query.{error.path}", error.detail)]
    headers = {"Retry-After": "5"} if status == 503 else None
    # The usual type of a 403 is for requests of other sites.
    kind = {"type": "urn:metricsweep:problem:not-allowed"} if status == 403 else {}
    return answer(request, details(request, status, detail, problems=problems, **kind), headers)


async def _system_error(request: Request, error: Exception) -> Response:
    if not (isinstance(error, OSError) and is_disk_error(error)):
        raise error
    return await _our_error(request, UnavailableError(f"a disk of the server takes no more: {error.strerror}"))


HANDLERS: Final[dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]]] = {
    HTTPException: _http_error,
    RequestValidationError: _invalid_request,
    MetricsweepError: _our_error,
    OSError: _system_error,
}
"""The handlers that turn errors of routes and of the router into problems; `ResponseHeaders` handles unknown errors."""


def folder_cutter(settings: Settings) -> Callable[[str], str]:
    """A function that removes the home folder, the storage and the folder of the installation from paths in a text.

    Paths below the data root stay whole, since a reader has to know which folder lacks a data set.
    """
    storage = settings.storage
    found = [settings.resolved_home, storage if isinstance(storage, Path) else None, settings.parts]
    found += [Path(orchestrator.__file__).parents[1], Path(tempfile.gettempdir())]
    folders = {str(folder.absolute()).rstrip("/") for folder in found if folder is not None}
    longest_first = sorted(filter(None, folders), key=len, reverse=True)
    kept = re.escape(str(settings.data_root.absolute()))
    cut = re.compile(rf"(?P<kept>{kept}(?=[/'\"\s,;:]|$)\S*)|(?:{'|'.join(map(re.escape, longest_first))})(?:/|\b)")
    return lambda text: cut.sub(lambda match: match["kept"] or "", text)


def shown(example: Any, description: str, status: int = 200) -> Responses:
    """The `responses` of a route that succeeds with JSON like the example."""
    return {status: {"description": description, "content": {"application/json": {"example": example}}}}


def documented(*statuses: int) -> Responses:
    """The `responses` of a route with these problems; `openapi` adds the schema that they refer to."""
    content = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


def openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the API, computed once."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for model in (ProblemDetails, ChangeView):  # to which routes refer by name
            described = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= described.pop("$defs", {}) | {model.__name__: described}
        for path in app.state.access.open_paths & document["paths"].keys():
            for operation in document["paths"][path].values():  # the gate needs no token there
                operation.pop("security", None)
                operation["responses"].pop("401", None)
        app.openapi_schema = document
    return app.openapi_schema
