"""What parts of earlier versions had trained, taken on by a release whose parts have other versions."""

import csv
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from fastapi.testclient import TestClient
from pydantic import SecretStr

from api.main import create_app
from orchestrator.conduct.requests import Requests
from orchestrator.conduct.upkeep import Renewal
from orchestrator.record import renewal as renewing
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests import inline_conductor, test_pruning
from tests.api.conftest import BEARER, TOKEN, URL
from tests.record.sample import lease, run_all
from tests.record.shelf import Shelf
from tests.record.test_recorder import forward_all
from workers import catalog as catalogs
from workers.catalog import Catalog, complete
from workers.contract import CheckpointError, Place, Recipe
from workers.train import train

TRAINED = Path(__file__).parent / "record" / "trained"
LOST = "f92b4c6b-f18b-4977-8ad6-7cde4661cbc3"  # the training whose machine went away after its checkpoint
RUNNING = "8ff68fe0-86a1-4bf8-9687-15bff278f668"
FAILED_SWEEP, HALF, SHARES, FRESH = 3, 4, 5, 6

TODAY = catalogs.load()


def raised(**versions: int) -> Catalog:
    """Today's catalog with the versions of some parts raised by so much."""
    entries = [one.model_copy(update={"version": one.version + versions.get(one.name, 0)}) for one in TODAY.entries]
    return Catalog(entries=entries)


CHANGED = raised(map=1, normface=1)


@pytest.fixture
def home(settings: Settings) -> Settings:
    """An installation whose parts had earlier versions."""
    Store.open(settings.database).close()
    with sqlite3.connect(settings.resolved_home / "metricsweep.db") as connection:
        connection.executescript("PRAGMA foreign_keys = OFF;" + (TRAINED / "home.sql").read_text(encoding="utf-8"))
    connection.close()
    shutil.copytree(TRAINED / "storage", settings.resolved_home / "storage", dirs_exist_ok=True)
    return settings


@pytest.fixture
def store(home: Settings) -> Iterator[Store]:
    opened = Store.open(home.database)
    yield opened
    opened.close()


def conduct(settings: Settings, catalog: Catalog) -> None:
    inline_conductor.conduct(settings, catalog=catalog)


def rows(store: Store, query: str) -> list[Any]:
    with store.database.reading() as connection:
        return [tuple(row) for row in connection.execute(sa.text(query))]


def active_stamps(store: Store) -> list[str]:
    """The trainings that a trial waits for or runs, of older versions than `CHANGED`."""
    return [one.stamp for one in store.trainings.outdated(Renewal(store, store.writer(0), CHANGED).outdated)]


def test_what_waits_is_planned_anew_and_what_is_finished_stays(home: Settings, store: Store) -> None:
    before = {row[0]: row[1:] for row in rows(store, "SELECT uid, fingerprint, state, metrics FROM training")}
    assert active_stamps(store)
    renewal = Renewal(store, store.writer(lease(store)), CHANGED)
    said = renewal.renew()
    assert active_stamps(store) == []
    assert renewal.renew() == {}, "a second time changes nothing"
    after = {row[0]: row[1:] for row in rows(store, "SELECT uid, fingerprint, state, metrics FROM training")}
    finished = {uid for uid, row in before.items() if row[1] == "finished"}
    assert {uid: after[uid] for uid in finished} == {uid: before[uid] for uid in finished}
    assert set(said) == {2, HALF, SHARES, FRESH}
    assert "numbers changed in loss 'normface' (version 1, now " in said[HALF]
    assert "metric 'map' (version " in said[HALF]
    assert "6 trials planned anew, 2 of them from the start though they had begun" in said[HALF]
    assert "2 trials finished before keep their numbers" in said[HALF]
    noted = store.requests.page(HALF).items[0]
    assert (noted.kind, noted.state, noted.actor, noted.outcome) == ("renew", "done", None, said[HALF])
    assert after[LOST][1] == "cancelled"
    assert after[RUNNING][1] == "running", "until its slot was stopped"


def test_nothing_goes_on_from_a_checkpoint_of_older_versions(home: Settings, store: Store) -> None:
    conduct(home, CHANGED)
    assert rows(store, "SELECT uid FROM attempt WHERE resumed_from IS NOT NULL") == []
    states = {sweep.id: sweep.state.value for sweep in store.sweeps.page()[0].items}
    assert states == {
        1: "finished",
        2: "finished",
        3: "failed",
        4: "finished",
        5: "finished",
        6: "finished",
        7: "finished",
    }
    lost = next(
        one for one in store.trials.page(HALF).items if one.labels["seed"] == "21" and one.labels["loss"] == "triplet"
    )
    assert store.trials.get(lost.id).training != LOST
    assert (home.storage / LOST / "1" / "last.pt").exists(), "it is kept until the sweep is deleted"


def test_a_crash_within_leaves_nothing_half_done(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows(store, "SELECT id, training_id, state FROM trial")
    fence = lease(store)
    with monkeypatch.context() as patched:
        patched.setattr(renewing, "_kept", lambda *_: (_ for _ in ()).throw(RuntimeError("the power went")))
        with pytest.raises(RuntimeError):
            Renewal(store, store.writer(fence), CHANGED).renew()
    assert rows(store, "SELECT id, training_id, state FROM trial") == before
    assert set(Renewal(store, store.writer(fence), CHANGED).renew()) == {2, HALF, SHARES, FRESH}


def test_a_recipe_that_is_refused_today_fails_and_says_why(store: Store) -> None:
    entries = [
        one.model_copy(update={"version": 9, "parameters": []}) if one.name == "normface" else one
        for one in TODAY.entries
    ]
    said = Renewal(store, store.writer(lease(store)), Catalog(entries=entries)).renew()
    assert "3 trials failed, since today's version refuses their recipes" in said[HALF]
    failed = [one for one in store.trials.page(HALF).items if one.state == "failed"]
    assert "normface" in (failed[0].error or "")


def test_a_retry_of_an_old_failure_is_planned_anew_and_says_so(home: Settings, store: Store) -> None:
    fence, service = lease(store), Service(home, store, CHANGED)
    writer = store.writer(fence)
    Renewal(store, writer, CHANGED).renew()
    asked = service.commands.retry(FAILED_SWEEP).id
    inbox = Requests(store, writer, CHANGED, None, home.storage, Renewal(store, writer, CHANGED))
    for request in store.requests.pending():
        inbox.apply(request)
    said = store.requests.get(asked).outcome or ""
    assert said.startswith("1 trial waiting again; numbers changed in metric 'map' (version ")
    assert "1 trial planned anew, 1 of them from the start though they had begun" in said
    assert active_stamps(store) == []


def test_the_answer_to_such_an_extension_lists_what_changed(home: Settings, store: Store) -> None:
    spec = yaml.safe_load(store.sweeps.get(1).text)
    spec["repeat"]["seed"].append(2)
    service = Service(home, store, CHANGED)
    app = create_app(service, home.model_copy(update={"token": SecretStr(TOKEN)}))
    with TestClient(app, base_url=URL, headers=BEARER | {"Content-Type": "application/yaml"}) as api:
        answer = api.post("/v1/sweeps/1/extend", content=yaml.safe_dump(spec).encode())
    problem = answer.json()
    assert (answer.status_code, problem["title"]) == (409, "Conflict")
    assert problem["detail"].startswith("numbers changed in ")
    assert {"loss 'normface'", "metric 'map'"} <= {one["path"] for one in problem["problems"]}


def _words(table: dict[str, Any]) -> str:
    return " ".join([table["caption"], *table["notes"]])


def test_results_are_marked_by_version(home: Settings, store: Store) -> None:
    service = Service(home, store, CHANGED)
    old = store.trials.page(1).items[0].id
    shown = service.trials.get(old)
    assert any(one.startswith("metric 'map' (version 1, now ") for one in shown.outdated)
    words = _words(json.loads(service.tables.render(1, "main", "json").content))
    assert "Numbers of older versions: loss 'normface' (version 1, now " in words
    assert service.sweeps.cell(1, 0).candidates[0].trials[0].outdated
    lines = list(csv.DictReader(service.tables.render(1, "main", "csv").content.decode().splitlines()))
    assert {one["versions"] for one in lines} == {"older"}


def test_what_mixes_versions_says_so(home: Settings, store: Store) -> None:
    conduct(home, CHANGED)
    service = Service(home, store, CHANGED)
    content = json.loads(service.tables.render(HALF, "main", "json").content)
    assert "Versions are MIXED, since numbers changed in loss 'normface' (version 1, now " in _words(content)
    assert "numbers of several versions in Triplet and NormFace." in _words(content)
    assert content["versions"] == {"0": "mixed", "1": "mixed"}
    only = json.loads(service.tables.render(SHARES, "main", "json").content)
    assert "versions" not in only
    assert "ersions" not in _words(only)
    both = json.loads(service.tables.compare([SHARES, 1], "main", "merged", "json").content)
    assert "numbers of older versions in NormFace." in _words(both)
    difference = json.loads(service.tables.compare([SHARES, 1], "main", "difference", "json").content)
    assert "Of sweep 1: Numbers of older versions" in _words(difference)
    renewed = [service.trials.get(one.id) for one in store.trials.page(HALF).items]
    assert {one.training for trial in renewed for one in trial.replaced} == {LOST, RUNNING}
    assert all(not trial.outdated for trial in renewed if trial.replaced)


def test_a_worker_takes_neither_a_recipe_nor_a_checkpoint_of_older_versions(home: Settings, store: Store) -> None:
    old = Recipe.model_validate(json.loads(rows(store, f"SELECT recipe FROM training WHERE uid = '{LOST}'")[0][0]))
    place = Place(home.data_root, home.resolved_home / "scratch", home.resolved_home, checkpoint_seconds=1e9)
    with pytest.raises(ValueError, match="the recipe is for version 1 of "):
        train(old, place, lambda _: None)
    with pytest.raises(CheckpointError, match="recipe"):
        train(complete(old, TODAY), place, lambda _: None, TRAINED / "storage" / LOST / "1" / "last.pt")


def test_what_older_versions_scored_is_no_evidence_for_early_stopping(settings: Settings) -> None:
    settings = settings.model_copy(update={"train": "tests.run.trainings:evaluating"})
    service = Service.open(settings)
    sweep = service.submissions.submit(test_pruning.spec(seeds=1)).id
    inline_conductor.conduct(settings, orders=3)  # three good candidates, and a hopeless fourth
    inline_conductor.conduct(settings, catalog=raised(map=1))
    states = [one.state for one in test_pruning.trials(service, sweep)]
    service.close()
    assert states[:4] == ["finished"] * 4
    assert states[5] == "pruned", "by what two others scored under its own versions"


def test_the_tracker_ends_the_run_of_what_was_replaced(home: Settings, store: Store) -> None:
    shelf, fence = Shelf(), lease(store)
    trial = next(one.id for one in store.trials.page(HALF).items if store.trials.get(one.id).training == RUNNING)
    mirror = Mirror(store, store.writer(fence), lambda: shelf)
    forward_all(mirror)
    old = store.runs.run("trial", HALF, trial)
    assert old is not None
    Renewal(store, store.writer(fence), CHANGED).renew()
    shelf.ids = {f"{key}/{run}" if run == old else key: run for key, run in shelf.ids.items()}  # its key changes
    forward_all(mirror)
    left = next(run for run in shelf.runs.values() if run.run == old and run.status == "KILLED")
    assert left.tags["metricsweep.state"] == "planned anew"
    assert store.runs.run("trial", HALF, trial) is None
    run_all(store, fence)
    forward_all(mirror)
    again = store.runs.run("trial", HALF, trial)
    assert again not in {None, old}
    assert next(run for key, run in shelf.runs.items() if shelf.ids[key] == again).status == "FINISHED"
