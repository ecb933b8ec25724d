"""The OpenAPI document: valid, with examples that hold, and true of the application."""

import json
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import TypeAdapter
from schemathesis.engine import events, from_schema

from api import examples
from api.routes import cluster, listings, login, tables
from api.routes import events as events_route
from api.routes import tables as figures_route
from orchestrator.settings import Settings
from orchestrator.views import evidence, pages, sweeps, trials
from orchestrator.views.operations import ClusterView, CollectionView, DataFinding, Readiness, StorageView
from orchestrator.views.tables import CellView
from orchestrator.views.trials import ListedColumn, Listing
from tests.api.conftest import BEARER
from tests.api.played import Conductor

SPEC_PATHS = ("/v1/sweeps", "/v1/sweeps/{id}/extend")
FILTERED_PATHS = ("/v1/trials", "/v1/plots/{plot}", "/v1/sweeps/{id}/figure")
HOST = {"Host": "127.0.0.1:8787"} | BEARER


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Without limits of rate, else a 429 hides what a slower machine would see."""
    return settings.model_copy(update={"read_rate": 0.0, "write_rate": 0.0, "open_rate": 0.0})


@pytest.fixture
def document(http: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = http.get("/v1/openapi.json").json()
    return found


def test_every_route_is_described(document: dict[str, Any]) -> None:
    operations = {(method, path): one for path, item in document["paths"].items() for method, one in item.items()}
    assert len(operations) > 80
    for where, operation in operations.items():
        assert operation["summary"], where
        assert operation["description"], where
        for parameter in operation.get("parameters", []):
            said = parameter.get("description") or parameter["schema"].get("description")
            assert said or parameter["name"] == "if-none-match", (where, parameter["name"])
        for status, response in operation["responses"].items():
            if status >= "400":
                assert list(response["content"]) == ["application/problem+json"], (where, status)


EXAMPLES = (
    (sweeps.Submitted, examples.SUBMITTED), (sweeps.Preview, examples.PREVIEW),
    (pages.Page[sweeps.SweepSummary], examples.SWEEPS), (sweeps.SweepView, examples.SWEEP),
    (sweeps.RequestView, examples.REQUEST), (sweeps.RequestView, examples.DELETION),
    (pages.Page[sweeps.RequestView], examples.REQUESTS), (list[sweeps.GridCell], examples.GRID),
    (CellView, examples.CELL), (pages.Page[trials.TrialSummary], examples.TRIALS),
    (trials.TrialView, examples.TRIAL), (list[trials.Curve], examples.CURVES), (trials.LogView, examples.LOG),
    (trials.ClassScores, examples.CLASSES),
    (Readiness, cluster.READINESS), (login.LoginLink, login.LOGIN_LINK), (login.Identified, login.IDENTIFIED),
    (list[pages.FigureView], figures_route.FIGURES), (list[pages.FigureFile], figures_route.FIGURE_FILES),
    (list[evidence.PublishedSummary], tables.PUBLISHED), (evidence.PublishedView, tables.PUBLISHED_TABLE),
    (list[DataFinding], cluster.DATA), (ClusterView, cluster.EXAMPLE), (StorageView, cluster.SIZES),
    (CollectionView, cluster.COLLECTION), (Listing, listings.LISTING), (list[ListedColumn], listings.COLUMNS),
)  # fmt: skip


def test_the_examples_hold() -> None:
    for shape, example in EXAMPLES:
        read = TypeAdapter(shape)
        assert read.dump_python(read.validate_python(example), mode="json") == example, shape


def test_every_edge_of_every_operation_is_as_described(
    app: FastAPI, http: TestClient, conductor: Conductor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right and wrong values of each parameter, other methods, no token: with every check that schemathesis has."""
    brief = events_route.Listener("a client", lambda: False)
    monkeypatch.setattr(events_route, "_listener", lambda *_: brief)  # streams say where they begin, and end
    conductor.submit(http)
    conductor.finish()
    described = schemathesis.openapi.from_asgi("/v1/openapi.json", app, headers=HOST)
    described.config.update(headers=HOST, continue_on_failure=True)
    described.config.phases.update(phases=["examples", "coverage"])
    described.config.generation.update(deterministic=True, database="none", max_examples=5)
    found: set[tuple[str, str, str, str]] = set()
    asked = 0
    for event in from_schema(described).execute():
        assert not isinstance(event, events.NonFatalError | events.FatalError), event
        if isinstance(event, events.ScenarioFinished):
            asked += len(event.recorder.interactions)
            for check in (one for several in event.recorder.checks.values() for one in several):
                if check.failure_info is not None:
                    failure = check.failure_info.failure
                    found.add(
                        (event.phase.value, event.recorder.label, check.name, f"{failure.title}: {failure.message}")
                    )
    # A spec is checked beyond what its schema says; the examples of the document must be taken all the same.
    spec_checked = {("coverage", f"POST {path}", "positive_data_acceptance") for path in SPEC_PATHS}
    # Which columns there are to find trials by is known by the database.
    filtered = {
        (phase, f"GET {path}", "positive_data_acceptance")
        for phase in ("examples", "coverage")
        for path in FILTERED_PATHS
    }
    assert [one for one in sorted(found) if one[:3] not in spec_checked | filtered] == []
    assert asked > 1_000


def test_the_answer_to_a_wrong_method_lists_the_right_methods(http: TestClient, document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        asked = path.replace("{id}", "1").replace("{name}", "main").replace("{index}", "0").replace("{file}", "x.npz")
        answer = http.request("PATCH" if "put" in item else "PUT", asked)
        assert answer.status_code == 405, path
        assert answer.headers["allow"] == ", ".join(sorted(method.upper() for method in item)), path


def test_the_examples_of_bodies_are_taken(http: TestClient, document: dict[str, Any]) -> None:
    for path in SPEC_PATHS:
        for kind, content in document["paths"][path]["post"]["requestBody"]["content"].items():
            body = json.dumps(content["example"])  # which is YAML too
            answer = http.post("/v1/sweeps?dry_run=true", content=body, headers={"Content-Type": kind})
            assert answer.status_code == 200, (path, kind, answer.text)
