"""Whose server a command talks to: its home's own, proven, or one that was named."""

import http.client
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from typer.testing import CliRunner, Result

from api.cli import app as commands
from api.connection import Unreachable
from api.discovery import connect
from api.local.record import write
from api.main import create_app
from orchestrator.host.identity import Identity, ensure_identity, find_identity
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.api.conftest import TOKEN
from tests.ports import Quiet, running
from tests.served_app import served


class Listener(ThreadingHTTPServer):
    """A foreign server: keeps all that it receives, and answers as configured."""

    def __init__(self, answers: Callable[[str], tuple[int, str, bytes]]) -> None:
        self.received: list[str] = []
        self.answers = answers
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(Quiet, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Listener

    def do_GET(self) -> None:
        self.server.received.append(f"{self.requestline}\n{self.headers}")
        status, kind, body = self.server.answers(self.path)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def listening(answers: Callable[[str], tuple[int, str, bytes]]) -> Iterator[Listener]:
    server = Listener(answers)
    with running(server):
        yield server


def command(*arguments: str, **environment: str) -> Result:
    clean: dict[str, str | None] = {f"METRICSWEEP_{name}": None for name in ("URL", "TOKEN", "HOME")}
    return CliRunner().invoke(commands, arguments, env={**clean, **environment})


def note(home: Path, url: str) -> None:
    """What `serve` notes."""
    write(home, {"pid": os.getpid()}, url)


@pytest.fixture
def home(settings: Settings, service: Service) -> Path:
    """A home of our own; nobody serves it yet."""
    ensure_identity(settings.home)
    return settings.home


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[str]:
    """The real server of another home, with a token of its own."""
    other = Settings(home=tmp_path / "theirs")
    service = Service.open(other)
    with served(create_app(service, other)) as url:
        yield url
    service.close()


def test_a_command_finds_the_server_of_its_home(app: FastAPI, home: Path) -> None:
    with served(app) as url:
        note(home, url)
        assert command("list", "--home", str(home)).exit_code == 0
        assert command("list", METRICSWEEP_HOME=str(home)).exit_code == 0
        named = command("list", "--url", url, "--home", str(home))
        assert named.exit_code == 0, "without a token, what was named is proven too"
        link = command("login-link", "--home", str(home)).stdout.strip()
        assert link.startswith(f"{url}/login?code=")
        to = urlsplit(link)
        browser = http.client.HTTPConnection(to.netloc, timeout=60)
        browser.request("GET", f"{to.path}?{to.query}")
        answer = browser.getresponse()
        assert answer.status == 200
        assert "Log in as the owner of this server" in answer.read().decode()


def test_where_nothing_serves_the_home_a_command_says_how_to_start_it(home: Path, tmp_path: Path) -> None:
    for where in (tmp_path / "never", home):
        answer = command("list", "--home", str(where))
        assert answer.exit_code == 3
        assert f"nothing serves {where}; start it with `metricsweep serve --home {where}`" in answer.stderr
    assert not (tmp_path / "never").exists()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    note(home, f"http://127.0.0.1:{port}")  # a supervisor that was killed
    answer = command("list", "--home", str(home))
    assert answer.exit_code == 3
    assert f"no metricsweep at http://127.0.0.1:{port}" in answer.stderr


def test_another_home_s_server_is_refused(home: Path, theirs: str) -> None:
    note(home, theirs)
    answer = command("list", "--home", str(home))
    assert answer.exit_code == 3
    assert f"the metricsweep at {theirs} is not that of {home}; your token was not sent to it" in answer.stderr
    named = command("list", "--home", str(home), "--url", theirs)
    assert named.exit_code == 3
    assert "METRICSWEEP_TOKEN" in named.stderr


def test_a_stranger_never_sees_the_token(home: Path) -> None:
    own = find_identity(home)
    assert own is not None
    relayed = json.dumps({"home": own.name, "proof": "0" * 64}).encode()
    for answer, message in (
        ((200, "text/html", b"<p>hello</p>"), "no metricsweep answers at"),
        ((404, "application/problem+json", b"{}"), "no metricsweep answers at"),
        ((200, "application/json", b"[]"), "no metricsweep answers at"),
        ((200, "application/json", b'{"home": 1, "proof": 2}'), "is not that of"),
        ((200, "application/json", relayed), "forwards the answers"),
    ):
        with listening(lambda _, answer=answer: answer) as server:
            note(home, server.url)
            for given in ((), ("--url", server.url)):
                refused = command("list", "--home", str(home), *given)
                assert (refused.exit_code, message in refused.stderr) == (3, True), refused.stderr
        heard = "".join(server.received)
        assert len(server.received) == 2
        assert own.secret not in heard
        assert "authorization" not in heard.lower()


def test_a_relay_is_found_out(app: FastAPI, home: Path) -> None:
    """It asks the home's own server, which listens elsewhere, and passes the answer on."""
    own = find_identity(home)
    assert own is not None
    with served(app) as url:

        def relay(path: str) -> tuple[int, str, bytes]:
            connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.headers["content-type"], answer.read()

        with listening(relay) as server:
            note(home, server.url)
            refused = command("list", "--home", str(home))
    assert refused.exit_code == 3
    assert f"the server at {server.url} forwards the answers of another address" in refused.stderr
    assert len(server.received) == 1
    assert own.secret not in "".join(server.received)


def test_a_process_that_takes_the_port_meanwhile_gets_no_token(app: FastAPI, home: Path) -> None:
    """The server ends between the proof and the next request, and another one listens in its place."""
    with served(app) as url:
        note(home, url)
        client = connect(None, None, home)
        assert list(client.sweeps()) == []
    with listening(lambda _: (200, "application/json", b'{"items": [], "next_cursor": null}')) as server:
        client._connection.url = server.url  # the same, had the system given it the same port
        with pytest.raises(Unreachable, match="no metricsweep answers"):
            list(client.sweeps())
        assert "authorization" not in "".join(server.received).lower()
    client.close()


def test_a_server_that_closes_after_its_proof_gets_no_token(home: Path) -> None:
    """The token goes over the connection of the proof, not over one that was made after it."""
    own = find_identity(home)
    assert own is not None
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer_and_close() -> None:
            for _ in range(9):
                connection, _ = listener.accept()
                with connection:
                    received.append(connection.recv(65536))
                    nonce = received[-1].partition(b"nonce=")[2].split()[0].decode()
                    body = json.dumps({"home": own.name, "proof": own.proof(nonce, "127.0.0.1", port)}).encode()
                    connection.sendall(
                        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                        + f"Content-Length: {len(body)}\r\n\r\n".encode()
                        + body
                    )

        thread = threading.Thread(target=answer_and_close)
        thread.start()
        note(home, f"http://127.0.0.1:{port}")
        refused = command("list", "--home", str(home))
        thread.join(60)
    assert refused.exit_code == 3
    assert "it closes every connection" in refused.stderr
    assert len(received) == 9
    assert b"authorization" not in b"".join(received).lower()


def test_what_was_named_with_a_token_is_used_as_named(theirs: str, home: Path) -> None:
    with listening(lambda _: (200, "application/json", b'{"items": [], "next_cursor": null}')) as server:
        answer = command("list", "--home", str(home), METRICSWEEP_URL=server.url, METRICSWEEP_TOKEN=TOKEN)
    assert answer.exit_code == 0
    assert f"Authorization: Bearer {TOKEN}".lower() in server.received[0].lower()
    asked = command("list", METRICSWEEP_URL=theirs, METRICSWEEP_TOKEN=TOKEN)
    assert asked.exit_code == 2
    assert "not the token of this server" in asked.stderr


def test_a_home_that_another_machine_serves_is_reported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(socket, "gethostname", lambda: "lab-3")
        note(home, "http://127.0.0.1:8787")
    answer = command("list", "--home", str(home))
    assert answer.exit_code == 3
    assert f"{home} is served on lab-3 (process {os.getpid()})" in answer.stderr


def test_a_proof_is_of_one_address_one_nonce_and_one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Identity("a" * 64)
    proofs = {
        own.proof("00", "127.0.0.1", 8787), own.proof("01", "127.0.0.1", 8787), own.proof("00", "127.0.0.2", 8787),
        own.proof("00", "127.0.0.1", 8788), Identity("b" * 64).proof("00", "127.0.0.1", 8787),
    }  # fmt: skip
    monkeypatch.setattr(socket, "gethostname", lambda: "lab-3")
    assert len({*proofs, own.proof("00", "127.0.0.1", 8787)}) == 6
