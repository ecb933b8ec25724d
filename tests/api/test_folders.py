"""No answer of the server says where on its machine something lies, but for data that are missing."""

import tempfile
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import orchestrator
from api.problems import folder_cutter
from orchestrator.settings import Settings
from orchestrator.views.errors import ConflictError, InvalidSpecError, NotFoundError, UnavailableError
from workers.catalog import Problem

HTML = {"Accept": "text/html"}


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


def test_no_problem_names_a_folder(app: FastAPI, http: TestClient, settings: Settings) -> None:
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


def test_readiness_names_none(
    app: FastAPI, http: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise UnavailableError(f"the database cannot be used: {settings.resolved_home}/metricsweep.db")

    monkeypatch.setattr(app.state.service._store, "ping", away)
    answer = http.get("/readyz")
    assert answer.status_code == 503
    assert "metricsweep.db" in answer.text
    assert str(settings.resolved_home) not in answer.text
