"""The API's real process against clients that do not go on: it answers others, drops those, and logs little."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from api.protection.connections import ARRIVING, LEAST_CONNECTIONS, OTHER_FILES
from tests.api.conftest import BEARER, TOKEN
from tests.api.impatient_api import FILES, SHORT
from tests.api.test_process import environment
from tests.ports import free_port

HALF_A_HEAD = b"GET /v1/sweeps HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
OURS = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
HALF_A_BODY = (
    b"POST /v1/sweeps HTTP/1.1\r\n" + OURS + b"Content-Type: application/yaml\r\nContent-Length: 5000\r\n\r\nname"
)
GREAT = b"GET /v1/openapi.json HTTP/1.1\r\n" + OURS + b"\r\n"
MANY = 400
"""More than the process may open files."""


class Served:
    """One API process of the test's own."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process, self.port, self.log = process, port, log

    def answers(self) -> bool:
        with suppress(httpx.TransportError):
            url = f"http://127.0.0.1:{self.port}/v1/sweeps"
            return httpx.get(url, headers=BEARER, trust_env=False, timeout=60).status_code == 200
        return False

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def files(self) -> int:
        return psutil.Process(self.process.pid).num_fds()

    def connections(self) -> int:
        found = psutil.Process(self.process.pid).net_connections("tcp")
        return sum(one.status != psutil.CONN_LISTEN for one in found)


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Served]:
    port, log = free_port(), folder / "api.log"
    command = [sys.executable, "-m", "tests.api.impatient_api", *arguments]
    with log.open("wb") as file:
        given = environment(folder / "home", PORT=str(port), TOKEN=TOKEN)
        process = subprocess.Popen(command, env=given, stdout=file, stderr=file)
    served = Served(process, port, log)
    try:
        wait_until(lambda: process.poll() is not None or served.answers())
        assert process.poll() is None, log.read_text()
        yield served
    finally:
        process.kill()
        process.wait()


def wait_until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("impatient")) as one:
        yield one


def seen(served: Served) -> socket.socket:
    """A connection, the only one, that the server was seen to hold; one that timed out before gives way to a next."""
    wait_until(lambda: served.connections() == 0)
    for _ in range(20):
        client = served.connect()
        until = time.monotonic() + SHORT.idle
        while time.monotonic() < until:
            if served.connections() == 1:
                return client
        client.close()
    pytest.fail("no connection was ever seen")


def ended(client: socket.socket) -> bytes:
    """What the server said before it closed the connection; fails where it does not within a minute."""
    client.settimeout(60)
    said = b""
    with suppress(ConnectionError):
        while chunk := client.recv(65536):
            said += chunk
    return said


def test_the_test_has_more_clients_than_the_process_has_files() -> None:
    assert MANY > FILES - ARRIVING - OTHER_FILES < LEAST_CONNECTIONS


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD, HALF_A_BODY], ids=["silent", "half a head", "half a body"])
def test_an_honest_request_is_answered_while_others_keep_their_connections(served: Served, sent: bytes) -> None:
    before = served.files()
    with ExitStack() as stack:
        for _ in range(MANY):
            with suppress(OSError):  # it was closed while it sent
                stack.enter_context(client := served.connect())
                client.sendall(sent)
        assert served.answers()
        assert served.connections() <= LEAST_CONNECTIONS + ARRIVING
        # With all of them still open on their side, the server is rid of them.
        wait_until(lambda: served.connections() == 0)
        assert served.files() <= before + 8  # a database's pool may have grown
        assert served.answers()
    assert served.log.stat().st_size < 20_000
    assert "Traceback" not in served.log.read_text()


def test_a_request_that_others_read_differently_is_refused(served: Served) -> None:
    """test_request_head.py has them all; here is one through the whole server."""
    with served.connect() as client:
        head = b"POST /v1/sweeps HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.sendall(head + b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        said = ended(client)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Length and Transfer-Encoding exclude each other" in said
    assert said.count(b"HTTP/1.1 ") == 1  # what was hidden behind it is not answered


def test_a_head_that_drips_in_has_no_more_time_than_a_silent_one(served: Served) -> None:
    with served.connect() as client:
        client.sendall(HALF_A_HEAD)
        with suppress(ConnectionError):
            for _ in range(600):
                client.sendall(b"a")
                time.sleep(0.1)
                client.setblocking(False)
                with suppress(BlockingIOError):
                    assert client.recv(10).startswith(b"HTTP/1.1 4")
                    break
                client.setblocking(True)
            else:
                pytest.fail("a byte every .1 s kept the connection for a minute")
        assert f"within {SHORT.head:g} s".encode() in ended(client)


def test_a_body_that_drips_in_is_ended(served: Served) -> None:
    with served.connect() as client:
        client.sendall(HALF_A_BODY)
        said = ended(client)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"urn:metricsweep:problem:too-slow" in said


def test_an_endless_body_of_a_refused_request_is_ended(served: Served) -> None:
    """The answer has been given; what still comes in is no reason to keep the connection."""
    with served.connect() as client:
        client.sendall(b"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):
            for _ in range(6_000):
                client.sendall(b"5\r\nabcde\r\n")
                time.sleep(0.01)
            pytest.fail("it went on for a minute")


def test_who_does_not_read_is_dropped(served: Served) -> None:
    """Many great answers in one connection: they fill the kernel's buffers, then the server's own."""
    asked = 2_000
    with seen(served) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(0.2)
        with suppress(OSError):
            for _ in range(asked):
                client.sendall(GREAT)
        wait_until(lambda: served.connections() == 0)  # while this end is still open
        assert ended(client).count(b"HTTP/1.1 200 OK") < asked  # in the midst of what it had to say


def test_who_reads_slowly_but_steadily_is_served(served: Served) -> None:
    with served.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(GREAT.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        said = b""
        while chunk := client.recv(8192):
            said += chunk
            time.sleep(0.02)
    head, _, body = said.partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head.lower()


def test_connections_of_honest_clients_are_kept(served: Served) -> None:
    """Kept-alive ones are reused, and a pipelined request is answered."""
    with served.connect() as client:
        for _ in range(3):
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
            said = b""
            while said.count(b'{"ok":true}') < 2:
                said += client.recv(65536)


def test_an_aborted_upload_is_no_error(served: Served) -> None:
    before = served.log.read_text()
    for path in (b"/v1/sweeps", b"/v1/sweeps/1/extend", b"/login", b"/sweeps/1/retry"):
        with served.connect() as client:
            client.sendall(HALF_A_BODY.replace(b"/v1/sweeps", path))
    wait_until(lambda: served.connections() == 0)
    assert served.answers()
    assert served.log.read_text() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_time_with_such_clients(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path, "patient") as served, ExitStack() as stack:
        for sent in (b"", HALF_A_HEAD, HALF_A_BODY, GREAT * 500):
            client = stack.enter_context(served.connect())
            client.settimeout(0.2)
            with suppress(OSError):
                client.sendall(sent)
        os.kill(served.process.pid, number)
        assert served.process.wait(120) == 0, served.log.read_text()
        assert "Traceback" not in served.log.read_text()
