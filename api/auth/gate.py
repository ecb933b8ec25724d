"""Authentication and authorization of requests: a bearer token for programs, a session for browsers.

A token of the server allows everything; a user's token allows what the user may do. Which sweeps a user may read and
change is decided where rows are read and written, in `orchestrator.record`.
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
from api.http.middleware import MLFLOW_PATH, PEER, SAFE_METHODS
from api.problems import answer, details, is_page
from dashboards.rendering import navigating
from orchestrator.host.checks import networks
from orchestrator.host.identity import IDENTITY_PATH, Identity, digest, ensure_identity, same, seal
from orchestrator.settings import Secrets, Settings
from orchestrator.views.accounts import OWNER, SHARED_PATH, Caller, Scope, calling
from orchestrator.views.errors import UnavailableError
from orchestrator.views.pages import Sections

_OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/login", SHARED_PATH, IDENTITY_PATH})
_SCHEMA_PATH: Final = "/v1/schema"
_PROVIDER_PATHS: Final = frozenset(PROVIDER_PATH + end for end in ("", "/callback", "/logout"))
"""Open if an OpenID Connect provider is configured."""
_METRICS_PATH: Final = "/metrics"
OWN: Final = frozenset({"/login", "/logout", "/v1/login-links", "/submit/check"})
"""Paths of changes that concern only the caller, so that read-only callers may use them."""
_TOKENS: Final = re.compile(r"(/v1)?/tokens(/.*)?")
"""The caller's own tokens. Making or revoking a token takes a token that may write."""
_FOR_ADMINS: Final = re.compile(
    r"/v1/(storage|collections|audit)|/sweeps/[^/]*/storage|/v1/quotas/.*|(/v1/(users|projects)|/people)(/.*)?"
)
"""What concerns all projects: the audit, users, and files, which projects share."""
_FOR_VISITORS: Final = re.compile(
    r"/|/trials|/trials/[0-9]+(/classes)?|/sweeps/[0-9]+(/statistics|/trials|/cells/[0-9]+)?|/curves|/compare"
    r"|/docs/guide(/.*)?|/v1/events|/v1/plots/[a-z]+"
    r"|/v1/trials|/v1/trials/[0-9]+(/metrics|/classes|/logs|/figures(/[^/]+)?)?"
    r"|/v1/sweeps/[0-9]+(/grid|/trials|/verdicts|/optimism|/resolution|/cells/[0-9]+"
    r"|/figures(/[^/]+)?|/tables/[^/]+(/macros)?)?"
)
"""What a visitor may read: the pages of the shared sweeps, what they load, and their downloads without the archive."""

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="METRICSWEEP_TOKEN of the server, or the content of `api.token` in its home folder.",
)
"""Documents in OpenAPI what `AuthMiddleware` enforces."""


class Authentication:
    """The credentials that one server accepts: its tokens, browser sessions, and codes of one-time links."""

    def __init__(self, settings: Settings) -> None:
        self.identity: Identity = ensure_identity(settings.resolved_home)
        self._secrets = Secrets(settings)
        self._proxies = networks(settings.trusted_proxies)
        self.secret = self._tokens[0]  # derives the same token for a repeated idempotency key
        self.sessions = Sessions(self.sealing, settings.resolved_home)
        self.codes = Codes()
        self.patience = LoginPatience()
        # Editors fetch the schema and cannot log in. Without own parts it says no more than the package's source.
        self.open_paths = _OPEN_PATHS | (frozenset() if settings.parts else {_SCHEMA_PATH})
        if settings.oidc_issuer:
            self.open_paths |= _PROVIDER_PATHS

    @property
    def _tokens(self) -> tuple[str, ...]:
        """The valid tokens of the server. Their file may have changed since the last request."""
        return (*self._secrets.tokens, self.identity.secret)

    def sealing(self) -> str:
        """The key that signs and names cookies: it belongs to the home and changes with the token."""
        return seal(self._tokens[0], "cookies", self.identity.secret)

    def is_token(self, token: str) -> bool:
        """Whether `token` is one of the server's own tokens."""
        return any(same(token.strip(), valid) for valid in self._tokens)

    def speaks_for_users(self, token: str, peer: str) -> bool:
        """Whether a trusted proxy sends a token of the server. It always acts for the user that it names."""
        if not self._proxies or not any(same(token.strip(), valid) for valid in self._secrets.tokens):
            return False
        with suppress(ValueError):
            address = ipaddress.ip_address(peer)
            return any(address in network for network in self._proxies)
        return False

    def opens_mlflow(self, secret: str) -> bool:
        """Whether this is a token of the server, or the password that opens only MLflow."""
        return self.is_token(secret) or same(secret.strip(), self.identity.mlflow_password)


class AuthMiddleware:
    """ASGI middleware that requires a token or a session; below `MLFLOW_PATH`, MLflow's password is valid too.

    Behind it, `orchestrator.views.accounts.caller` returns the caller.
    """

    def __init__(self, app: ASGIApp, access: Authentication) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: ConnectionScope, receive: Receive, send: Send) -> None:
        """Forward an admitted request; otherwise redirect a browser to the login page, or answer 401."""
        if scope["type"] == "websocket":  # not supported
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
            sections = await self._sections(request)
            with navigating(sections):
                await self.app(scope, receive, send)

    async def _sections(self, request: Request) -> Sections:
        """The optional sections of the navigation of a page."""
        with suppress(UnavailableError):
            if is_page(request) and request.url.path not in self.access.open_paths:
                return await run_in_threadpool(request.app.state.service.sections)
        return Sections()

    async def _admitted(self, request: Request) -> Caller | Response:
        """The caller, or the answer to a refused request."""
        path = request.url.path
        # A route's `$` also matches before a final line feed, which the checks of paths below do not expect.
        if not request.scope["path"].isprintable():
            return answer(request, details(request, 404, "no path holds control characters"))
        if path in self.access.open_paths or path.startswith("/static/"):
            return OWNER
        requester = await self._caller(request, in_mlflow=path.startswith(f"{MLFLOW_PATH}/"))
        if isinstance(requester, Response):
            return requester
        refused = _refusal(request.method, request.scope["path"], requester)
        with calling(requester):  # the page of the error has the caller's navigation
            return requester if refused is None else _not_allowed(request, refused)

    async def _caller(self, request: Request, *, in_mlflow: bool) -> Caller | Response:
        accounts = request.app.state.service.store.accounts
        secret = _sent_secret(request, basic=in_mlflow)
        if secret is not None:
            return await self._of_token(request, secret, in_mlflow=in_mlflow)
        # A cookie opens the API for reading only (downloads, logs); changes by cookie go through the pages' forms.
        session = self.access.sessions.of(request)
        if session and (request.method in SAFE_METHODS or not request.url.path.startswith("/v1/")):
            if session.token is None:
                return OWNER
            known: Caller | None = await run_in_threadpool(accounts.by_token, session.token)
            if known:
                return known
        links = self.access.sessions.links(request)
        visitor = await run_in_threadpool(accounts.by_links, [*map(digest, links)]) if links else None
        if visitor is not None or (links and is_page(request)):
            return visitor or RedirectResponse(SHARED_PATH, status_code=303)  # where it says that the link is over
        if is_page(request) and request.method in SAFE_METHODS:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"/login?next={quote(request.url.path + query, safe='')}", status_code=303)
        detail = (
            "this server asks for its token: send `Authorization: Bearer <token>`; the commands find that of their own "
            "home folder, and read METRICSWEEP_TOKEN for any other server"
        )
        return answer(request, details(request, 401, detail), {"WWW-Authenticate": "Bearer"})

    async def _of_token(self, request: Request, secret: str, *, in_mlflow: bool) -> Caller | Response:
        accounts = request.app.state.service.store.accounts
        if self.access.speaks_for_users(secret, request.scope.get(PEER, "")):
            name = request.headers.get("x-actor", "")
            known: Caller | None = await run_in_threadpool(accounts.by_name, name)
            return known or _not_allowed(request, f"the proxy asks for {name!r}, who is no user of this server")
        if self.access.opens_mlflow(secret) if in_mlflow else self.access.is_token(secret):
            return OWNER
        known = await run_in_threadpool(accounts.by_hash, digest(secret.strip()))
        return known or await _wrong(request, self.access, "this is not the token of this server")


def _without_escapes(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Headers without cookies that contain a backslash.

    Our cookies contain none. FastAPI decodes every cookie in the event loop, in quadratic time if it has many escapes.
    """
    return [
        (name, b";".join(pair for pair in value.split(b";") if b"\\" not in pair) if name == b"cookie" else value)
        for name, value in headers
    ]


def _not_allowed(request: Request, detail: str) -> Response:
    return answer(request, details(request, 403, detail, type="urn:metricsweep:problem:not-allowed"))


def _sent_secret(request: Request, *, basic: bool) -> str | None:
    """The secret in the Authorization header: a bearer token or, with `basic`, the password of MLflow's client."""
    scheme, _, sent = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return sent
    if not basic or scheme.lower() != "basic":
        return None
    with suppress(ValueError):
        return base64.b64decode(sent.strip(), validate=True).decode().partition(":")[2]
    return ""


async def _wrong(request: Request, access: Authentication, detail: str) -> Response:
    """The answer to a wrong token: a 401 after a pause, or a 429 if too many clients wait for theirs."""
    client = request.client.host if request.client else "somebody"
    if await access.patience.after_wrong(client):
        return answer(request, details(request, 401, detail), {"WWW-Authenticate": "Bearer"})
    detail = f"{detail}, and too many wrong ones wait for their answer"
    return answer(request, details(request, 429, detail), {"Retry-After": f"{LONGEST_PAUSE:.0f}"})


def _refusal(method: str, path: str, requester: Caller) -> str | None:
    """Why a caller may not make this request; `None` means that it may."""
    if requester.is_owner:
        return None
    if requester.is_visitor:
        allowed = method in ("GET", "HEAD") and bool(_FOR_VISITORS.fullmatch(path))
        reason = "you came by a share link, which shows the results of its sweep and nothing else"
    elif path == _METRICS_PATH:
        allowed = requester.administers or requester.scope is Scope.METRICS
        reason = "metrics are for administrators"
    elif requester.scope is Scope.METRICS:
        allowed, reason = False, f"your token opens {_METRICS_PATH} and nothing else"
    elif path == MLFLOW_PATH or path.startswith(f"{MLFLOW_PATH}/"):
        allowed, reason = requester.opens_mlflow, "MLflow has no projects: only members of all projects may open it"
    elif requester.scope is Scope.MLFLOW:
        allowed, reason = False, "your token opens MLflow and nothing else"
    elif _TOKENS.fullmatch(path):
        allowed = method in SAFE_METHODS or requester.scope in (Scope.WRITE, Scope.ADMIN)
        reason = "a token of scope read can neither make nor revoke tokens"
    elif _FOR_ADMINS.fullmatch(path):
        allowed, reason = requester.administers, "this concerns all projects and is for administrators"
    else:
        allowed = method in SAFE_METHODS or path in OWN or requester.steers
        reason = "you may only read; to change something, you need the role member and a token of scope write"
    return None if allowed else reason
