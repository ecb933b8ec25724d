"""Who may ask: a bearer token for programs, a session for people who logged in with it, or with a one-time link."""

import base64
from contextlib import suppress
from typing import Final
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from fastapi.security import HTTPBearer
from starlette.types import ASGIApp, Receive, Scope, Send

from api.access.codes import Codes
from api.access.patience import LONGEST_PAUSE, LoginPatience
from api.access.sessions import Sessions
from api.problems import answer, details, is_page
from api.protection.guards import SAFE_METHODS
from orchestrator.host.identity import IDENTITY_PATH, Identity, made_for, same
from orchestrator.settings import Settings

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/login", IDENTITY_PATH})
SCHEMA_PATH: Final = "/v1/schema"

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
        chosen = settings.token.get_secret_value() if settings.token else None
        self._tokens = [token for token in (chosen, self.identity.secret) if token]
        # Servers behind one address share the chosen token, not the home: with it they know each other's sessions.
        self.sessions = Sessions(self._tokens[0], settings.resolved_home)
        self.codes = Codes()
        self.patience = LoginPatience()
        # Editors fetch the schema and cannot log in; without parts of one's own it says what the package's source does.
        self.open_paths = OPEN_PATHS | (frozenset() if settings.parts else {SCHEMA_PATH})

    def is_token(self, given: str) -> bool:
        """Whether a text is a token of this server."""
        return any(same(given.strip(), token) for token in self._tokens)

    def opens_mlflow(self, given: str) -> bool:
        """Whether a text is a token, or the password that opens MLflow alone."""
        return self.is_token(given) or same(given.strip(), self.identity.mlflow_password)


class AuthMiddleware:
    """ASGI middleware that lets only those pass who hold a token or a session; below `mlflow`, its password too."""

    def __init__(self, app: ASGIApp, access: Authentication, mlflow: str) -> None:
        self.app = app
        self.access = access
        self.mlflow = f"{mlflow}/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on who may; a browser is sent to the login page, a program gets a 401."""
        if scope["type"] == "websocket":  # nothing here speaks it
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = await self._refuse(Request(scope)) if scope["type"] == "http" else None
        await (refused or self.app)(scope, receive, send)

    async def _refuse(self, request: Request) -> Response | None:
        path = request.url.path
        if path in self.access.open_paths or path.startswith("/static/"):
            return None
        in_mlflow = path.startswith(self.mlflow)
        given = _shown(request, basic=in_mlflow)
        if given is not None:
            if self.access.opens_mlflow(given) if in_mlflow else self.access.is_token(given):
                return None
            return await wrong(request, self.access, "this is not the token of this server")
        # A cookie opens the API for reading only (downloads, logs); changes by cookie go through the pages' forms.
        reading = request.method in SAFE_METHODS or not path.startswith("/v1/")
        if reading and self.access.sessions.of(request):
            return None
        if is_page(request) and request.method in SAFE_METHODS:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"/login?next={quote(path + query, safe='')}", status_code=303)
        detail = (
            "this server asks for its token: send `Authorization: Bearer <token>`; the commands find that of their own "
            "home folder, and read METRICSWEEP_TOKEN for any other server"
        )
        return answer(request, details(request, 401, detail), {"WWW-Authenticate": "Bearer"})


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
