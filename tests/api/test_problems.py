"""Answers: errors are problem documents that tell nothing of the machine, and texts are compressed."""

import gzip
import logging
import tempfile
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import orchestrator
from api.http.middleware import BODY_BYTES
from api.problems import ProblemDetails, folder_cutter
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import (
    ConflictError,
    InvalidSpecError,
    NotFoundError,
    UnavailableError,
)
from tests.api.conftest import BEARER, HTML, URL
from tests.api.played import SPEC, YAML
from workers.catalog import Problem

_LEVELS = zip("abcdefgh", "bcdefghi", strict=True)
_LINES = (f"{name}: &{name} [{', '.join([f'*{old}'] * 9)}]" for old, name in _LEVELS)
EXPLODING = "\n".join(["a: &a [1]", *_LINES]).encode()


def test_every_error_is_a_problem_document(http: TestClient) -> None:
    for method, path, status in (
        ("GET", "/v1/nothing", 404), ("GET", "/v1", 404), ("GET", "/nothing", 404), ("DELETE", "/v1/sweeps", 405),
        ("PUT", "/healthz", 405), ("GET", "/v1/sweeps/one", 422), ("GET", "/v1/sweeps/0", 422),
        ("GET", f"/v1/sweeps/{2**63}", 422), ("GET", "/v1/sweeps/12", 404), ("GET", "/v1/trials/12", 404),
        ("GET", "/v1/trials/12/logs", 404), ("GET", "/v1/sweeps/12/grid", 404), ("POST", "/v1/sweeps/12/retry", 404),
        ("GET", f"/static/{'x' * 200}", 422), ("POST", "/v1/sweeps", 415),
    ):  # fmt: skip
        answer = http.request(method, path)
        assert answer.status_code == status, path
        assert answer.headers["content-type"] == "application/problem+json"
        problem = ProblemDetails.model_validate(answer.json())
        assert (problem.status, problem.instance) == (status, path)
        assert problem.type.startswith("urn:metricsweep:problem:")
        assert problem.title
        assert problem.detail
        assert bool(problem.problems) == (status == 422)
        assert bool(answer.headers.get("allow")) == (status == 405)


def test_a_browser_gets_a_page(http: TestClient) -> None:
    wrong = {"/nothing<script>": 404, "/?state=nope": 404, "/sweeps/99": 404, "/?cursor=nonsense": 404}
    for path, status in wrong.items():
        answer = http.get(path, headers=HTML)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8"), path
        assert "<script>" not in answer.text
    assert http.get("/v1/nothing", headers=HTML).headers["content-type"].startswith("application/")


def test_an_unknown_error_tells_an_id_and_nothing_else(app: FastAPI, caplog: pytest.LogCaptureFixture) -> None:
    @app.get("/v1/broken")
    def broken() -> None:
        raise RuntimeError("the password is swordfish")

    with TestClient(app, base_url=URL, headers=BEARER) as http, caplog.at_level(logging.ERROR):
        answer = http.get("/v1/broken")
    assert answer.status_code == 500
    assert "swordfish" not in answer.text
    problem = answer.json()
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert problem["request_id"] in caplog.text
    assert "swordfish" in caplog.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_what_is_away_is_a_503_that_says_when_to_come_back(app: FastAPI) -> None:
    @app.get("/v1/away")
    def away() -> None:
        raise UnavailableError("the database does not answer")

    with TestClient(app, base_url=URL, headers=BEARER) as http:
        answer = http.get("/v1/away")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


def test_a_body_over_the_limit_is_refused(http: TestClient) -> None:
    answer = http.post("/v1/sweeps", content=b"#" * (BODY_BYTES + 1), headers=YAML)
    assert answer.status_code == 413
    assert str(BODY_BYTES) in answer.json()["detail"]
    pieces = iter([b"#" * 65_536] * 100)  # of no announced length
    assert http.post("/v1/sweeps", content=pieces, headers=YAML).status_code == 413
    assert http.post("/login", data={"token": "y" * (BODY_BYTES + 1)}).status_code == 413


def test_a_hostile_spec_is_a_problem(http: TestClient, service: Service) -> None:
    for body in (
        b"", b"\xff\xfe", b"just text", b"[1, 2]", b"a: 1\na: 2\n", b"x: .nan\n", b"[" * 1000, EXPLODING,
        SPEC.encode() + b"nonsense: 1\n", b"n: 1" + b"0" * 5000,
    ):  # fmt: skip
        answer = http.post("/v1/sweeps", content=body, headers=YAML)
        assert answer.status_code in (413, 422), body[:20]
        ProblemDetails.model_validate(answer.json())
    assert service.sweeps.page(None, None, None, 1).items == []


def test_a_path_cannot_leave_the_static_folder(http: TestClient, tmp_path: Path) -> None:
    for name in ("..%2f..%2fpyproject.toml", "%2e%2e%2fpages.py", "page.html", "nothing.css", "..\\pages.py"):
        assert http.get(f"/static/{name}").status_code == 404


def test_paths_become_relative(tmp_path: Path) -> None:
    home = tmp_path / "home"
    cut = folder_cutter(Settings(home=home, data=tmp_path / "images", parts=tmp_path / "parts"))
    for said, expected in {
        f"cannot write {home}/storage/a/1/model.pt": "cannot write a/1/model.pt",
        f"'{home}/metricsweep.db' is locked": "'metricsweep.db' is locked",
        f"{tmp_path}/parts/losses/mine.py: no class": "losses/mine.py: no class",
        f"File {Path(orchestrator.__file__).parent}/service/service.py": "File orchestrator/service/service.py",
        f"{tempfile.gettempdir()}/x/y is full": "x/y is full",
        f"no {tmp_path}/images/cub200/train; fetch it": f"no {tmp_path}/images/cub200/train; fetch it",
        "nothing at /v1/sweeps/7": "nothing at /v1/sweeps/7",
    }.items():
        assert cut(said) == expected
    cut = folder_cutter(Settings(home=tmp_path))
    assert cut(f"no {tmp_path}/data/cub200, {tmp_path}/ray.token") == f"no {tmp_path}/data/cub200, ray.token"


def test_no_problem_names_a_folder(
    app: FastAPI, http: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = f"{settings.resolved_home}/storage/a.pt cannot be read"
    errors = [kind(where) for kind in (NotFoundError, ConflictError, UnavailableError)]
    errors.append(InvalidSpecError([Problem("recipe", where)]))

    @app.get("/broken/{number}")
    def broken(number: int) -> None:
        raise errors[number]

    for number in range(len(errors)):
        for headers in ({}, HTML):
            answer = http.get(f"/broken/{number}", headers=headers)
            assert answer.status_code in {404, 409, 422, 503}
            assert "a.pt cannot be read" in answer.text
            assert str(settings.resolved_home) not in answer.text

    def away() -> None:
        raise UnavailableError(where)

    monkeypatch.setattr(app.state.service.store, "ping", away)
    ready = http.get("/readyz")
    assert (ready.status_code, "a.pt cannot be read" in ready.text) == (503, True)
    assert str(settings.resolved_home) not in ready.text


def test_texts_are_compressed_and_secrets_are_not(http: TestClient) -> None:
    http.post("/v1/sweeps", content=SPEC, headers=YAML)
    asked = {"Accept-Encoding": "gzip"}
    for path in ("/sweeps/1", "/v1/catalog", "/static/style.css", "/v1/sweeps/1"):
        assert http.get(path, headers=asked).headers["Content-Encoding"] == "gzip", path
        assert "Content-Encoding" not in http.get(path, headers={"Accept-Encoding": "identity"}).headers
    with http.stream("GET", "/sweeps/1", headers=asked | HTML) as answer:
        packed = b"".join(answer.iter_raw())
    assert b"<!doctype html>" in gzip.decompress(packed)
    assert len(packed) < 0.4 * len(gzip.decompress(packed))
    for method, path in (("POST", "/v1/login-links"), ("GET", f"/v1/identity?nonce={'0' * 32}")):
        secret = http.request(method, path, headers=asked)
        assert "Content-Encoding" not in secret.headers, "it is short, and nothing of the client's choice is next to it"


def test_vega_comes_from_here_and_is_kept(http: TestClient) -> None:
    answer = http.get("/static/vega.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "max-age=86400" in answer.headers["cache-control"]
    assert len(answer.content) > 100_000
    again = http.get("/static/vega.js", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "immutable" in http.get("/static/vega.js?v=1").headers["cache-control"]
