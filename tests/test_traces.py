"""Traces against a real receiver of OTLP over HTTP: API, conductor and slot, and nobody where none is named."""

import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from fastapi.testclient import TestClient
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pydantic import ValidationError

from api.main import create_app
from orchestrator.host import tracing
from orchestrator.host.tracing import begin_tracing, end_tracing
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import MetricsweepError
from tests.inline_conductor import conduct
from tests.ports import Quiet, free_port, running
from tests.test_conductor import spec

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Collector:
    """What a collector received."""

    def __init__(self) -> None:
        self.url, self.services, self.spans = "", set[str](), list[Any]()

    def take(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            said = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.services.add(said["service.name"])
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


def facts(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            collector.take(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    with running(server):
        yield collector
        end_tracing()


def test_a_sweep_is_traced_from_its_post_to_its_end(service: Service, settings: Settings, collector: Collector) -> None:
    begin_tracing("test", collector.url)
    client = TestClient(create_app(service, settings), base_url="http://127.0.0.1")
    token = (settings.resolved_home / "api.token").read_text().strip()
    sent = {"Authorization": f"Bearer {token}", "traceparent": PARENT, "Content-Type": "application/yaml"}
    posted = client.post("/v1/sweeps", content=spec(repeat={"seed": [0]}, compare={"loss": ["triplet"]}), headers=sent)
    sweep = posted.json()["id"]
    client.get(f"/v1/sweeps/{sweep}", headers={"Authorization": f"Bearer {token}"})
    client.get("/healthz")
    client.get("/v1/sweeps")
    conduct(settings)
    end_tracing()

    (submitted,) = collector.named("POST /v1/sweeps")
    assert submitted.trace_id.hex() == PARENT.split("-")[1], "part of what the client traces"
    assert submitted.parent_span_id.hex() == PARENT.split("-")[2]
    told = facts(submitted)
    assert (told["http.response.status_code"], told["metricsweep.location"]) == (201, f"/v1/sweeps/{sweep}")
    assert told["metricsweep.request"] == posted.headers["x-request-id"]
    assert facts(collector.named("GET /v1/sweeps/{id}")[0])["metricsweep.sweep"] == sweep
    assert facts(collector.named("GET")[0])["http.response.status_code"] == 401, "refused before it had a route"
    assert not [span for span in collector.spans if "healthz" in span.name]

    assert facts(collector.named("expand")[0])["metricsweep.sweep"] == sweep
    assert {facts(one)["metricsweep.sweep"] for one in collector.named("settle")} == {sweep}
    attempts = {one.span_id: one for one in collector.named("attempt")}
    assert len(attempts) == 2
    for attempt in attempts.values():
        told = facts(attempt)
        assert (told["metricsweep.sweep"], told["metricsweep.outcome"], told["metricsweep.number"]) == (
            sweep, "finished", 1,
        )  # fmt: skip
        within = [one for one in collector.spans if one.parent_span_id == attempt.span_id]
        assert {one.trace_id for one in within} == {attempt.trace_id}
        assert sorted(one.name for one in within) == ["keep", "open", "record finished", "record started", "train"]


def test_error_texts_and_queries_of_pages_are_not_traced(
    service: Service, settings: Settings, collector: Collector
) -> None:
    """A trace holds the kind of an error, not its text, which may hold a password, or the recipe of a statement."""
    begin_tracing("api", collector.url)
    with pytest.raises(RuntimeError), tracing.span("something"):
        raise RuntimeError("p4ssword of the database")
    client = TestClient(create_app(service, settings), base_url="http://127.0.0.1", follow_redirects=False)
    asked = client.get("/trials?where=p4ssword", headers={"Accept": "text/html"})
    end_tracing()
    assert "p4ssword" in asked.headers["location"]
    (failed,) = collector.named("something")
    assert (failed.status.code, failed.status.message) == (2, "RuntimeError")
    assert "p4ssword" not in str(collector.spans)


def test_a_number_that_is_too_long_is_refused_as_without_traces(
    service: Service, settings: Settings, collector: Collector
) -> None:
    begin_tracing("api", collector.url)
    client = TestClient(create_app(service, settings), base_url="http://127.0.0.1")
    token = (settings.resolved_home / "api.token").read_text().strip()
    sent = {"Authorization": f"Bearer {token}", "traceparent": "9" * 5_000, "tracestate": "a=b," * 500}
    for number in ("9" * 5_000, "9" * 30):
        assert client.get(f"/v1/sweeps/{number}", headers=sent).status_code == 422
    end_tracing()
    spans = collector.named("GET /v1/sweeps/{id}")
    assert ["metricsweep.sweep" in facts(span) for span in spans] == [False, False]


def test_without_the_packages_the_service_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MetricsweepError, match=r"METRICSWEEP_TRACES_URL needs `pip install 'metricsweep\[traces\]'`"):
        begin_tracing("api", "http://127.0.0.1:1")


def test_a_collector_that_is_away_keeps_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing, "END_SECONDS", 0.2)
    begin_tracing("api", f"http://127.0.0.1:{free_port()}")
    with tracing.span("something"):
        pass
    end_tracing()  # its own patience is ten seconds
    assert tracing._tracing.tracer is None


def test_an_address_that_is_none_is_refused() -> None:
    for url in ("127.0.0.1:4318", "ftp://collector", "http://ada:secret@collector", "http://:secret@collector",
                "http://"):  # fmt: skip
        with pytest.raises(ValidationError, match=r"such as http://127\.0\.0\.1:4318"):
            Settings(traces_url=url)
