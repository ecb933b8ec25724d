"""What a client meets on its way: limits of rate by an injected clock, what it makes of a 429, and proxies."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.types import Receive, Scope, Send

from api.client import Client
from api.connection import ApiError, ServerConnection, Unreachable
from api.http import middleware
from api.http.middleware import RateLimit, TokenBuckets
from api.main import create_app
from orchestrator.conduct.webhook import Webhook
from orchestrator.host.checks import proxy_fault, proxy_variable
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
        rates = {"read": 2.0, "write": 1.0, "open": 0.5}
        self._limit = RateLimit(self._answer, rates, {"/login"}.__contains__, lambda: now[0])

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


def test_a_limited_token_gets_a_retry_after_and_others_go_on(gate: Gate, now: list[float]) -> None:
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


def test_a_client_waits_as_long_as_retry_after_says(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("api.connection.sleep", slept.append)
    problem = {"content-type": "application/problem+json"}
    answers = [
        httpx.Response(429, headers={"retry-after": "2", **problem}, json={"status": 429}),
        httpx.Response(200, json={}),
        httpx.Response(429, headers={"retry-after": "3600", **problem}, json={"status": 429, "detail": "too many"}),
    ]
    asking = ServerConnection("http://127.0.0.1:1")
    asking._http = httpx.Client(transport=httpx.MockTransport(lambda _: answers.pop(0)))
    assert asking.send("POST", "/v1/sweeps").status_code == 200
    assert slept == [2]
    with pytest.raises(ApiError, match="too many"):
        asking.send("GET", "/v1/sweeps")
    assert slept == [2]
    again = {"headers": {"retry-after": "3", **problem}, "json": {"status": 429, "detail": "too many"}}
    answers += [httpx.Response(429, **again), httpx.Response(200, content=b"all of it")]
    with asking.streamed("/v1/audit", 60.0) as pieces:
        assert b"".join(pieces) == b"all of it"
    assert slept == [2, 3]
    asking.close()


AWAY = "http://127.0.0.1:9"
FAULTS = {
    "all_proxy": ("socks5h://me:secret@127.0.0.1:9", "all_proxy names a SOCKS proxy, and only"),
    "HTTPS_PROXY": ("socks4://127.0.0.1:9", "HTTPS_PROXY names a SOCKS proxy, and only"),
    "http_proxy": ("ftp://127.0.0.1:9", "http_proxy names a proxy of the kind ftp://; expected http:// or https://"),
    "HTTP_PROXY": ("http://[::1", "HTTP_PROXY is no address of a proxy; expected one such as http://"),
    "ALL_PROXY": ("127.0.0.1:port", "ALL_PROXY is no address of a proxy; expected one such as http://"),
    "no_proxy": ("a.org, [::1]", "no_proxy has '[::1]'; write an IPv6 address without brackets: ::1"),
}


@pytest.fixture(autouse=True)
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_what_httpx_cannot_use_is_one_sentence_with_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, (value, said) in FAULTS.items():
        with monkeypatch.context() as within:
            within.setenv(name, value)
            with pytest.raises(Unreachable) as caught:
                Client("http://sweeps.example.org", "a" * 16)
            assert said in str(caught.value)
            assert "secret" not in str(caught.value)
            Client("http://127.0.0.1:9", "a" * 16).close()  # between us and our own machine there is no proxy


def test_what_httpx_can_use_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("http://proxy.example.org:3128", "https://me:word@proxy.example.org", "proxy:3128", "[::1]:3128"):
        monkeypatch.setenv("HTTPS_PROXY", value)
        monkeypatch.setenv("no_proxy", "::1, localhost,10.0.0.0/8,.example.com,*.org")
        assert proxy_fault() is None
        httpx.Client().close()


def test_the_error_of_a_failed_proxy_names_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", AWAY)
    with (
        pytest.raises(Unreachable, match="asked through the proxy that HTTP_PROXY names"),
        Client("http://sweeps.example.org", "a" * 16) as client,
    ):
        client.sweep(1)


def test_the_proxy_is_that_of_the_scheme_else_of_all_and_none_of_excepted_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert proxy_variable("http://a.org") is None
    monkeypatch.setenv("ALL_PROXY", AWAY)
    monkeypatch.setenv("http_proxy", AWAY)
    monkeypatch.setenv("no_proxy", "b.org")
    found = {url: proxy_variable(url) for url in ("http://a.org", "https://a.org", "https://b.org", "http://[::1]:8")}
    assert [*found.values()] == ["http_proxy", "ALL_PROXY", None, None]


def test_logins_and_webhooks_name_it_too(monkeypatch: pytest.MonkeyPatch, service: Service, settings: Settings) -> None:
    more = {"oidc_issuer": "https://login.example.org", "oidc_client_id": "metricsweep"}
    browser = TestClient(create_app(service, settings.model_copy(update=more)), base_url=URL)
    webhook = Webhook("https://hooks.example.org", lambda: (b"k" * 32,))
    for value, message in (
        ("socks5://127.0.0.1:9", "https_proxy names a SOCKS proxy"),
        (AWAY, "that https_proxy names"),
    ):
        monkeypatch.setenv("https_proxy", value)
        assert message in webhook.post("msg_1", b"{}").message
        login = browser.get("/login/oidc")
        assert (login.status_code, message in login.text) == (503, True)
