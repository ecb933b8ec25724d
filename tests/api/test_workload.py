"""The number of requests that are worked on at once has a bound, whoever waits for them or has left."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.types import Message

from api.protection.workload import MOST_AT_WORK
from orchestrator.settings import Settings
from tests.api.conftest import TOKEN
from tests.api.played import SPEC, YAML

HOST = [(b"host", b"localhost"), (b"authorization", f"Bearer {TOKEN}".encode())]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A token may send as much as it likes: it is all of them together that are bounded here."""
    return settings.model_copy(update={"read_rate": 0.0, "write_rate": 0.0})


class Sender:
    """One request to an application, and what it was answered."""

    def __init__(self, app: FastAPI, path: str, body: list[bytes] | None = None) -> None:
        self.sent: list[Message] = []
        self._body = body
        headers = HOST + ([(b"content-length", b"100"), (b"content-type", b"application/yaml")] if body else [])
        method = "POST" if body else "GET"
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "headers": headers}
        scope |= {"query_string": b"", "client": None, "scheme": "http", "http_version": "1.1"}
        scope |= {"raw_path": path.encode(), "root_path": "", "server": ("localhost", 80), "state": {}}
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    @property
    def status(self) -> int:
        return next((one["status"] for one in self.sent if one["type"] == "http.response.start"), 0)

    async def _receive(self) -> Message:
        if self._body is None:
            return {"type": "http.request", "body": b"", "more_body": False}
        if self._body:
            return {"type": "http.request", "body": self._body.pop(0), "more_body": True}
        return await asyncio.Future()  # the rest of the body never comes

    async def _send(self, message: Message) -> None:
        self.sent.append(message)


def test_beyond_the_bound_a_request_is_sent_back(app: FastAPI) -> None:
    async def play() -> None:
        begun, go_on = 0, asyncio.Event()

        @app.get("/slow")
        async def slow() -> None:
            nonlocal begun
            begun += 1
            await go_on.wait()

        drips = [Sender(app, "/v1/sweeps", [b"name"]) for _ in range(MOST_AT_WORK)]
        slows = [Sender(app, "/slow") for _ in range(MOST_AT_WORK)]
        while begun < MOST_AT_WORK:
            assert not any(one.task.done() for one in slows)
            await asyncio.sleep(0)
        refused, lives = Sender(app, "/slow"), Sender(app, "/healthz")
        await asyncio.gather(refused.task, lives.task)
        assert (refused.status, lives.status) == (503, 200)
        assert (b"retry-after", b"5") in refused.sent[0]["headers"]
        go_on.set()
        await asyncio.gather(*(one.task for one in slows))
        assert {one.status for one in slows} == {200}
        again = Sender(app, "/slow")
        await again.task
        assert again.status == 200
        for drip in drips:
            assert not drip.sent
            drip.task.cancel()
        await asyncio.gather(*(one.task for one in drips), return_exceptions=True)

    asyncio.run(play())


def test_a_body_that_is_whole_takes_its_turn(http: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert http.post("/v1/sweeps", content=SPEC, headers=YAML).status_code == 201
    monkeypatch.setattr("api.protection.workload.MOST_AT_WORK", 0)
    for answer in (http.post("/v1/sweeps", content=SPEC, headers=YAML), http.post("/login", data={"token": "x"})):
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "5"
    assert http.get("/healthz").status_code == 200
