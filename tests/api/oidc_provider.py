"""Providers of OpenID Connect: `oidc-provider-mock` as a process, and one that deviates as a test asks."""

import hashlib
import json
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.ports import free_port
from tests.served import until

KEY, CLIENT, SECRET = (
    RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}),
    "metricsweep",
    "a-client-secret-of-the-tests",
)


@contextmanager
def mock_provider(*users: dict[str, Any]) -> Iterator[str]:
    """`oidc-provider-mock` as a process of its own; its address."""
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"]
    for user in users:
        command += ["--user-claims", json.dumps(user)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None, "the provider ended"
        try:
            return httpx.get(f"{address}/jwks", trust_env=False, timeout=60).is_success
        except httpx.TransportError:
            return False

    try:
        until(answers, "the provider answers", process)
        yield address
    finally:
        process.terminate()
        process.wait(60)


class PlayedProvider:
    """A provider that follows the standard, including PKCE and the client's secret, except where a test changes it."""

    def __init__(self) -> None:
        self.issuer = ""
        self.keys: dict[str, Any] = {"keys": [KEY.as_dict(private=False)]}
        self.people: dict[str, dict[str, Any]] = {"17": {"preferred_username": "ada"}}
        self.who = "17"
        """Who is logged in there."""
        self.discovery: dict[str, Any] = {}
        self.claims: dict[str, Any] = {}
        """Changed claims of the ID token; None removes a claim."""
        self.algorithm: str = "RS256"
        self.signed_by: Any = KEY
        self.answers: dict[str, Callable[[], Response]] = {}
        """What answers each request of a path, in place of the provider."""
        self.raw: str | None = None
        """A fixed ID token."""
        self.userinfo: dict[str, Any] | None = None
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.app = Starlette(routes=[Route("/{path:path}", self._answer, methods=["GET", "POST"])])

    async def _answer(self, request: Request) -> Response:
        path = request.url.path
        self.asked.append(path)
        if path in self.answers:
            return self.answers[path]()
        if path == "/authorize":
            return self._authorized(dict(request.query_params))
        if path == "/token":
            return self._token(parse_qs((await request.body()).decode()), request.headers.get("authorization", ""))
        return self._told(path)

    def _told(self, path: str) -> Response:
        if path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "userinfo_endpoint": "userinfo",
                     "jwks_uri": "keys", "end_session_endpoint": "end"}  # fmt: skip
            metadata = {name: f"{self.issuer}/{path}" for name, path in names.items()} | {"issuer": self.issuer}
            return JSONResponse({k: v for k, v in (metadata | self.discovery).items() if v is not None})
        if path == "/keys":
            return JSONResponse(self.keys)
        if path == "/userinfo" and self.userinfo is not None:
            return JSONResponse(self.userinfo)
        return Response(status_code=404)

    def _authorized(self, asked: dict[str, str]) -> Response:
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}", 302)

    def _token(self, form: dict[str, list[str]], shown: str) -> Response:
        in_body = (form.get("client_id", [""])[0], form.get("client_secret", [""])[0])
        if in_body != (CLIENT, SECRET) and httpx.BasicAuth(CLIENT, SECRET)._auth_header != shown:
            return JSONResponse({"error": "invalid_client"}, 401)
        asked = self.codes.pop(form["code"][0], None)
        proof = hashlib.sha256(form.get("code_verifier", [""])[0].encode()).digest()
        challenge = urlsafe_b64encode(proof).decode().rstrip("=")
        kept = asked is not None and asked["redirect_uri"] == form["redirect_uri"][0]
        if not kept or asked is None or asked["code_challenge"] != challenge:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse({"access_token": "an-access-token", "token_type": "Bearer", "id_token": self._id(asked)})

    def _id(self, asked: dict[str, str]) -> str:
        if self.raw is not None:
            return self.raw
        now = int(time.time())
        said = {
            "iss": self.issuer, "sub": self.who, "aud": CLIENT, "exp": now + 300, "iat": now, "nonce": asked["nonce"],
        }  # fmt: skip
        said |= self.people.get(self.who, {}) | self.claims
        header = {"alg": self.algorithm, "kid": self.signed_by.kid}
        kept = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(header, kept, self.signed_by, algorithms=[self.algorithm])


def query(address: str) -> dict[str, str]:
    """What an address asks."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
