"""Which server a command talks to: one that was named, or its home folder's own, which must show that it is.

The token of a home is sent only over a connection on which the server has just proven that it knows it already.
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
from orchestrator.host.identity import IDENTITY_PATH, Identity, known_of, same

TOKEN_FILE: Final = "METRICSWEEP_TOKEN_FILE"  # noqa: S105  a name


def connect(url: str | None, token: str | None, home: Path) -> Client:
    """A client of the server that was named, or else of the home folder's.

    An address that was named together with a token is used as it is. Raises Unreachable where the home is not served,
    and MetricsweepError where METRICSWEEP_TOKEN_FILE, which stands for a token that is not given, holds none.
    """
    if url and not token and (file := os.environ.get(TOKEN_FILE)):
        token = secret_file(TOKEN_FILE, Path(os.path.expanduser(file)).absolute(), _first_line).value()
    home = Path(os.path.abspath(os.path.expanduser(home)))
    identity = known_of(home)
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
    """The token that is shown; a file may hold the one that it replaces, too."""
    return one_line(text.split(maxsplit=1)[0] if text else "")


class HomeProof(httpx.Auth):
    """Has the server prove itself before every request, and then shows it the home's token."""

    def __init__(self, home: Path, identity: Identity) -> None:
        self._home, self._identity = home, identity

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Ask, check, and send the request on the same connection; raises Unreachable for a stranger."""
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
            raise self._stranger(f"what answers at {where} passes on what another address says")

    def _stranger(self, said: str) -> Unreachable:
        return Unreachable(f"{said}; it was not told your token. To have your own, {_to_start(self._home)}")


def _only_on_a_known_connection(event: str, info: Any) -> None:
    """Called by the library before every step: a connection that would be new has proven nothing."""
    if event.startswith("connection.connect_"):
        raise NewConnection


def _to_start(home: Path) -> str:
    return (
        f"start it with `metricsweep serve --home {shlex.quote(str(home))}`, or name a server with --url or "
        "METRICSWEEP_URL and its token with METRICSWEEP_TOKEN"
    )
