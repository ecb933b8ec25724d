"""Costly requests take turns: the rest of the API answers meanwhile, and what nobody waits for stops."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api.http import turns
from api.http.turns import Turns
from orchestrator.service.sweeps import SpecSubmissions, SweepCommands, SweepQueries
from orchestrator.service.tables import BundleQueries, FigureQueries, TableQueries
from orchestrator.views import errors
from orchestrator.views.errors import BusyError
from tests.api.conftest import BEARER, TOKEN
from tests.api.played import SPEC, YAML
from tests.served import until

HANG_SECONDS = 60


class Stalled:
    """Requests at work that go on until they are let go, or until nobody waits for them."""

    def __init__(self) -> None:
        self.at_work = 0
        self.ended: list[type[BaseException] | None] = []
        self._lock = threading.Lock()
        self._go = threading.Event()

    def __call__(self, *_: Any, **__: Any) -> Any:
        with self._lock:
            self.at_work += 1
        try:
            while not self._go.wait(0.01):
                errors.check()
        except BaseException as error:
            self.ended.append(type(error))
            raise
        finally:
            with self._lock:
                self.at_work -= 1
        raise BusyError("let go")

    def begin(self) -> None:
        self._go.clear()

    def let_go(self) -> None:
        self._go.set()


MAKERS = [
    (SpecSubmissions, "preview"), (SpecSubmissions, "submit"), (SweepCommands, "extend"), (SweepQueries, "cell"),
    (TableQueries, "render"), (TableQueries, "html"), (TableQueries, "compare"), (FigureQueries, "render"),
    (BundleQueries, "make"),
]  # fmt: skip


@pytest.fixture
def stalled(monkeypatch: pytest.MonkeyPatch) -> Any:
    work = Stalled()
    for maker, name in MAKERS:
        monkeypatch.setattr(maker, name, work)
    yield work
    work.let_go()


COSTLY = (
    ("POST", "/v1/sweeps?dry_run=true"), ("POST", "/v1/sweeps"), ("POST", "/v1/sweeps/1/extend"),
    ("GET", "/v1/sweeps/1/tables/main"), ("GET", "/v1/sweeps/1/figures/main"), ("GET", "/v1/sweeps/1/cells/0"),
    ("GET", "/v1/tables?sweeps=1,2"), ("GET", "/v1/sweeps/1/bundle"),
)  # fmt: skip


def test_costly_requests_leave_room_for_the_others(url: str, stalled: Stalled) -> None:
    with ThreadPoolExecutor(20) as pool, httpx.Client(base_url=url, headers=BEARER, timeout=HANG_SECONDS) as http:
        for method, path in COSTLY:
            stalled.begin()
            sent = [pool.submit(http.request, method, path, content=SPEC, headers=YAML) for _ in range(20)]
            until(lambda: stalled.at_work == turns.AT_ONCE, "the work goes on")
            for quick in ("/healthz", "/", "/v1/sweeps", "/v1/catalog"):
                assert http.get(quick).status_code == HTTPStatus.OK, path
            assert stalled.at_work == turns.AT_ONCE, path
            stalled.let_go()
            answers = [one.result() for one in sent]
            assert {answer.status_code for answer in answers} == {HTTPStatus.SERVICE_UNAVAILABLE}, path
            assert {answer.headers["retry-after"] for answer in answers} == {"5"}
            assert all(answer.json()["type"].endswith(":unavailable") for answer in answers)


def test_work_stops_when_its_client_leaves(url: str, stalled: Stalled) -> None:
    place = urlsplit(url)
    with socket.create_connection((str(place.hostname), int(place.port or 0))) as client:
        head = f"POST /v1/sweeps?dry_run=true HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/yaml\r\n"
        head += f"Authorization: Bearer {TOKEN}\r\n"
        client.sendall(f"{head}Content-Length: {len(SPEC)}\r\n\r\n{SPEC}".encode())
        until(lambda: stalled.at_work == 1, "the work goes on")
    until(lambda: stalled.ended == [errors.GoneError], "the work goes on")
    assert stalled.at_work == 0


def test_what_takes_too_long_is_given_up(app: FastAPI, http: TestClient, stalled: Stalled) -> None:
    app.state.settings = app.state.settings.model_copy(update={"request_seconds": 0.05})
    answer = http.get("/v1/sweeps/1/tables/main?format=json")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "takes more than 0.05 seconds of work" in answer.json()["detail"]


def test_a_spec_is_limited_by_its_size_and_not_by_the_clock(app: FastAPI, http: TestClient) -> None:
    """A legal sweep is accepted however busy the machine is."""
    app.state.settings = app.state.settings.model_copy(update={"request_seconds": 1e-9})
    for address in ("/v1/sweeps?dry_run=true", "/v1/sweeps"):
        answer = http.post(address, content=SPEC, headers=YAML)
        assert answer.is_success, answer.text


def test_only_so_many_requests_wait_for_a_turn() -> None:
    async def crowd() -> list[str]:
        lane, done = Turns(at_once=1, waiting=2, wait_seconds=0.05), asyncio.Event()

        async def one(hold: bool) -> str:
            try:
                async with lane.turn():
                    if hold:
                        await done.wait()
                    return "done"
            except BusyError as error:
                return str(error)

        first = asyncio.create_task(one(True))
        await asyncio.sleep(0)
        others = [asyncio.create_task(one(False)) for _ in range(3)]
        found = [await task for task in others]
        done.set()
        return [*found, await first, await one(False)]

    waited, too, refused, first, last = asyncio.run(crowd())
    assert waited == too == "other expensive requests did not end within 0.05 seconds; try again in a moment"
    assert refused == "too many expensive requests wait for the server; try again in a moment"
    assert first == last == "done"
