"""What of MLflow's interface passes: the routes of the MLflow that is installed, each put to the rules."""

import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import unquote

import pytest

from api import mlflow
from api.mlflow import _RULES, READ_BY_QUERIES, fields_of, is_kept_here, is_plain, is_upload, rule_for

DANGEROUS = (
    "webhooks", "gateway/", "/jobs", "assistant/", "scorer", "traces", "prompt", "presigned", "/mpu/", "demo/", "mcp",
    "upload-artifact", "get-trace-artifact", "genai", "workspaces", "issues", "review-queues", "datasets/",
    "label-schemas", "model-versions/create", "model-versions/get", "registered-models/create",
    "registered-models/alias", "/build/",
)  # fmt: skip


@cache
def routes() -> frozenset[tuple[str, str]]:
    """Method and path of everything that MLflow answers, with a name in the place of each parameter."""
    return frozenset(_routes())


def _routes() -> Iterator[tuple[str, str]]:
    from mlflow.server import app
    from mlflow.server.fastapi_app import (
        artifact_router,
        assistant_router,
        gateway_router,
        job_api_router,
        mcp_server_router,
        otel_router,
        server_info_router,
    )

    for rule in app.url_map.iter_rules():
        for method in rule.methods - {"OPTIONS"}:
            yield method, re.sub(r"<(path:)?(\w+)>", r"\2", rule.rule)
    native = (artifact_router, assistant_router, gateway_router, job_api_router, otel_router, server_info_router)
    for prefix, router in [*(("", one) for one in native), ("/api/3.0/mlflow/mcp-servers", mcp_server_router)]:
        for route in router.routes:
            for method in getattr(route, "methods", None) or ():
                yield method, prefix + re.sub(r"\{(\w+)(:path)?\}", r"\1", route.path)


def test_mlflow_has_more_routes_than_pass() -> None:
    passing = {route for route in routes() if rule_for(*route)}
    assert len(routes()) > 400
    assert len(passing) < 140  # with HEAD, and both of its prefixes
    assert {rule_for(*route) for route in routes()} >= {rule for rule in _RULES if "users" not in rule.form}


def test_what_fetches_runs_or_reads_does_not_pass() -> None:
    for word in DANGEROUS:
        named = {route for route in routes() if word in route[1]}
        assert named, f"MLflow has {word}"
        passing = {route for route in named if (rule := rule_for(*route)) and rule.treatment.name != "ANSWERED"}
        assert passing == set(), word


def test_a_path_that_could_mean_another_does_not_pass() -> None:
    changes = ("/{0}", "{0}/..", "/x/..{0}", "{0}/%2e%2e/x", "{0}/%252e%252e/x", "{0}/./x", "{0}\\..\\x", "{0}/\x00",
               "/{0}?x", "{0}%2F..%2F..")  # fmt: skip
    for end in ("mlflow/experiments/get", "mlflow-artifacts/artifacts/1/a/b.txt"):
        path = f"/api/2.0/{end}"
        assert rule_for("GET", path)
        assert [one for one in changes if rule_for("GET", one.format(path)) is not None] == []


def test_a_path_is_decoded_once_and_deeper_nesting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = list[int]()

    def counted(text: str) -> str:
        lengths.append(len(text))
        return unquote(text)

    monkeypatch.setattr(mlflow, "unquote", counted)
    nested = f"/get-artifact/%{'25' * 7_000}"
    assert rule_for("GET", nested) is None
    assert not is_upload("PUT", f"/mlflow/api/2.0/mlflow-artifacts/artifacts/1/%{'25' * 7_000}")
    assert sum(lengths) < 5 * len(nested)


def test_a_long_location_is_judged_in_one_pass() -> None:
    assert is_kept_here(f"mlflow-artifacts:/{'a/' * 1_000}")
    assert not is_kept_here(f"mlflow-artifacts:/{'a' * 1_000}!")


def test_names_of_files_pass() -> None:
    for name in ("a b.json", "größe.csv", "50%.txt", "50%25.txt", "a..b", "...", "x@y=z+1,2;3"):
        assert is_plain(f"/1/{name}"), name
        assert is_upload("PUT", f"/mlflow/api/2.0/mlflow-artifacts/artifacts/1/{name}")
    assert not is_upload("POST", "/mlflow/api/2.0/mlflow/runs/log-batch")
    assert not is_upload("PUT", "/api/2.0/mlflow-artifacts/artifacts/1/elsewhere")


def test_the_fields_of_a_query_are_found() -> None:
    hidden = 'query A { x: mlflowListArtifacts(input: {runId: "1"}) { apiError { code } } ...on Query{mlflowGetRun} }'
    assert fields_of(hidden) == {"mlflowListArtifacts", "mlflowGetRun"}
    assert not fields_of(hidden) <= READ_BY_QUERIES
    assert fields_of("{é,mlflowListArtifacts}") == {"mlflowListArtifacts"}
