"""What lies on disk and what may go, over HTTP and on the command line."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from api.cli import app as cli
from orchestrator.conduct.requests import Requests
from orchestrator.conduct.upkeep import Renewal
from orchestrator.settings import Settings
from tests.api.conftest import HTML, named
from tests.api.played import SPEC, YAML, Conductor
from workers import catalog

TUNED = SPEC.replace("repeat:", "tune: {optimizer.lr: [0.001, 0.01]}\nrepeat:")


@pytest.fixture
def ended(http: TestClient, conductor: Conductor, settings: Settings) -> TestClient:
    """A sweep of eight trainings, each with 1,000 bytes of weights; half of them are of the best candidates."""
    conductor.submit(http, TUNED)
    for value in range(8):
        conductor.finish(value / 10)
    conductor.settle()
    for trial in http.get("/v1/sweeps/1/trials").json()["items"]:
        uid = http.get(f"/v1/trials/{trial['id']}").json()["training"]
        folder = settings.resolved_home / "storage" / uid / "1"
        folder.mkdir(parents=True)
        (folder / "best.safetensors").write_bytes(bytes(1000))
    return http


def apply(conductor: Conductor, settings: Settings) -> None:
    renewal = Renewal(conductor.store, conductor.writer, catalog.load())
    given = (conductor.store, conductor.writer, catalog.load(), None, Path(settings.storage), renewal)
    for request in conductor.store.requests.pending():
        assert Requests(*given).apply(request)


def weights(settings: Settings) -> int:
    return len(list(Path(settings.storage).rglob("best.safetensors")))


def test_nothing_is_removed_without_a_request(ended: TestClient, conductor: Conductor, settings: Settings) -> None:
    answer = ended.post("/v1/collections?days=0").json()
    (row,) = answer["sweeps"]
    assert answer["dry_run"] is True
    assert (row["trainings"], row["files"], row["bytes"], row["kept"]) == (4, 4, 4000, 4)
    assert "recall@k" in row["retrained"]
    assert ended.get("/v1/sweeps/1/requests").json()["items"] == []
    assert ended.post("/v1/collections").json()["sweeps"] == [], "they ended a moment ago"
    assert ended.post("/v1/collections?days=0&keep=2").json()["sweeps"] == []
    assert ended.post("/v1/collections?days=0&state=failed").json()["sweeps"] == []
    assert ended.post("/v1/collections?days=0&sweep=9").status_code == 404
    assert ended.post("/v1/collections?keep=0").status_code == 422
    assert weights(settings) == 8


def test_removed_files_are_listed_with_their_trial(ended: TestClient, conductor: Conductor, settings: Settings) -> None:
    row = ended.post("/v1/collections?days=0&dry_run=false", headers={"X-Actor": "ada"}).json()["sweeps"][0]
    apply(conductor, settings)
    assert weights(settings) == 4
    request = ended.get(f"/v1/requests/{row['request']}").json()
    assert (request["state"], request["actor"], request["outcome"]) == (
        "done", "ada", "4 files of 4 trainings collected, 0.0 MiB",
    )  # fmt: skip
    trials = [ended.get(f"/v1/trials/{number}").json() for number in range(1, 9)]
    gone = [trial["collected"] for trial in trials if trial["collected"]]
    assert len(gone) == 4
    assert {(one["files"], one["bytes"], one["removed"], one["request"]) for one in gone} == {
        (1, 1000, True, row["request"])
    }
    assert datetime.now(UTC) - datetime.fromisoformat(gone[0]["at"]) < timedelta(hours=1)
    page = ended.get(f"/trials/{next(t['id'] for t in trials if t['collected'])}", headers=HTML)
    assert "The weights of this training were collected" in page.text
    sizes = ended.get("/v1/storage?sweep=1").json()
    assert (sizes["weights_bytes"], sizes["sweeps"][0]["weights_bytes"]) == (4000, 4000)
    assert sizes["database_bytes"] > 0


def test_the_commands(ended: TestClient, conductor: Conductor, settings: Settings, url: str) -> None:
    def run(*words: str) -> str:
        done = CliRunner().invoke(cli, list(words), env=named(url))
        assert done.exit_code == 0, done.output
        return done.output

    said = run("sizes")
    assert "1 four-trials" in said
    assert "8 KiB" in said
    said = run("gc", "--days", "0")
    assert "recall@k" in said
    assert "4 KiB would go; the columns named could then no longer be evaluated. --yes does it" in said
    assert weights(settings) == 8
    assert "nothing to remove" in run("gc")
    said = run("gc", "--days", "0", "--keep", "1", "--state", "finished", "--yes")
    assert "removal requested; `metricsweep requests 1`" in said
    apply(conductor, settings)
    assert weights(settings) == 4
    assert "collected" in run("requests", "1")
    assert "nothing to remove" in run("gc", "--days", "0")


def test_the_page_of_a_sweep_leads_to_what_it_keeps_and_what_could_go(
    ended: TestClient, conductor: Conductor, settings: Settings
) -> None:
    assert 'data-from="/sweeps/1/storage"' in ended.get("/sweeps/1", headers=HTML).text
    page = " ".join(re.sub(r"<[^>]+>", " ", ended.get("/sweeps/1/storage", headers=HTML).text).split())
    sizes = ended.get("/v1/storage?sweep=1").json()["sweeps"][0]
    assert f"weights 8 KiB figures 0 B spools 0 B logs {sizes['logs_bytes']} B together" in page
    assert "removable 4 KiB : weights and checkpoints of 4 trainings; 4 trainings would keep their files" in page
    assert weights(settings) == 8
    ended.post("/v1/collections?days=0&dry_run=false&sweep=1")
    apply(conductor, settings)
    assert "removable nothing" in " ".join(re.sub(r"<[^>]+>", " ", ended.get("/sweeps/1/storage").text).split())
    ended.post("/v1/sweeps", content=SPEC.replace("iterations: 20", "iterations: 10"), headers=YAML)
    assert "nothing while the sweep is active" in ended.get("/sweeps/2/storage", headers=HTML).text
    assert ended.get("/sweeps/3/storage", headers=HTML).status_code == 404
    conductor.begin()
    conductor.finish()
    assert (set(conductor.store.sizes.logs()), set(conductor.store.sizes.logs(2))) == ({1, 2}, {2})
