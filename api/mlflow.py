"""MLflow behind our own login: which requests pass, and how they reach its server's Unix socket."""

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
from api.local.doorbell import Doorbell
from api.problems import answer, details
from orchestrator.views.errors import UnavailableError

PREFIX: Final = "/mlflow"
"""Where MLflow is on this server."""


class Treatment(Enum):
    """What happens to a request that passes."""

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
    """Requests of one form."""

    methods: frozenset[str]
    form: re.Pattern[str]
    treatment: Treatment


ANSWERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "/ajax-api/3.0/mlflow/assistant/config": {"providers": {}, "projects": {}, "remote_access_allowed": False},
    "/ajax-api/3.0/mlflow/assistant/providers": {"providers": [], "resolved": None, "gateway_vendor_options": {}},
    "/ajax-api/2.0/mlflow/gateway-proxy": {"endpoints": []},
    "/ajax-api/3.0/mlflow/ui-telemetry": {
        "disable_ui_telemetry": True,
        "disable_ui_events": [],
        "ui_rollout_percentage": 0,
    },
    "/ajax-api/2.0/mlflow/users/current": {"user": None},
}
"""What MLflow's pages ask for at every start and is switched off: that there is none of it, so that they go on."""

READ_BY_QUERIES: Final = frozenset({"mlflowGetExperiment", "mlflowGetRun", "mlflowSearchRuns"})
"""The GraphQL fields that pass: those of MLflow's pages. `mlflowListArtifacts` would list any folder."""

_GET: Final = frozenset({"GET", "HEAD"})
_POST: Final = frozenset({"POST"})
_ONE: Final = "[^/]+"  # a segment, such as an id
_ANY: Final = ".+"

_READS: Final = (
    "experiments/get", "experiments/get-by-name", "experiments/search", "runs/get", "metrics/get-history",
    "metrics/get-history-bulk", "metrics/get-history-bulk-interval", f"logged-models/{_ONE}",
    # The pages ask whether a run became a registered model. There is none: registering names a source to copy from.
    "model-versions/search", "registered-models/search",
)  # fmt: skip
_CHANGES: Final = (
    "experiments/delete", "experiments/restore", "experiments/update", "experiments/search",
    "experiments/search-datasets", "experiments/set-experiment-tag", "experiments/delete-experiment-tag",
    "runs/create", "runs/delete", "runs/restore", "runs/update", "runs/search", "runs/log-batch", "runs/log-metric",
    "runs/log-parameter", "runs/log-inputs", "runs/log-model", "runs/outputs", "runs/set-tag", "runs/delete-tag",
    "logged-models", "logged-models/search", f"logged-models/{_ONE}/params",
)  # fmt: skip


def _rule(methods: Iterable[str], form: str, treatment: Treatment = Treatment.AS_IS) -> PassRule:
    return PassRule(frozenset(methods), re.compile(form), treatment)


def _tracking(ends: Iterable[str]) -> str:
    return rf"/(?:ajax-)?api/2\.0/mlflow/(?:{'|'.join(ends)})"


_KEPT: Final = r"/(?:ajax-)?api/2\.0/mlflow-artifacts/artifacts"
_RULES: Final = (
    _rule(_GET, "/", Treatment.PAGE),
    _rule(_GET, rf"/static-files/{_ANY}|/health|/version|/(?:ajax-)?api/3\.0/mlflow/server-info"),
    _rule(_GET, "|".join(map(re.escape, ANSWERS)), Treatment.ANSWERED),
    _rule(_POST, _tracking(["experiments/create"]), Treatment.NEW_EXPERIMENT),
    _rule(_GET, _tracking(_READS)),
    _rule(_POST, _tracking(_CHANGES)),
    _rule({"PATCH", "DELETE"}, _tracking([f"logged-models/{_ONE}"])),
    _rule({"PATCH"}, _tracking([f"logged-models/{_ONE}/tags"])),
    _rule({"DELETE"}, _tracking([f"logged-models/{_ONE}/tags/{_ONE}"])),
    _rule(_GET, rf"/get-artifact|{_tracking(['artifacts/list'])}", Treatment.RUN_FILES),
    _rule(_GET, _tracking([rf"logged-models/{_ONE}/artifacts/(?:directories|files)"]), Treatment.MODEL_FILES),
    _rule(_GET, _KEPT),
    _rule({"GET", "HEAD", "PUT"}, f"{_KEPT}/{_ANY}", Treatment.FILE),
    _rule(_POST, "/graphql", Treatment.QUERY),
)


def rule_for(method: str, path: str) -> PassRule | None:
    """The rule under which a request passes; `path` is decoded and begins behind our own prefix."""
    if not is_plain(path):
        return None
    return next((rule for rule in _RULES if method in rule.methods and rule.form.fullmatch(path)), None)


def is_upload(method: str, path: str) -> bool:
    """Whether a request of our own server brings MLflow a file, which may be larger than what else is posted."""
    inside = path.startswith(f"{PREFIX}/") and method == "PUT"
    return inside and rule_for(method, path.removeprefix(PREFIX)) is not None


def is_plain(path: str) -> bool:
    """Whether a path means the same to everybody who reads it, decoded once more or not; deeper nesting is refused."""
    decoded = unquote(path)
    if unquote(decoded) != decoded:
        return False
    path = decoded
    odd = "\\" in path or not path.isprintable() or "�" in path
    return not odd and not {".", ".."} & set(path.split("/")) and "//" not in path


def fields_of(query: str) -> frozenset[str]:
    """The fields of MLflow's that a GraphQL document names; the language has no other way to write a name."""
    return frozenset(re.findall(r"(?a:\bmlflow\w*)", query))


# What goes on is named, so that no cookie, token, forwarded address or origin ever reaches MLflow, and nothing that it
# says about cookies, origins or connections ever reaches a client.
_REQUEST_HEADERS: Final = frozenset({
    "accept", "content-length", "content-type", "if-modified-since", "if-none-match", "if-range", "range", "user-agent",
})  # fmt: skip
_ANSWER_HEADERS: Final = frozenset({
    "accept-ranges", "cache-control", "content-disposition", "content-length", "content-range", "content-type", "etag",
    "last-modified", "retry-after",
})  # fmt: skip
_START_SECONDS: Final = 60.0
"""How long a request that only reads waits for an MLflow that is being started."""
_TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0, pool=10.0)
# MLflow's uvicorn closes connections that are silent for 5 s; one of ours must not be used at that moment.
_LIMITS: Final = httpx.Limits(max_connections=32, max_keepalive_connections=8, keepalive_expiry=2.0)


logging.getLogger("httpx").setLevel(logging.WARNING)  # it would write a line for each request that is passed on


class Upstream:
    """One MLflow server; raises UnavailableError where it does not answer."""

    def __init__(self, socket: Path) -> None:
        nothing_known = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # a socket encrypts nothing, and to read takes .02 s
        transport = httpx.AsyncHTTPTransport(uds=str(socket), limits=_LIMITS, verify=nothing_known)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=_TIMEOUT)
        self._bell = Doorbell(socket)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def read(self, path: str, query: Mapping[str, str]) -> Mapping[str, Any] | None:
        """The JSON object of a GET; None where MLflow refuses."""
        async with _translated():
            answer = await self._send(self._http.build_request("GET", path, params=dict(query)))
        if answer.status_code != httpx.codes.OK:
            return None
        found = answer.json()
        return found if isinstance(found, dict) else None

    async def page(self) -> str | None:
        """The page that every address of MLflow's interface shows; None where it has none."""
        async with _translated():
            answer = await self._send(self._http.build_request("GET", "/", headers={"Accept": "text/html"}))
        return answer.text if answer.status_code == httpx.codes.OK else None

    async def forward(self, request: Request, url: httpx.URL, body: bytes | None = None) -> Response:
        """The answer to a request at `url`, as it comes in; `body` replaces the request's own."""
        headers = [(name, value) for name, value in request.headers.items() if name in _REQUEST_HEADERS]
        if "transfer-encoding" in request.headers:  # by which a body is read that has a length too
            headers = [(name, value) for name, value in headers if name != "content-length"]
        content: bytes | AsyncIterator[bytes] | None = body
        if body is not None:
            headers = [(name, value) for name, value in headers if name != "content-length"]
        elif request.method in {"POST", "PUT", "PATCH", "DELETE"}:
            content = request.stream()
        else:  # MLflow reads parameters from the body of a GET that has no query
            headers = [(name, value) for name, value in headers if name not in {"content-length", "content-type"}]
        sent = self._http.build_request(request.method, url, headers=headers, content=content)
        async with _translated():
            answer = await self._send(sent, stream=True)
        kept = {name: value for name, value in answer.headers.items() if name in _ANSWER_HEADERS}
        return _Passed(answer, kept)

    async def _send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        """The answer. Where `serve` has not started MLflow yet, it is asked to, and a request that reads waits for it.

        A request that writes does not wait: its client may have given up and sent it again meanwhile.
        """
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                return await self._http.send(request, stream=stream)
            except httpx.ConnectError as error:
                if not self._bell.ring():
                    raise
                if request.method not in {"GET", "HEAD"} or time.monotonic() > deadline:
                    raise UnavailableError("MLflow is starting; ask again in a few seconds") from error
            await anyio.sleep(0.2)


class _Passed(StreamingResponse):
    """An answer that is passed on while it comes in, and given up when the client goes."""

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


class Locations:
    """Asks MLflow."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def of_run(self, run: str) -> str | None:
        """Where a run's artifacts are; None where there is no such run."""
        found = await self._upstream.read("/api/2.0/mlflow/runs/get", {"run_id": run})
        return str(found["run"]["info"].get("artifact_uri", "")) if found else None

    async def of_model(self, model: str) -> str | None:
        """Where a logged model's artifacts are; None where there is no such model."""
        found = await self._upstream.read(f"/api/2.0/mlflow/logged-models/{model}", {})
        return str(found["model"]["info"].get("artifact_uri", "")) if found else None

    @staticmethod
    def is_kept_here(location: str) -> bool:
        """Whether a location lies in the one folder that MLflow was given for artifacts."""
        return bool(_KEPT_BY_MLFLOW.fullmatch(location)) and ".." not in location.split("/")


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
