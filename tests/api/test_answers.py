"""Answers that are shared, tagged and compressed, and those that are not."""

import gzip
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from dashboards import pages
from orchestrator.service.service import Service
from tests.api.conftest import BEARER, URL
from tests.api.played import SPEC, YAML, Conductor

PAGE = {"Accept": "text/html"}
SECONDS = ({}, {"Cache-Control": "max-age=5"})
SHARED = PAGE | {"Cache-Control": "max-age=5"}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sweeps whose page was made."""
    sweeps: list[int] = []
    make = pages.sweep_page

    def counted(sweep: Any, *given: Any, **more: Any) -> str:
        sweeps.append(sweep.id)
        return make(sweep, *given, **more)

    monkeypatch.setattr(pages, "sweep_page", counted)
    return sweeps


@pytest.fixture
def running(http: TestClient, conductor: Conductor) -> int:
    sweep = int(http.post("/v1/sweeps", content=SPEC, headers=YAML).json()["id"])
    conductor.begin()
    return sweep


def test_many_who_ask_at_once_get_one_page(url: str, running: int, made: list[int]) -> None:
    def look(_: int) -> httpx.Response:
        return httpx.get(f"{url}/sweeps/{running}", headers=BEARER | SHARED, trust_env=False, timeout=60)

    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(look, range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert made == [running]
    assert "Content-Security-Policy" in answers[-1].headers
    assert len({answer.headers["X-Request-ID"] for answer in answers}) == 20


def test_what_is_unchanged_is_not_sent_again(http: TestClient, running: int, made: list[int]) -> None:
    first = http.get(f"/v1/sweeps/{running}", headers={"Cache-Control": "max-age=5"})
    tag = first.headers["ETag"]
    again = http.get(f"/v1/sweeps/{running}", headers={"Cache-Control": "max-age=5", "If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    other = http.get(f"/v1/sweeps/{running}", headers={"Cache-Control": "max-age=5", "If-None-Match": '"other"'})
    assert other.json() == first.json()


def test_who_asks_for_his_own_gets_it_and_so_does_who_heard_of_a_change(
    http: TestClient, running: int, made: list[int], app: FastAPI
) -> None:
    page = f"/sweeps/{running}"
    http.get(page, headers=SHARED)
    http.get(page, headers=SHARED)
    assert len(made) == 1
    http.get(page, headers=PAGE)
    http.get(page, headers=PAGE | {"Cache-Control": "no-cache"})
    http.get(page, headers=PAGE | {"Cache-Control": "max-age=0"})
    assert len(made) == 4
    app.state.feed.position = 7
    http.get(page, headers=SHARED | {"Metricsweep-Change": "7"})
    http.get(page, headers=SHARED | {"Metricsweep-Change": "7"})
    assert len(made) == 5
    for nonsense in ("-1", "seven", "9" * 40):
        http.get(page, headers=SHARED | {"Metricsweep-Change": nonsense})
    assert len(made) == 5


def test_strangers_share_nothing(http: TestClient, stranger: TestClient, running: int) -> None:
    assert http.get(f"/sweeps/{running}", headers=SHARED).status_code == 200
    assert stranger.get(f"/v1/sweeps/{running}", headers={"Cache-Control": "max-age=5"}).status_code == 401
    assert stranger.get(f"/sweeps/{running}", headers=SHARED).status_code == 303


def test_errors_pictures_and_great_answers_are_not_kept(http: TestClient, running: int) -> None:
    missing = http.get("/v1/sweeps/99", headers={"Cache-Control": "max-age=5"})
    assert (missing.status_code, "etag" in missing.headers) == (404, False)
    picture = [http.get(f"/v1/sweeps/{running}/tables/main?format=png", headers=kept).headers for kept in SECONDS]
    assert picture[0]["content-type"] == "image/png"
    assert picture[0]["etag"] == picture[1]["etag"]  # its route's own


def test_what_failed_is_asked_anew(
    app: FastAPI, running: int, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, failures = pages.sweep_page, [ValueError("once")]

    def failing(*given: Any, **more: Any) -> str:
        if failures:
            raise failures.pop()
        return make(*given, **more)

    monkeypatch.setattr(pages, "sweep_page", failing)
    with TestClient(app, base_url=URL, headers=BEARER, raise_server_exceptions=False) as http:
        answers = [http.get(f"/sweeps/{running}", headers=SHARED).status_code for _ in range(3)]
    assert (answers, made) == ([500, 200, 200], [running])


def test_texts_are_compressed_and_secrets_are_not(http: TestClient, running: int, service: Service) -> None:
    asked = {"Accept-Encoding": "gzip"}
    for path in (f"/sweeps/{running}", "/v1/catalog", "/static/style.css", f"/v1/sweeps/{running}"):
        assert http.get(path, headers=asked).headers["Content-Encoding"] == "gzip", path
        plain = http.get(path, headers={"Accept-Encoding": "identity"})
        assert "Content-Encoding" not in plain.headers
    with http.stream("GET", f"/sweeps/{running}", headers=asked | SHARED) as answer:
        packed = b"".join(answer.iter_raw())
    assert b"<!doctype html>" in gzip.decompress(packed)
    assert len(packed) < 0.4 * len(gzip.decompress(packed))
    for secret in (
        http.post("/v1/login-links", headers=asked),
        http.get("/v1/identity?nonce=" + 32 * "0", headers=asked),
    ):
        assert "Content-Encoding" not in secret.headers, "it is short, and nothing of the client's choice is beside it"
