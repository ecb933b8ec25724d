"""Answers that are compressed, and those that are not."""

import gzip

from fastapi.testclient import TestClient

from tests.api.played import SPEC, YAML


def test_texts_are_compressed_and_secrets_are_not(http: TestClient) -> None:
    http.post("/v1/sweeps", content=SPEC, headers=YAML)
    asked = {"Accept-Encoding": "gzip"}
    for path in ("/sweeps/1", "/v1/catalog", "/static/style.css", "/v1/sweeps/1"):
        assert http.get(path, headers=asked).headers["Content-Encoding"] == "gzip", path
        assert "Content-Encoding" not in http.get(path, headers={"Accept-Encoding": "identity"}).headers
    with http.stream("GET", "/sweeps/1", headers=asked | {"Accept": "text/html"}) as answer:
        packed = b"".join(answer.iter_raw())
    assert b"<!doctype html>" in gzip.decompress(packed)
    assert len(packed) < 0.4 * len(gzip.decompress(packed))
    for method, path in (("POST", "/v1/login-links"), ("GET", f"/v1/identity?nonce={'0' * 32}")):
        secret = http.request(method, path, headers=asked)
        assert "Content-Encoding" not in secret.headers, "it is short, and nothing of the client's choice is next to it"
