"""A proxy to MLflow behind our own login: which requests are forwarded, and how, to its server's Unix socket."""

import json
import logging
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

import anyio
import httpx
from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from api.dependencies import InForce
from api.http.middleware import MLFLOW_PATH
from api.problems import answer, details
from orchestrator.views.errors import UnavailableError


class Treatment(Enum):
    """How an admitted request to MLflow is forwarded."""

    AS_IS = "forwarded as it is"
    PAGE = "forwarded; the answer is MLflow's page"
    FILE = "forwarded; the answer may be any file and must not act as a page"
    NEW_EXPERIMENT = "forwarded without a place for artifacts"
    RUN_FILES = "forwarded if the run's artifacts are where MLflow keeps them"
    MODEL_FILES = "forwarded if the model's artifacts are where MLflow keeps them"
    QUERY = "forwarded if the GraphQL query reads experiments and runs"
    ANSWERED = "answered here, without MLflow"


@dataclass(frozen=True, slots=True)
class PassRule:
    """How the proxy treats requests with these methods whose path matches the regular expression `form`."""

    methods: frozenset[str]
    form: str
    treatment: Treatment = Treatment.AS_IS


_ANSWERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "/ajax-api/3.0/mlflow/assistant/config": {"providers": {}, "projects": {}, "remote_access_allowed": False},
    "/ajax-api/3.0/mlflow/assistant/providers": {"providers": [], "resolved": None, "gateway_vendor_options": {}},
    "/ajax-api/2.0/mlflow/gateway-proxy": {"endpoints": []},
    "/ajax-api/3.0/mlflow/ui-telemetry": {
        "disable_ui_telemetry": True, "disable_ui_events": [], "ui_rollout_percentage": 0,
    },
    "/ajax-api/2.0/mlflow/users/current": {"user": None},
}  # fmt: skip
"""Answers for features that are switched off, but that MLflow's pages request at every start."""

READ_BY_QUERIES: Final = frozenset({"mlflowGetExperiment", "mlflowGetRun", "mlflowSearchRuns"})
"""The GraphQL fields that are allowed: those of MLflow's pages. `mlflowListArtifacts` would list any folder."""

_GET: Final = frozenset({"GET", "HEAD"})
_POST: Final = frozenset({"POST"})
_PUT: Final = frozenset({"PUT"})
_PATCH: Final = frozenset({"PATCH"})
_DELETE: Final = frozenset({"DELETE"})
_ONE: Final = "[^/]+"  # a segment, such as an id
_ANY: Final = ".+"

_READS: Final = (
    "experiments/get", "experiments/get-by-name", "experiments/search", "runs/get", "metrics/get-history",
    "metrics/get-history-bulk", "metrics/get-history-bulk-interval", f"logged-models/{_ONE}",
    # The pages ask whether a run became a registered model. None does, since registering would copy any source.
    "model-versions/search", "registered-models/search",
)  # fmt: skip
_CHANGES: Final = (
    "experiments/delete", "experiments/restore", "experiments/update", "experiments/search",
    "experiments/search-datasets", "experiments/set-experiment-tag", "experiments/delete-experiment-tag",
    "runs/create", "runs/delete", "runs/restore", "runs/update", "runs/search", "runs/log-batch", "runs/log-metric",
    "runs/log-parameter", "runs/log-inputs", "runs/log-model", "runs/outputs", "runs/set-tag", "runs/delete-tag",
    "logged-models", "logged-models/search", f"logged-models/{_ONE}/params",
)  # fmt: skip


def _tracking(ends: Iterable[str]) -> str:
    return rf"/(?:ajax-)?api/2\.0/mlflow/(?:{'|'.join(ends)})"


_KEPT: Final = r"/(?:ajax-)?api/2\.0/mlflow-artifacts/artifacts"
_RULES: Final = (
    PassRule(_GET, "/", Treatment.PAGE),
    PassRule(_GET, rf"/static-files/{_ANY}|/health|/version|/(?:ajax-)?api/3\.0/mlflow/server-info"),
    PassRule(_GET, "|".join(map(re.escape, _ANSWERS)), Treatment.ANSWERED),
    PassRule(_POST, _tracking(["experiments/create"]), Treatment.NEW_EXPERIMENT),
    PassRule(_GET, _tracking(_READS)),
    PassRule(_POST, _tracking(_CHANGES)),
    PassRule(_PATCH | _DELETE, _tracking([f"logged-models/{_ONE}"])),
    PassRule(_PATCH, _tracking([f"logged-models/{_ONE}/tags"])),
    PassRule(_DELETE, _tracking([f"logged-models/{_ONE}/tags/{_ONE}"])),
    PassRule(_GET, rf"/get-artifact|{_tracking(['artifacts/list'])}", Treatment.RUN_FILES),
    PassRule(_GET, _tracking([rf"logged-models/{_ONE}/artifacts/(?:directories|files)"]), Treatment.MODEL_FILES),
    PassRule(_GET, _KEPT),
    PassRule(_GET | _PUT, f"{_KEPT}/{_ANY}", Treatment.FILE),
    PassRule(_POST, "/graphql", Treatment.QUERY),
)


def rule_for(method: str, path: str) -> PassRule | None:
    """The rule of a request to MLflow, `None` if it is not forwarded; `path` is decoded, without our prefix."""
    if not is_plain(path):
        return None
    return next((rule for rule in _RULES if method in rule.methods and re.fullmatch(rule.form, path)), None)


def is_upload(method: str, path: str) -> bool:
    """Whether a request uploads a file to MLflow, whose body may be larger than others."""
    inside = path.startswith(f"{MLFLOW_PATH}/") and method == "PUT"
    return inside and rule_for(method, path.removeprefix(MLFLOW_PATH)) is not None


def is_plain(path: str) -> bool:
    """Whether a path has the same meaning whether it is decoded once more or not."""
    decoded = unquote(path)
    if unquote(decoded) != decoded:
        return False
    path = decoded
    odd = "\\" in path or not path.isprintable() or "�" in path
    return not odd and not {".", ".."} & set(path.split("/")) and "//" not in path


def fields_of(query: str) -> frozenset[str]:
    """The fields of MLflow that a GraphQL document names; GraphQL has no other way to write a name."""
    return frozenset(re.findall(r"(?a:\bmlflow\w*)", query))


# Only these headers are forwarded, so that no cookie, token, forwarded address or origin reaches MLflow, and nothing
# about cookies, origins or connections comes back.
_REQUEST_HEADERS: Final = frozenset({
    "accept", "content-length", "content-type", "if-modified-since", "if-none-match", "if-range", "range", "user-agent",
})  # fmt: skip
_ANSWER_HEADERS: Final = frozenset({
    "accept-ranges", "cache-control", "content-disposition", "content-length", "content-range", "content-type", "etag",
    "last-modified", "retry-after",
})  # fmt: skip
_START_SECONDS: Final = 10.0
"""How long a request that only reads waits for an MLflow that starts with the service."""
_TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0, pool=10.0)
# MLflow's uvicorn closes idle connections after 5 s. Ours expire earlier, so that none is used at that moment.
_LIMITS: Final = httpx.Limits(max_connections=32, max_keepalive_connections=8, keepalive_expiry=2.0)


logging.getLogger("httpx").setLevel(logging.WARNING)  # otherwise it logs every forwarded request


class Upstream:
    """One MLflow server; raises UnavailableError if it does not answer."""

    def __init__(self, socket: Path) -> None:
        no_certificates = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # a socket encrypts nothing
        transport = httpx.AsyncHTTPTransport(uds=str(socket), limits=_LIMITS, verify=no_certificates)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=_TIMEOUT)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> httpx.Response | None:
        """MLflow's answer to a GET; `None` if MLflow refuses."""
        async with _translated():
            answer = await self._send(self._http.build_request("GET", path, params=query))
        return answer if answer.status_code == httpx.codes.OK else None

    async def forward(self, request: Request, url: httpx.URL, body: bytes | None = None) -> Response:
        """Forward a request to `url` and stream the answer; `body` replaces the request's own body."""
        dropped = set()
        if body is not None or "transfer-encoding" in request.headers:  # a chunked body has no length
            dropped = {"content-length"}
        content: bytes | AsyncIterator[bytes] | None = body
        if body is None and request.method in {"POST", "PUT", "PATCH", "DELETE"}:
            content = request.stream()
        elif body is None:  # MLflow reads parameters from the body of a GET that has no query
            dropped = {"content-length", "content-type"}
        names = _REQUEST_HEADERS - dropped
        headers = [(name, value) for name, value in request.headers.items() if name in names]
        sent = self._http.build_request(request.method, url, headers=headers, content=content)
        async with _translated():
            answer = await self._send(sent, stream=True)
        kept = {name: value for name, value in answer.headers.items() if name in _ANSWER_HEADERS}
        return _Passed(answer, kept)

    async def _send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        """The answer. A request that reads waits while MLflow starts.

        A request that writes does not wait, since its client may give up and send it again meanwhile.
        """
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                return await self._http.send(request, stream=stream)
            except httpx.ConnectError:
                if request.method not in {"GET", "HEAD"} or time.monotonic() > deadline:
                    raise
            await anyio.sleep(0.2)


class _Passed(StreamingResponse):
    """An answer that is streamed while it arrives, and closed when the client leaves."""

    def __init__(self, answer: httpx.Response, headers: Mapping[str, str]) -> None:
        super().__init__(answer.aiter_raw(), answer.status_code, headers)
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._answer.aclose()


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except httpx.PoolTimeout as error:
        raise UnavailableError("MLflow has too much to do at the moment; ask again") from error
    except httpx.TransportError as error:
        raise UnavailableError(
            "MLflow does not answer at the moment; sweeps go on without it, and it gets all their runs when it is back"
        ) from error


_KEPT_BY_MLFLOW: Final = re.compile(r"mlflow-artifacts:/(?!/)[\w.@=-]+(?:/[\w.@=-]+)*/?", re.ASCII)


def is_kept_here(location: str) -> bool:
    """Whether a location is in MLflow's own folder of artifacts."""
    return bool(_KEPT_BY_MLFLOW.fullmatch(location)) and ".." not in location.split("/")


METHODS: Final = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

# MLflow's page runs only its own scripts. It writes styles itself and shows files from memory.
_PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "media-src 'self' blob:; connect-src 'self'; font-src 'self' data:; worker-src 'self' blob:; manifest-src 'self'; "
    "frame-src 'self' blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_OPENING: Final = '<script src="../static/mlflow.js"></script>'  # sets defaults at a browser's first visit
# A logged file is downloaded or read by MLflow's page; opened alone, it is not of our origin.
_FILE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"

router = APIRouter(include_in_schema=False)


@router.get(MLFLOW_PATH)
def start() -> RedirectResponse:
    """Redirect to MLflow's page, whose files are relative to the address with a slash."""
    return RedirectResponse(f"{MLFLOW_PATH}/", status_code=308)


@router.api_route(f"{MLFLOW_PATH}/{{path:path}}", methods=METHODS)
async def proxy(request: Request, settings: InForce) -> Response:
    """Forward a request to MLflow, if a rule allows it."""
    upstream: Upstream | None = request.app.state.mlflow
    if upstream is None:
        elsewhere = settings.mlflow_public_url or settings.mlflow_url
        raise HTTPException(404, f"no MLflow is served here{f'; it is at {elsewhere}' if elsewhere else ''}")
    path = request.scope["path"].removeprefix(MLFLOW_PATH)
    rule = rule_for(request.method, path)
    try:
        if rule is None:
            raise Refusal(404, "ENDPOINT_NOT_FOUND", f"{request.method} {path} of MLflow is switched off here")
        return await _treated(rule.treatment, upstream, request, path)
    except Refusal as refusal:
        return _refused(request, refusal)
    except ClientDisconnect:  # nobody reads the answer
        return Response(status_code=400)


class Refusal(Exception):  # noqa: N818 - says what happened
    """The answer to a request that is not forwarded to MLflow; `code` is MLflow's own error code, for its client."""

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
            return JSONResponse(_ANSWERS[path])
        case Treatment.PAGE if request.method == "GET" and (page := await upstream.get("/")):
            headers = {"Content-Security-Policy": _PAGE_POLICY, "Cache-Control": "no-cache"}
            return HTMLResponse(page.text.replace("<head>", f"<head>{_OPENING}", 1), headers=headers)
        case Treatment.NEW_EXPERIMENT:
            body = await run_in_threadpool(_new_experiment, await request.body())
        case Treatment.QUERY:
            body = await run_in_threadpool(_query, await request.body())
        case Treatment.RUN_FILES | Treatment.MODEL_FILES:
            url = _url(path, urlencode(await _files(treatment, upstream, request, path)).encode())
    passed = await upstream.forward(request, url, body)
    if treatment is Treatment.PAGE:
        passed.headers["Content-Security-Policy"] = _PAGE_POLICY
    elif treatment in {Treatment.FILE, Treatment.RUN_FILES, Treatment.MODEL_FILES}:
        passed.headers["Content-Security-Policy"] = _FILE_POLICY
    return passed


def _url(path: str, query: bytes) -> httpx.URL:
    # Encoded here, since httpx would not encode what looks encoded: MLflow must decode exactly the checked path.
    try:
        return httpx.URL(raw_path=quote(path).encode() + (b"?" + query if query else b""))
    except httpx.InvalidURL as error:
        raise Refusal(400, "BAD_REQUEST", "the query holds a character that must be percent-encoded") from error


def _posted(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "BAD_REQUEST", "the body is not JSON in UTF-8") from error
    if not isinstance(found, dict):
        raise Refusal(400, "BAD_REQUEST", "the body is JSON but not an object")
    return found


def _new_experiment(body: bytes) -> bytes:
    """The request for an experiment whose artifacts are in MLflow's own folder."""
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
    """The query of a request for files; raises Refusal unless they are in MLflow's own folder."""
    parameters = request.query_params
    if treatment is Treatment.RUN_FILES:
        owner, kept = "run", {"run_id": parameters.get("run_id") or parameters.get("run_uuid") or ""}
        found = await upstream.get("/api/2.0/mlflow/runs/get", kept)
    else:
        owner, kept = "model", {}
        found = await upstream.get(f"/api/2.0/mlflow/logged-models/{path.split('/')[5]}")
    if not found:
        raise Refusal(404, "RESOURCE_DOES_NOT_EXIST", "MLflow has no object of that name")
    location = str(found.json()[owner]["info"].get("artifact_uri", ""))
    if not is_kept_here(location):
        detail = f"its artifacts are not kept by this MLflow but at {location}, from which it serves nothing"
        raise Refusal(404, "RESOURCE_DOES_NOT_EXIST", detail)
    names = ("path", "page_token", "artifact_directory_path", "artifact_file_path")
    return kept | {name: parameters[name] for name in names if name in parameters}
