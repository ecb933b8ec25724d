"""The route `/mlflow`: MLflow's pages and its tracking API, behind the same gate and session as our own.

What MLflow would read from a body or a query to find files is read here, checked, and written anew: its own readers
take a name in two spellings, JSON within JSON and any encoding; none of that may mean something else to it than to us.
"""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx
from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from api.dependencies import InForce
from api.mlflow.locations import Locations
from api.mlflow.rules import ANSWERS, PREFIX, READ_BY_QUERIES, Treatment, fields_of, rule_for
from api.mlflow.upstream import Upstream
from api.problems import answer, details

METHODS: Final = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

# MLflow's page runs its own scripts and nothing else; styles it writes itself, files it shows from memory.
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "media-src 'self' blob:; connect-src 'self'; font-src 'self' data:; worker-src 'self' blob:; manifest-src 'self'; "
    "frame-src 'self' blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
# What a browser's first visit finds chosen: see the script.
OPENING: Final = '<script src="../static/mlflow.js"></script>'
# A file that somebody logged is downloaded or read by MLflow's page; opened by itself it gets no origin of ours.
FILE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"

router = APIRouter(include_in_schema=False)


@router.get(PREFIX)
def start() -> RedirectResponse:
    """MLflow's page asks for its files relative to itself, so that the slash counts."""
    return RedirectResponse(f"{PREFIX}/", status_code=308)


@router.api_route(f"{PREFIX}/{{path:path}}", methods=METHODS)
async def passage(request: Request, settings: InForce) -> Response:
    """Pass a request on to MLflow, if it is one of those that pass."""
    upstream: Upstream | None = request.app.state.mlflow
    if upstream is None:
        elsewhere = settings.mlflow_public_url or settings.mlflow_url
        raise HTTPException(404, f"no MLflow is served here{f'; it is at {elsewhere}' if elsewhere else ''}")
    path = request.scope["path"].removeprefix(PREFIX)
    rule = rule_for(request.method, path)
    try:
        if rule is None:
            raise Refusal(404, "ENDPOINT_NOT_FOUND", f"{request.method} {path} of MLflow is switched off here")
        return await _treated(rule.treatment, upstream, request, path)
    except Refusal as refusal:
        return _refused(request, refusal)
    except ClientDisconnect:  # nobody is left to hear an answer
        return Response(status_code=400)


class Refusal(Exception):  # noqa: N818 - says what happened
    """Why a request does not pass, also in MLflow's own words for its client."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code = status, code


def _refused(request: Request, refusal: Refusal) -> Response:
    detail = str(refusal)
    problem = details(request, refusal.status, detail, error_code=refusal.code, message=detail)
    return answer(request, problem)


async def _treated(treatment: Treatment, upstream: Upstream, request: Request, path: str) -> Response:
    url, body = _url(path, request.scope["query_string"]), None
    match treatment:
        case Treatment.ANSWERED:
            return JSONResponse(ANSWERS[path])
        case Treatment.PAGE if request.method == "GET" and (page := await upstream.page()):
            headers = {"Content-Security-Policy": PAGE_POLICY, "Cache-Control": "no-cache"}
            return HTMLResponse(page.replace("<head>", f"<head>{OPENING}", 1), headers=headers)
        case Treatment.NEW_EXPERIMENT:
            body = await run_in_threadpool(_new_experiment, await request.body())
        case Treatment.QUERY:
            body = await run_in_threadpool(_query, await request.body())
        case Treatment.RUN_FILES | Treatment.MODEL_FILES:
            url = _url(path, urlencode(await _files(treatment, upstream, request, path)).encode())
    passed = await upstream.forward(request, url, body)
    if treatment is Treatment.PAGE:
        passed.headers["Content-Security-Policy"] = PAGE_POLICY
    elif treatment in {Treatment.FILE, Treatment.RUN_FILES, Treatment.MODEL_FILES}:
        passed.headers["Content-Security-Policy"] = FILE_POLICY
    return passed


def _url(path: str, query: bytes) -> httpx.URL:
    # Encoded here, since httpx leaves what looks encoded already: MLflow must decode exactly the path that was checked.
    try:
        return httpx.URL(raw_path=quote(path).encode() + (b"?" + query if query else b""))
    except httpx.InvalidURL as error:
        raise Refusal(400, "BAD_REQUEST", "the query holds a character that must be percent-encoded") from error


def _posted(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "BAD_REQUEST", "the body is no JSON in UTF-8") from error
    if not isinstance(found, dict):
        raise Refusal(400, "BAD_REQUEST", "the body is no JSON object")
    return found


def _new_experiment(body: bytes) -> bytes:
    """The request for an experiment whose artifacts are kept where MLflow keeps all of them."""
    posted = _posted(body)
    if posted.get("artifact_location") or posted.get("artifactLocation"):
        detail = "artifact_location: this MLflow keeps all artifacts itself; create the experiment without it"
        raise Refusal(400, "INVALID_PARAMETER_VALUE", detail)
    return _written({name: posted[name] for name in ("name", "tags") if name in posted})


def _query(body: bytes) -> bytes:
    posted = _posted(body)
    query = posted.get("query")
    if not isinstance(query, str) or not fields_of(query) <= READ_BY_QUERIES:
        detail = f"query: a GraphQL query may read {', '.join(sorted(READ_BY_QUERIES))}"
        raise Refusal(400, "INVALID_PARAMETER_VALUE", detail)
    return _written({name: posted[name] for name in ("query", "variables", "operationName") if name in posted})


def _written(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, allow_nan=False).encode()


async def _files(treatment: Treatment, upstream: Upstream, request: Request, path: str) -> dict[str, str]:
    """The query of a request for files, once it is known that they are where MLflow keeps them."""
    asked, locations = request.query_params, Locations(upstream)
    if treatment is Treatment.RUN_FILES:
        run = asked.get("run_id") or asked.get("run_uuid") or ""
        location = await locations.of_run(run)
        kept = {"run_id": run}
    else:
        location = await locations.of_model(path.split("/")[5])
        kept = {}
    if location is None:
        raise Refusal(404, "RESOURCE_DOES_NOT_EXIST", "MLflow knows nothing of that name")
    if not locations.is_kept_here(location):
        detail = f"its artifacts are not kept by this MLflow but at {location}, from where it hands out nothing"
        raise Refusal(404, "RESOURCE_DOES_NOT_EXIST", detail)
    names = ("path", "page_token", "artifact_directory_path", "artifact_file_path")
    return kept | {name: asked[name] for name in names if name in asked}
