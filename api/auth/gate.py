"""Who may ask, and what: a bearer token for programs, a session for people.

A token is the server's own, which opens everything, or a user's, which opens what that user may. Which sweeps a user
sees and steers is decided where rows are read and written, in `orchestrator.record`.
"""

import base64
import ipaddress
import re
from contextlib import suppress
from typing import Final
from urllib.parse import quote

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response
from fastapi.security import HTTPBearer
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as ConnectionScope

from api.auth.oidc import PATH as PROVIDER_PATH
from api.auth.sessions import LONGEST_PAUSE, Codes, LoginPatience, Sessions
from api.http.middleware import PEER, SAFE_METHODS
from api.problems import answer, details, is_page
from orchestrator.host.identity import IDENTITY_PATH, Identity, made_for, same, seal
from orchestrator.service.accounts import AccountQueries
from orchestrator.settings import Secrets, Settings
from orchestrator.views.accounts import OWNER, Caller, Scope, calling
from orchestrator.views.errors import UnavailableError

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/login", IDENTITY_PATH})
SCHEMA_PATH: Final = "/v1/schema"
PROVIDER_PATHS: Final = frozenset(PROVIDER_PATH + end for end in ("", "/callback", "/logout"))
"""Open where a provider logs people in."""
METRICS_PATH: Final = "/metrics"
OWN: Final = frozenset({"/login", "/logout", "/v1/login-links", "/submit/check"})
"""What concerns the caller alone and changes nothing of anybody's."""
TOKENS: Final = re.compile(r"(/v1)?/tokens(/.*)?")
"""Callers' own tokens, viewers' too: to make or revoke a token takes a token that may write."""
FOR_ADMINS: Final = re.compile(
    r"/v1/(storage|collections|audit)|/sweeps/[^/]*/storage|/v1/quotas/.*|(/v1/(users|projects)|/people)(/.*)?"
)
"""What concerns all projects: the audit, users, and files, which projects share."""

Headers = list[tuple[bytes, bytes]]

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="METRICSWEEP_TOKEN of the server, or what stands in `api.token` of its home folder.",
)
"""Says in the OpenAPI document what `AuthMiddleware` enforces."""


class Authentication:
    """What one server knows of who may ask: its tokens, the sessions of browsers, the codes of one-time links."""

    def __init__(self, settings: Settings) -> None:
        self.identity: Identity = made_for(settings.resolved_home)
        self._secrets = Secrets(settings)
        self._proxies = settings.proxies
        self.secret = self._tokens[0]  # of which what is asked twice makes the same
        self.sessions = Sessions(self.sealing, settings.resolved_home)
        self.codes = Codes()
        self.patience = LoginPatience()
        # Editors fetch the schema and cannot log in; without parts of one's own it says what the package's source does.
        self.open_paths = OPEN_PATHS | (frozenset() if settings.parts else {SCHEMA_PATH})
        if settings.oidc_issuer:
            self.open_paths |= PROVIDER_PATHS

    @property
    def _tokens(self) -> tuple[str, ...]:
        """Those in force; a file of them may have been exchanged since the last request."""
        return (*self._secrets.tokens, self.identity.secret)

    def sealing(self) -> str:
        """The key that seals cookies and names them: the home's own, and a new one after the token changes."""
        return seal(self._tokens[0], "cookies", self.identity.secret)

    def is_token(self, given: str) -> bool:
        """Whether a text is a token of this server."""
        return any(same(given.strip(), token) for token in self._tokens)

    def speaks_for_users(self, given: str, peer: str) -> bool:
        """Whether a proxy shows a token of this server, which then says for whom it asks: it never asks for itself."""
        if not self._proxies or not any(same(given.strip(), token) for token in self._secrets.tokens):
            return False
        with suppress(ValueError):
            address = ipaddress.ip_address(peer)
            return any(address in network for network in self._proxies)
        return False

    def opens_mlflow(self, given: str) -> bool:
        """Whether a text is a token, or the password that opens MLflow alone."""
        return self.is_token(given) or same(given.strip(), self.identity.mlflow_password)


class AuthMiddleware:
    """ASGI middleware that lets only those pass who hold a token or a session; below `mlflow`, its password too.

    What comes behind it works for whoever asked: `orchestrator.views.accounts.caller` says who that is.
    """

    def __init__(self, app: ASGIApp, access: Authentication, mlflow: str) -> None:
        self.app = app
        self.access = access
        self.mlflow = mlflow

    async def __call__(self, scope: ConnectionScope, receive: Receive, send: Send) -> None:
        """Pass on who may; a browser is sent to the login page, a program gets a 401."""
        if scope["type"] == "websocket":  # nothing here speaks it
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["headers"] = _without_escapes(scope["headers"])
        request = Request(scope)
        try:
            admitted = await self._admitted(request)
        except UnavailableError as error:
            admitted = answer(request, details(request, 503, str(error)), {"Retry-After": "5"})
        if isinstance(admitted, Response):
            await admitted(scope, receive, send)
            return
        with calling(admitted, request.client.host if request.client else ""):
            await self.app(scope, receive, send)

    async def _admitted(self, request: Request) -> Caller | Response:
        """Who asks, or the answer to who may not."""
        path = request.url.path
        # A route's `$` also takes a line feed behind its path, which what is judged by the path knows nothing of.
        if not request.scope["path"].isprintable():
            return answer(request, details(request, 404, "no path holds control characters"))
        if path in self.access.open_paths or path.startswith("/static/"):
            return OWNER
        who = await self._caller(request, in_mlflow=path.startswith(f"{self.mlflow}/"))
        if isinstance(who, Response):
            return who
        refused = refusal(request.method, request.scope["path"], who, self.mlflow)
        return who if refused is None else _not_allowed(request, refused)

    async def _caller(self, request: Request, *, in_mlflow: bool) -> Caller | Response:
        accounts: AccountQueries = request.app.state.service.accounts
        given = _shown(request, basic=in_mlflow)
        if given is not None:
            return await self._of_token(request, accounts, given, in_mlflow=in_mlflow)
        # A cookie opens the API for reading only (downloads, logs); changes by cookie go through the pages' forms.
        session = self.access.sessions.of(request)
        if session and (request.method in SAFE_METHODS or not request.url.path.startswith("/v1/")):
            if session.token is None:
                return OWNER
            known = await run_in_threadpool(accounts.of_token, session.token)
            if known:
                return known
        if is_page(request) and request.method in SAFE_METHODS:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"/login?next={quote(request.url.path + query, safe='')}", status_code=303)
        detail = (
            "this server asks for its token: send `Authorization: Bearer <token>`; the commands find that of their own "
            "home folder, and read METRICSWEEP_TOKEN for any other server"
        )
        return answer(request, details(request, 401, detail), {"WWW-Authenticate": "Bearer"})

    async def _of_token(
        self, request: Request, accounts: AccountQueries, given: str, *, in_mlflow: bool
    ) -> Caller | Response:
        if self.access.speaks_for_users(given, request.scope.get(PEER, "")):
            name = request.headers.get("x-actor", "")
            known = await run_in_threadpool(accounts.of_name, name)
            return known or _not_allowed(request, f"the proxy asks for {name!r}, who is no user of this server")
        if self.access.opens_mlflow(given) if in_mlflow else self.access.is_token(given):
            return OWNER
        known = await run_in_threadpool(accounts.of_text, given)
        return known or await wrong(request, self.access, "this is not the token of this server")


def _without_escapes(headers: Headers) -> Headers:
    """Headers without cookies that hold a backslash: ours never do, and decoding many escapes takes a quadratic time.

    FastAPI decodes all cookies of every request, in the event loop.
    """
    return [
        (name, b";".join(pair for pair in value.split(b";") if b"\\" not in pair) if name == b"cookie" else value)
        for name, value in headers
    ]


def _not_allowed(request: Request, detail: str) -> Response:
    return answer(request, details(request, 403, detail, type="urn:metricsweep:problem:not-allowed"))


def _shown(request: Request, *, basic: bool) -> str | None:
    """The secret that a program shows. MLflow's client may send a password, which wins over a token there."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return given
    if not basic or scheme.lower() != "basic":
        return None
    with suppress(ValueError):
        return base64.b64decode(given.strip(), validate=True).decode().partition(":")[2]
    return ""


async def wrong(request: Request, access: Authentication, detail: str) -> Response:
    """The answer to a wrong token: a 401 after a while, or a 429 where too many wait for theirs."""
    client = request.client.host if request.client else "somebody"
    if await access.patience.after_wrong(client):
        return answer(request, details(request, 401, detail), {"WWW-Authenticate": "Bearer"})
    detail = f"{detail}, and too many wrong ones wait for their answer"
    return answer(request, details(request, 429, detail), {"Retry-After": f"{LONGEST_PAUSE:.0f}"})


def refusal(method: str, path: str, who: Caller, mlflow: str) -> str | None:
    """Why a caller may not make this request; None where it may. `mlflow` is the path of MLflow."""
    if who.user is None:
        return None
    in_mlflow = path == mlflow or path.startswith(f"{mlflow}/")
    if path == METRICS_PATH:
        allowed, said = who.administers or who.scope is Scope.METRICS, "what is measured is for administrators"
    elif who.scope is Scope.METRICS:
        allowed, said = False, f"your token opens {METRICS_PATH} and nothing else"
    elif in_mlflow:
        allowed, said = who.opens_mlflow, "MLflow knows no projects: it is for members of all of them"
    elif who.scope is Scope.MLFLOW:
        allowed, said = False, "your token opens MLflow and nothing else"
    elif TOKENS.fullmatch(path):
        allowed = method in SAFE_METHODS or who.scope in (Scope.WRITE, Scope.ADMIN)
        said = "a token that may only read makes and ends no tokens"
    elif FOR_ADMINS.fullmatch(path):
        allowed, said = who.administers, "what concerns all projects is for administrators"
    else:
        allowed = method in SAFE_METHODS or path in OWN or who.steers
        said = "you may look, and change nothing: that takes a member, and a token that may write"
    return None if allowed else said
