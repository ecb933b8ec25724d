"""A receiver of webhooks: a real HTTP server on loopback that answers as configured, and keeps what it receives."""

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.ports import Quiet, running

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # of the standard's own example
PATH = "/hooks/c2VjcmV0LXBhdGg"


@dataclass(frozen=True)
class Received:
    """One request."""

    headers: dict[str, str]
    body: bytes
    path: str

    @property
    def message(self) -> dict[str, Any]:
        """What it says."""
        said: dict[str, Any] = json.loads(self.body)
        return said


class Receiver:
    """Answers each request by `answer`, which may also wait or kill somebody."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answer: Callable[[BaseHTTPRequestHandler], None] = status(204)
        self.url = ""

    @property
    def types(self) -> list[tuple[str, int]]:
        """The received events, each with its sweep."""
        return [(one.message["type"], one.message["data"]["sweep"]) for one in self.received]


def status(code: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """An answer without a body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", "0")
        handler.end_headers()

    return answer


@contextmanager
def receiving(certificate: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver at its `url`, which is https where it has a certificate."""
    receiver = Receiver()

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.received.append(Received({k.lower(): v for k, v in self.headers.items()}, body, self.path))
            receiver.answer(self)

        do_GET = do_POST  # noqa: N815 - the library's name

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate:
        server.socket = certificate.wrap_socket(server.socket, server_side=True)
    receiver.url = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}{PATH}"
    with running(server):
        yield receiver
