"""How long an upload may take: the protocol itself, over real sockets, in front of an app that reads bodies."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from api.mlflow.rules import is_upload
from api.protection.connections import Connection, ConnectionPatience, Crowd
from tests.ports import free_port
from tests.served_app import served

HASTY = ConnectionPatience(head=2.0, body=0.5, idle=5.0, look=0.1, upload_rate=4_000)
FILE = b"PUT /mlflow/api/2.0/mlflow-artifacts/artifacts/1/model.pt HTTP/1.1\r\n"
SPEC = b"POST /v1/sweeps HTTP/1.1\r\n"


async def counting(scope: Any, receive: Any, send: Any) -> None:
    """Says how many bytes a body had; refuses one for /refused before it is read."""
    count, more = 0, scope["path"] != "/refused"
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            return
        count, more = count + len(event.get("body", b"")), event.get("more_body", False)
    body = str(count).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    chosen = free_port()
    crowd = Crowd(16, HASTY, lambda method, path: path == "/refused" or is_upload(method, path))
    http: Any = partial(Connection, crowd=crowd)
    with served(counting, port=chosen, http=http, log_level="error"):
        yield chosen


def sent(port: int, head: bytes, piece: int, pieces: int, pause: float) -> tuple[int, bytes]:
    """How many pieces of a body got through, and what the server says up to the end of the connection."""
    through, said = 0, b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        length = b"Content-Length: %d\r\n" % (pieces * piece)
        client.sendall(head + b"Host: localhost\r\nConnection: close\r\n" + length + b"\r\n")
        with suppress(ConnectionError):
            for _ in range(pieces):
                client.sendall(b"x" * piece)
                through += 1
                time.sleep(pause)
        with suppress(ConnectionError):
            while chunk := client.recv(65536):
                said += chunk
    return through, said


def test_a_file_that_comes_on_takes_many_times_as_long_as_another_body(port: int) -> None:
    through, said = sent(port, FILE, 4_000, pieces=60, pause=0.05)  # 3 s at least: six times a body's time
    assert through == 60
    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.endswith(b"240000")


def test_another_body_has_its_time_however_fast_it_comes(port: int) -> None:
    _, said = sent(port, SPEC, 4_000, pieces=60, pause=0.05)
    assert not said or b"408" in said.splitlines()[0]  # who still sends may not hear why


def test_a_file_that_drips_in_is_ended(port: int) -> None:
    through, said = sent(port, FILE, 100, pieces=100, pause=0.1)  # at most 1,000 bytes a second
    assert through < 100
    assert not said or b"408" in said.splitlines()[0]


def test_the_file_of_a_request_that_was_answered_already_gets_no_more_time(port: int) -> None:
    through, said = sent(port, b"PUT /refused HTTP/1.1\r\n", 4_000, pieces=200, pause=0.05)
    assert through < 200
    assert not said or said.startswith(b"HTTP/1.1 200 ")
