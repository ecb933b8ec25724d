"""A login that a browser has begun at the provider, and to which it comes back once, within ten minutes.

The browser keeps it as a sealed cookie, so that a stranger's logins take no place here, and servers behind one address
go on with one another's. State, nonce and verifier are computed of its random key by the server's secret: nothing in
the cookie stands in an address or is shown to the provider.
"""

import base64
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from fastapi.responses import Response

from orchestrator.host.identity import same, seal

SECONDS: Final = 600
MOST_USED: Final = 10_000
"""Logins that are remembered as used; a provider takes no code twice either."""
_MOST_PATH: Final = 1_000


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """One of them."""

    key: str
    until: int
    """Unix time at which it is over."""
    then: str
    """The path to which it leads."""
    state: str
    """By which the provider's answer is known to be to this login of this browser."""
    nonce: str
    """By which the ID token is known to be of this login."""
    verifier: str
    """What shows the provider that who brings the code began the login (PKCE, RFC 7636)."""


class LoginAttempts:
    """Those of one server, sealed with its secret."""

    def __init__(self, secret: Callable[[], str]) -> None:
        self._secret = secret
        self._used: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, then: str) -> LoginAttempt:
        """A new one, for a browser."""
        path = then if len(then.encode()) <= _MOST_PATH else "/"
        return self._attempt(secrets.token_hex(32), int(time.time()) + SECONDS, path)

    def keep(self, attempt: LoginAttempt, request: Request, answer: Response) -> None:
        """Have the browser that gets `answer` keep it."""
        said = self._said(attempt)
        answer.set_cookie(
            self._cookie(request), f"{said}.{seal(self._secret(), 'oidc attempt', said)}", max_age=SECONDS,
            httponly=True, samesite="lax", secure=_secure(request),
        )  # fmt: skip

    def forget(self, request: Request, answer: Response) -> None:
        """Have the browser keep it no longer."""
        answer.delete_cookie(self._cookie(request), httponly=True, samesite="lax", secure=_secure(request))

    def of(self, request: Request, state: str) -> LoginAttempt | None:
        """That of this browser to which a state belongs; none where it began none, or long ago, or came back before."""
        said, _, given = request.cookies.get(self._cookie(request), "").rpartition(".")
        if not same(given, seal(self._secret(), "oidc attempt", said)):
            return None
        key, until, path = said.split(".")
        with suppress(ValueError):
            then = base64.urlsafe_b64decode(path).decode()
            attempt = self._attempt(key, int(until), then)
            if same(state, attempt.state) and attempt.until > time.time() and self._first(key):
                return attempt
        return None

    def _first(self, key: str) -> bool:
        with self._lock:
            if key in self._used:
                return False
            self._used[key] = None
            while len(self._used) > MOST_USED:
                self._used.popitem(last=False)
        return True

    def _attempt(self, key: str, until: int, then: str) -> LoginAttempt:
        state, nonce, verifier = (seal(self._secret(), f"oidc {name}", key) for name in ("state", "nonce", "verifier"))
        return LoginAttempt(key, until, then, state, nonce, verifier)

    def _said(self, attempt: LoginAttempt) -> str:
        path = base64.urlsafe_b64encode(attempt.then.encode()).decode()
        return f"{attempt.key}.{attempt.until}.{path}"

    def _cookie(self, request: Request) -> str:
        # Behind https a name that no other host of the domain, and no plain http, can set.
        prefix = "__Host-" if _secure(request) else ""
        return f"{prefix}metricsweep_oidc_{seal(self._secret(), 'cookie')[:16]}"


def _secure(request: Request) -> bool:
    return request.url.scheme == "https"
