"""Who may ask: a bearer token for programs, a cookie for people who logged in with it once."""

import hashlib
import hmac
import time
from typing import Final
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from fastapi.security import HTTPBearer
from starlette.types import ASGIApp, Receive, Scope, Send

from api.guards import SAFE_METHODS
from api.problems import answer, details, is_page
from orchestrator.settings import Settings

COOKIE: Final = "metricsweep_login"
COOKIE_SECONDS: Final = 30 * 24 * 3600
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/login"})

bearer = HTTPBearer(
    auto_error=False, scheme_name="token", description="Needed where the server was started with METRICSWEEP_TOKEN."
)
"""Says in the OpenAPI document what `Gate` enforces."""


class Gate:
    """ASGI middleware that lets only those pass who hold the token, where one is set."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.token = token(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on who may; a browser is sent to the login page, a program gets a 401."""
        refused = self._refuse(Request(scope)) if scope["type"] == "http" and self.token else None
        await (refused or self.app)(scope, receive, send)

    def _refuse(self, request: Request) -> Response | None:
        path = request.url.path
        if path in OPEN_PATHS or path.startswith("/static/") or self._admitted(request):
            return None
        if is_page(request) and request.method in SAFE_METHODS:
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"/login?next={quote(path + query, safe='')}", status_code=303)
        detail = (
            "this server asks for its token: send `Authorization: Bearer <token>`; the commands read METRICSWEEP_TOKEN"
        )
        return answer(request, details(request, 401, detail), {"WWW-Authenticate": "Bearer"})

    def _admitted(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return same(given.strip(), self.token)
        # A cookie opens the API for reading only (downloads, logs); changes by cookie go through the pages' forms.
        reading = request.method in SAFE_METHODS or not request.url.path.startswith("/v1/")
        return reading and valid_cookie(request.cookies.get(COOKIE, ""), self.token)


def token(settings: Settings) -> str:
    """The token in force; empty: none is asked for."""
    return settings.token.get_secret_value() if settings.token else ""


def same(given: str, expected: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell how far."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())


def new_cookie(secret: str) -> str:
    """A login that ends after 30 days or with the token; the token cannot be read from it."""
    until = str(int(time.time()) + COOKIE_SECONDS)
    return f"{until}.{_seal(until, secret)}"


def valid_cookie(value: str, secret: str) -> bool:
    """Whether a cookie is one of ours and has not run out."""
    until, _, seal = value.partition(".")
    return same(seal, _seal(until, secret)) and until.isdecimal() and int(until) > time.time()


def _seal(until: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"metricsweep login until {until}".encode(), hashlib.sha256).hexdigest()
