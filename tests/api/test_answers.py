"""Answers that are compressed, and those that are not."""

import gzip

import pytest
from fastapi.testclient import TestClient

from tests.api.played import SPEC, YAML, Conductor


@pytest.fixture
def running(http: TestClient, conductor: Conductor) -> int:
    sweep = int(http.post("/v1/sweeps", content=SPEC, headers=YAML).json()["id"])
    conductor.begin()
    return sweep


def test_texts_are_compressed_and_secrets_are_not(http: TestClient, running: int) -> None:
    asked = {"Accept-Encoding": "gzip"}
    for path in (f"/sweeps/{running}", "/v1/catalog", "/static/style.css", f"/v1/sweeps/{running}"):
        assert http.get(path, headers=asked).headers["Content-Encoding"] == "gzip", path
        plain = http.get(path, headers={"Accept-Encoding": "identity"})
        assert "Content-Encoding" not in plain.headers
    with http.stream("GET", f"/sweeps/{running}", headers=asked | {"Accept": "text/html"}) as answer:
        packed = b"".join(answer.iter_raw())
    assert b"<!doctype html>" in gzip.decompress(packed)
    assert len(packed) < 0.4 * len(gzip.decompress(packed))
    for secret in (
        http.post("/v1/login-links", headers=asked),
        http.get("/v1/identity?nonce=" + 32 * "0", headers=asked),
    ):
        assert "Content-Encoding" not in secret.headers, "it is short, and nothing of the client's choice is beside it"
