"""Which server a command talks to: a named one, or that of its home folder, which must prove its identity.

The token of a home is sent only over a connection on which the server has just proved that it knows the token.
"""

import os
import secrets
import shlex
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import httpx

from api.client import Client
from api.connection import NewConnection, Unreachable
from api.local.record import served
from orchestrator.host.files import one_line, secret_file
from orchestrator.host.identity import IDENTITY_PATH, Identity, find_identity, same

_TOKEN_FILE: Final = "METRICSWEEP_TOKEN_FILE"  # noqa: S105  a name


def connect(url: str | None, token: str | None, home: Path) -> Client:
    """A client of the server at `url`, or else of the home folder's server.

    An address with a token needs no proof of identity. Without a token, METRICSWEEP_TOKEN_FILE counts. Raises
    Unreachable if the home is not served, and MetricsweepError if METRICSWEEP_TOKEN_FILE contains no token.
    """
    if url and not token and (file := os.environ.get(_TOKEN_FILE)):
        token = secret_file(_TOKEN_FILE, Path(os.path.expanduser(file)).absolute(), _first_line).value()
    home = Path(os.path.abspath(os.path.expanduser(home)))
    identity = find_identity(home)
    if url:
        return Client(url, token) if token or identity is None else Client(url, auth=HomeProof(home, identity))
    server = served(home)
    if server is None or identity is None:
        raise Unreachable(f"nothing serves {home}; {_to_start(home)}")
    if not server.is_here:
        raise Unreachable(
            f"{home} is served on {server.machine} (process {server.pid}), and this is another machine; give the "
            "command there, or name an address that leads there with --url and the token with METRICSWEEP_TOKEN",
        )
    return Client(server.url, auth=HomeProof(home, identity))


def _first_line(text: str) -> str:
    """The token to send; a file may contain older ones after it."""
    return one_line(text.split(maxsplit=1)[0] if text else "")


class HomeProof(httpx.Auth):
    """Requires a proof of identity from the server before every request, then sends the home's token."""

    def __init__(self, home: Path, identity: Identity) -> None:
        self._home, self._identity = home, identity

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Check the proof, then send the request on the same connection; raises Unreachable if the proof is wrong."""
        nonce = secrets.token_hex(32)
        address = request.url.copy_with(path=IDENTITY_PATH, query=f"nonce={nonce}".encode())
        answer = yield httpx.Request("GET", address, extensions={"timeout": request.extensions.get("timeout", {})})
        host, port = answer.extensions["network_stream"].get_extra_info("server_addr")[:2]
        answer.read()
        self._check(answer, self._identity.proof(nonce, host, port))
        request.headers["Authorization"] = f"Bearer {self._identity.secret}"
        request.extensions = {**request.extensions, "trace": _only_on_a_known_connection}
        yield request

    def _check(self, answer: httpx.Response, expected: str) -> None:
        where = str(answer.url.copy_with(path="/", query=None)).rstrip("/")
        try:
            found = answer.json()
            name, proof = str(found["home"]), str(found["proof"])
        except (ValueError, KeyError, TypeError):
            kind = answer.headers.get("content-type", "nothing")
            raise self._stranger(f"no metricsweep answers at {where} ({answer.status_code}, {kind})") from None
        if name != self._identity.name:
            raise self._stranger(f"the metricsweep at {where} is not that of {self._home}")
        if not same(proof, expected):
            raise self._stranger(f"the server at {where} forwards the answers of another address")

    def _stranger(self, reason: str) -> Unreachable:
        return Unreachable(f"{reason}; your token was not sent to it. To have your own, {_to_start(self._home)}")


def _only_on_a_known_connection(event: str, info: Any) -> None:
    """httpx's trace hook: refuses to open a new connection, on which the server has proved nothing."""
    if event.startswith("connection.connect_"):
        raise NewConnection


def _to_start(home: Path) -> str:
    return (
        f"start it with `metricsweep serve --home {shlex.quote(str(home))}`, or name a server with --url or "
        "METRICSWEEP_URL and its token with METRICSWEEP_TOKEN"
    )
