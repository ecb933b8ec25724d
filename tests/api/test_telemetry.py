"""What is measured: who may scrape it, what it says of a sweep, what scraping costs, and the alerts over it."""

import json
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import UnavailableError
from orchestrator.views.operations import GpuUsage, Node, ProcessUsage, SlotReport
from tests.api.played import SPEC, YAML, Conductor

GRAFANA = Path(__file__).parents[2] / "dashboards" / "grafana"
RULES = GRAFANA / "prometheus" / "alerts.yml"
DASHBOARDS = sorted((GRAFANA / "dashboards").glob("*.json"))
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is in Debian's package prometheus")
GIB = 2**30

Sample = tuple[str, frozenset[tuple[str, str]]]


def scraped(http: TestClient) -> dict[Sample, float]:
    """Every sample by its name and its labels."""
    families = text_string_to_metric_families(http.get("/metrics").text)
    return {(sample.name, frozenset(sample.labels.items())): sample.value for one in families for sample in one.samples}


def sample(name: str, **labels: str) -> Sample:
    return f"metricsweep_{name}", frozenset(labels.items())


@pytest.fixture
def busy(http: TestClient, conductor: Conductor) -> TestClient:
    """Four trials: one finished, one failed, one trains on a slot with a GPU, one waits. A node of 4 CPUs."""
    conductor.submit(http)
    conductor.finish()
    conductor.fail()
    order = conductor.start()
    conductor.writer.capacity.note_nodes([Node("n" * 20, "lab", {"CPU": 4.0, "GPU": 1.0, "memory": 8.0 * GIB})])
    gpu = GpuUsage(index=0, name="H100", memory_bytes=80 * GIB, memory_used_bytes=20 * GIB, busy=0.75)
    usage = ProcessUsage(
        memory_bytes=3 * GIB, cpus=0.9, machine_memory_bytes=8 * GIB, machine_memory_free_bytes=GIB, machine_cpus=4,
        gpus=[gpu],
    )  # fmt: skip
    name = f"slot:1:1:0:0a1b2c3d:{'n' * 12}:"
    trains = SlotReport(name, "n" * 12, "lab", {"CPU": 1.0, "GPU": 1.0}, order.attempt, usage, lag=2.5)
    idle = SlotReport("slot:1:0:0:ffffffff:n:", "n" * 12, "lab", {"CPU": 1.0})
    conductor.writer.capacity.note_slots([trains, idle])
    return http


def test_scraping_needs_the_token(stranger: TestClient, http: TestClient) -> None:
    assert stranger.get("/metrics").status_code == 401
    answer = http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")


def test_it_says_what_a_sweep_does(busy: TestClient) -> None:
    found = scraped(busy)
    expected = {
        sample("database_up"): 1, sample("sweeps", state="running"): 1, sample("trials", state="finished"): 1,
        sample("trials", state="failed"): 1, sample("trials", state="running"): 1, sample("trials", state="waiting"): 1,
        sample("queue_trials", reason="slot"): 1, sample("queue_trials", reason="data"): 0,
        sample("attempts", outcome="finished", reason="none"): 1,
        sample("attempts", outcome="failed", reason="recipe"): 1, sample("slots", state="training"): 1,
        sample("slots", state="idle"): 1, sample("cluster_cpus"): 4, sample("training_cpus"): 1,
        sample("slot_utilisation_ratio", resource="cpu"): 0.25, sample("slot_utilisation_ratio", resource="gpu"): 1,
        sample("slot_memory_bytes", host="lab", slot="0a1b2c3d"): 3 * GIB,
        sample("slot_gpu_memory_used_bytes", host="lab", slot="0a1b2c3d", gpu="0"): 20 * GIB,
        sample("slot_gpu_busy_ratio", host="lab", slot="0a1b2c3d", gpu="0"): 0.75, sample("report_lag_seconds"): 2.5,
    }  # fmt: skip
    assert {key: found[key] for key in expected} == expected
    assert found[sample("mlflow_backlog_runs")] > 0
    assert found[sample("mlflow_lag_seconds")] >= 0
    assert 0 <= found[sample("conductor_heartbeat_age_seconds")] < 3600
    assert 0 < found[sample("disk_free_bytes", place="home")] <= found[sample("disk_size_bytes", place="home")]


def test_what_waits_says_for_what(
    http: TestClient, conductor: Conductor, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    http.post("/v1/sweeps", content=SPEC, headers=YAML)
    assert service.store.gauges.read(None).waiting == {"expansion": 4}
    conductor.begin()
    conductor.start()
    assert service.store.gauges.read(None).waiting == {"slot": 3}
    assert service.store.gauges.read(1).waiting == {"quota": 3}
    conductor.writer.capacity.note_nodes([Node("small", "lab", {"CPU": 0.5})])
    assert service.store.gauges.read(None).waiting == {"resources": 3}
    conductor.writer.sweeps.pause(1)
    assert service.store.gauges.read(None).waiting == {"paused": 3}


def test_requests_are_counted_by_route(http: TestClient) -> None:
    for path in ("/v1/sweeps/1", "/v1/sweeps/2", "/no/such/place", "/v1/sweeps?name=secret"):
        http.get(path)
    stranger = http.get("/v1/sweeps/77", headers={"Authorization": "Bearer wrong-wrong-wrong-wrong"})
    assert stranger.status_code == 401
    text = http.get("/metrics").text
    routes = set(re.findall(r'metricsweep_request_duration_seconds_count\{.*?route="([^"]*)"', text))
    assert routes == {"/v1/sweeps/{id}", "/v1/sweeps", "none"}
    count = sample("request_duration_seconds_count", route="/v1/sweeps/{id}", method="GET", status="404")
    assert scraped(http)[count] == 2
    for part in ("secret", "no/such", "/77"):
        assert part not in text


def test_scrapes_do_not_load_the_server(busy: TestClient, service: Service, statements: list[str]) -> None:
    """Requests at the same time share one read of the database; readiness needs no token."""
    for remembered in (service.operations._gauges, service.operations._ready):
        remembered._now = lambda: 0.0  # nothing grows old, however slow the machine is
    asked = ("/metrics", "/readyz")
    for path in asked:
        before = len(statements)
        busy.get(path)
        assert len(statements) > before, path
    reads = len(statements)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(busy.get, asked * 24))
    assert len(statements) == reads


def test_without_a_database_others_stand(http: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(quota: int | None) -> None:
        raise UnavailableError("the database cannot be used: no such file")

    monkeypatch.setattr(service.store.gauges, "read", away)
    http.get("/healthz")
    found = scraped(http)
    assert found[sample("database_up")] == 0
    assert sample("trials", state="running") not in found
    assert sample("disk_free_bytes", place="home") in found
    assert found[sample("request_duration_seconds_count", route="/healthz", method="GET", status="200")] == 1


@needs_promtool
def test_the_names_are_good_by_promtool(busy: TestClient) -> None:
    said = promtool("check", "metrics", given=busy.get("/metrics").text)
    assert said == ""


@needs_promtool
def test_the_rules_are_good_and_raise_what_they_should() -> None:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(RULES))
    test = RULES.with_suffix(".test.yml")
    assert "SUCCESS" in promtool("test", "rules", str(test))
    raised = re.findall(r"alertname: (\w+)", test.read_text(encoding="utf-8"))
    assert {one["alert"] for one in rules} == set(raised), "each has a test"
    promtool("check", "config", "--syntax-only", str(RULES.with_name("prometheus.yml")))


def promtool(*words: str, given: str | None = None) -> str:
    done = subprocess.run([str(PROMTOOL), *words], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def expressions() -> list[str]:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    found = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    for file in DASHBOARDS:
        panels = json.loads(file.read_text(encoding="utf-8"))["panels"]
        found += [target["expr"] for panel in panels for target in panel["targets"]]
    return found


def test_every_expression_names_what_is_exported(busy: TestClient) -> None:
    """With every label that it asks for, and every value of one."""
    samples = scraped(busy)
    names = {name for name, _ in samples} | {"up", *re.findall(r"^# TYPE (\w+) ", busy.get("/metrics").text, re.M)}
    labels: dict[str, dict[str, set[str]]] = {}
    for name, pairs in samples:
        for label, value in pairs:
            labels.setdefault(name, {}).setdefault(label, set()).add(value)
    assert len(expressions()) > 30
    for expression in expressions():
        for name, chosen in re.findall(r"\b((?:metricsweep|process)_\w+|up)(?:\{([^}]*)\})?(?=[\s\[)/]|$)", expression):
            assert name in names, expression
            for label, wanted in re.findall(r'(\w+)=~?"([^"]*)"', chosen):
                if label in ("job", "status", "outcome"):  # Prometheus' own; and what has not happened here
                    continue
                assert set(wanted.split("|")) <= labels[name][label], expression
    exported = {name for name in names if name.startswith("metricsweep_")}
    used = set(re.findall(r"metricsweep_\w+", " ".join(expressions())))
    for name in exported:
        base = re.sub(r"_(bucket|count|sum|created)$", "", name)
        assert name in used or any(one.startswith(base) for one in used) or name[12:] in UNSHOWN, name


UNSHOWN = {"quota", "quota_used", "collection_age_seconds", "collection_duration_seconds", "training_cpus",
           "training_gpus", "training_memory_bytes", "cluster_gpus", "cluster_memory_bytes"}  # fmt: skip
"""What no panel draws and no rule asks: ratios of it are drawn."""


def test_gauges_of_the_database_are_never_summed_over_processes() -> None:
    """Each process of the API exports the same gauges: a sum would count each trial once per process."""
    for expression in expressions():
        bare = re.sub(r"(max|min)( by \([^)]*\))? ?\((metricsweep_\w+[^()]*|[^()]*\([^()]*\)[^()]*)\)", "", expression)
        summed = [name for name in re.findall(r"metricsweep_\w+", bare) if "request_duration" not in name]
        assert summed == [], expression


def test_panels_ask_the_data_source_that_is_provisioned() -> None:
    provisioned = yaml.safe_load((GRAFANA / "provisioning" / "datasources" / "prometheus.yml").read_text())
    (uid,) = (source["uid"] for source in provisioned["datasources"])
    for file in DASHBOARDS:
        panels = json.loads(file.read_text())["panels"]
        assert {panel["datasource"]["uid"] for panel in panels} == {uid}, file
        assert len({panel["id"] for panel in panels}) == len(panels), file


def checks(http: TestClient) -> dict[str, dict[str, Any]]:
    answer = http.get("/readyz")
    assert answer.status_code == (200 if answer.json()["ok"] else 503)
    return {check["name"]: check for check in answer.json()["checks"]}


def wrong(http: TestClient) -> dict[str, str]:
    return {name: check["detail"] for name, check in checks(http).items() if not check["ok"]}


def test_readiness_checks_everything_that_is_needed(http: TestClient, conductor: Conductor) -> None:
    names = ["database", "migrations", "conductor", "engine", "mlflow", "webhook", "disk", "storage"]
    assert list(checks(http)) == names
    assert wrong(http) == {}


def test_slots_that_join_by_files_are_missed_by_nobody_while_nothing_trains(
    conductor: Conductor, settings: Settings
) -> None:
    def told() -> tuple[bool, str]:
        service = Service.open(settings.model_copy(update={"engine": "files"}))
        (engine,) = (check for check in service.operations.ready().checks if check.name == "engine")
        service.close()
        return engine.ok, engine.detail

    conductor.writer.capacity.note_nodes([Node("n", "lab", {"CPU": 4.0})])
    assert told() == (True, "1 slot has joined")
    conductor.writer.capacity.note_nodes([])
    assert told() == (True, "0 slots have joined")


def test_what_is_wrong_is_named(http: TestClient, conductor: Conductor, settings: Settings) -> None:
    """Four checks fail at once, and each is named."""
    (settings.resolved_home / "storage").write_text("a file")
    conductor.writer.capacity.note_nodes([Node("n", "lab", {"CPU": 4.0})])
    conductor.writer.capacity.note_nodes([])
    with conductor.store.database.writing() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0003'"))
    conductor.writer.lease.release()
    found = wrong(http)
    for name, said in {
        "storage": "its folder is a file", "engine": "no node of the cluster answers",
        "migrations": "its schema is version 0003, this release's is 0",
        "conductor": "none holds the lease; start one",
    }.items():  # fmt: skip
        assert said in found.pop(name)
    assert found == {}


def test_a_full_disk_is_named(http: TestClient, conductor: Conductor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.host.disk.LEAST_FREE", 2**60)
    monkeypatch.setattr("orchestrator.host.disk.SMALL", 1)
    place = r"[\d.]+ GiB free, of which [\d.]+ GiB are needed"
    expected = rf"nothing new is begun, .* \(home: {place}, storage: {place}\); it goes on when there is room"
    assert re.fullmatch(expected, wrong(http)["disk"])


def test_a_damaged_page_of_the_database_is_named_without_sql(
    http: TestClient, conductor: Conductor, settings: Settings
) -> None:
    file = settings.resolved_home / "metricsweep.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'candidate'").fetchone()
    with file.open("r+b") as pages:
        pages.seek((page - 1) * size)
        pages.write(b"\xa5" * size)
    deadline = time.monotonic() + 60
    while "database" not in (found := wrong(http)):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert found["database"] == "the database file is damaged (table candidate); restore a backup"


def test_an_mlflow_that_refuses_is_named(tmp_path: Path, migrated: Callable[[Path], Path]) -> None:
    settings = Settings(home=tmp_path / "home", mlflow_url="http://127.0.0.1:9")
    migrated(settings.resolved_home)
    service = Service.open(settings)
    played = Conductor(service.store)
    service.submissions.submit(SPEC.encode())
    played.begin()
    played.finish()
    (first, *_) = service.store.outbox.due(10)
    played.writer.outbox.postpone(first, "connection refused at http://internal", 60)
    found = {check.name: check for check in service.operations.ready().checks}
    assert (found["mlflow"].ok, found["mlflow"].detail) == (
        False,
        "did not take 1 runs at the last try; the conductor's log says why",
    )
    service.close()
