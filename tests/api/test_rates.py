"""Limits of rate: buckets by an injected clock, whom each counts, and what a client makes of a 429."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.types import Receive, Scope, Send

from api.connection import ApiError, ServerConnection
from api.http import middleware
from api.http.middleware import RateLimit, Rates, TokenBuckets
from api.main import create_app
from api.routes.events import is_stream
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.accounts import OWNER, Caller, calling
from tests.api.conftest import BEARER, URL

ADA, BEN = Caller(user=1, name="ada", token=3), Caller(user=2, name="ben", token=4)


class Gate:
    """The middleware before an application that answers everything, with a clock of its own."""

    def __init__(self, now: list[float]) -> None:
        app = FastAPI()
        app.state.folderless = str
        self._app = app
        rates = Rates(read=2, write=1, open=0.5)
        self._limit = RateLimit(self._answer, rates, "/mlflow", {"/login"}.__contains__, is_stream, lambda: now[0])

    def ask(self, who: Caller, path: str = "/v1/sweeps", method: str = "GET", host: str = "10.0.0.7") -> dict[str, Any]:
        """The start of the answer."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http", "method": method, "path": path, "client": (host, 1), "headers": [], "app": self._app,
            "query_string": b"", "scheme": "http", "server": ("127.0.0.1", 8787),
        }  # fmt: skip
        with calling(who):
            asyncio.run(self._limit(scope, None, send))  # type: ignore[arg-type]
        return {"status": sent[0]["status"], **{key.decode(): value.decode() for key, value in sent[0]["headers"]}}

    def all_pass(self, who: Caller, **request: str) -> bool:
        return all(self.ask(who, **request)["status"] == 200 for _ in range(50))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture
def gate(now: list[float]) -> Iterator[Gate]:
    return Gate(now)


def test_a_bucket_gives_its_burst_and_then_its_rate(now: list[float]) -> None:
    buckets = TokenBuckets(2.0, lambda: now[0])
    assert [buckets.take("ada") for _ in range(20)] == [0.0] * 20
    assert buckets.take("ada") == pytest.approx(0.5)
    assert buckets.take("ada") == pytest.approx(0.5), "what is refused takes nothing"
    assert buckets.take("ben") == 0.0
    now[0] += 0.5
    assert (buckets.take("ada"), buckets.take("ada") > 0) == (0.0, True)
    now[0] += 3600
    assert sum(buckets.take("ada") == 0.0 for _ in range(100)) == 20, "an hour fills no more than the bucket"


def test_buckets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "MOST_KEPT", 10)
    buckets = TokenBuckets(1.0, lambda: 0.0)
    for number in range(100):
        buckets.take(number)
    assert len(buckets._full) == 10


def test_a_token_is_told_when_to_come_back_and_others_go_on(gate: Gate, now: list[float]) -> None:
    assert [gate.ask(ADA)["status"] for _ in range(21)] == [200] * 20 + [429]
    refused = gate.ask(ADA)
    assert (refused["retry-after"], refused["content-type"]) == ("1", "application/problem+json")
    assert gate.ask(ADA, method="POST")["status"] == 200, "what changes something has a bucket of its own"
    assert [gate.ask(ADA, method="POST")["status"] for _ in range(10)] == [200] * 9 + [429]
    assert gate.ask(BEN)["status"] == 200
    now[0] += 1
    assert gate.ask(ADA)["status"] == 200


def test_the_server_s_token_counts_by_address(gate: Gate) -> None:
    assert not gate.all_pass(OWNER)
    assert gate.ask(OWNER, host="10.0.0.8")["status"] == 200
    assert not gate.all_pass(OWNER, host="2001:db8::1")
    assert gate.ask(OWNER, host="2001:db8::2")["status"] == 429, "one machine has a whole network"
    assert gate.ask(OWNER, host="2001:db8:1::1")["status"] == 200


def test_what_is_not_counted(gate: Gate) -> None:
    for path in ("/healthz", "/readyz", "/v1/identity", "/static/pages.css", "/v1/events", "/v1/sweeps/7/events"):
        assert gate.all_pass(OWNER, path=path), path
    assert gate.all_pass(OWNER, path="/mlflow/api/2.0/mlflow/runs/log-batch", method="POST"), "as the conductor does"
    assert not gate.all_pass(ADA, path="/mlflow/api/2.0/mlflow/runs/log-batch", method="POST")
    assert [gate.ask(OWNER, "/login", "POST")["status"] for _ in range(6)] == [200] * 5 + [429]


def test_the_application_has_it_behind_the_check_of_who_asks(service: Service, settings: Settings) -> None:
    slow = settings.model_copy(update={"read_rate": 0.001, "open_rate": 0.001})
    with TestClient(create_app(service, slow), base_url=URL) as client:
        assert client.get("/v1/sweeps", headers=BEARER).status_code == 200
        refused = client.get("/v1/sweeps", headers=BEARER)
        assert (refused.status_code, refused.json()["type"]) == (429, "urn:metricsweep:problem:too-many-requests")
        assert refused.headers["Retry-After"] == "1000"
        assert "come back in 1000 s" in refused.json()["detail"]
        assert client.get("/v1/sweeps").status_code == 401, "who has none is told so"
        assert (client.get("/login").status_code, client.get("/login").status_code) == (200, 429)
        assert client.get("/healthz").status_code == 200


def test_a_client_waits_as_long_as_it_is_told() -> None:
    slept: list[float] = []
    problem = {"content-type": "application/problem+json"}
    answers = [
        httpx.Response(429, headers={"retry-after": "2", **problem}, json={"status": 429}),
        httpx.Response(200, json={}),
        httpx.Response(429, headers={"retry-after": "3600", **problem}, json={"status": 429, "detail": "too many"}),
    ]
    asking = ServerConnection("http://127.0.0.1:1")
    asking._sleep = slept.append
    asking._http = httpx.Client(transport=httpx.MockTransport(lambda _: answers.pop(0)))
    assert asking.send("POST", "/v1/sweeps").status_code == 200
    assert slept == [2]
    with pytest.raises(ApiError, match="too many"):
        asking.send("GET", "/v1/sweeps")
    assert slept == [2]
    again = {"headers": {"retry-after": "3", **problem}, "json": {"status": 429, "detail": "too many"}}
    answers += [httpx.Response(429, **again), httpx.Response(200, content=b"all of it"), httpx.Response(429, **again)]
    with asking.streamed("/v1/audit", 60.0) as pieces:
        assert b"".join(pieces) == b"all of it"
    assert slept == [2, 3]
    with pytest.raises(ApiError, match="too many"), asking.streamed("/v1/events", 60.0, patient=False):
        pass
    assert slept == [2, 3]
    asking.close()
