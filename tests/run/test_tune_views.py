"""What a person finds who opens Ray's own tools: names, recipes and metrics of the trials, and no secret."""

import json
import threading
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
from ray import tune

from orchestrator.run.attempt import Workplace
from orchestrator.run.ray.engine import RayTune
from orchestrator.run.ray.tune import PREFIX, shown
from orchestrator.views.orders import Order
from tests.run.broker import MemoryBroker, order
from workers.contract import Result

LABEL = "digits #3 · triplet / sec · lr=0.1 · seed=1"


@pytest.mark.ray
def test_a_trial_of_tune_is_named_and_has_its_recipe_and_its_metrics(local_ray: None, tmp_path: Path) -> None:
    secret = "hunter2-of-the-store"
    workplace = Workplace("tests.run.trainings:evaluating", tmp_path / secret, tmp_path / "data")
    named, nameless = replace(order(iterations=20), label=LABEL), order()
    named = replace(named, recipe={**named.recipe, "optimizer": {"name": "adam", "lr": 0.5}})
    broker = MemoryBroker(deque([named, nameless]))
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(broker)
    (folder,) = (tmp_path / "tune").glob(f"{PREFIX}*")
    analysis = tune.ExperimentAnalysis(str(folder))
    found = {str(one): one for one in analysis.trials}
    assert set(found) == {LABEL, nameless.training}
    trial = found[LABEL]
    assert trial.config["recipe.loss.name"] == "ok"
    assert trial.config["recipe.iterations"] == 20
    assert trial.status == "TERMINATED"
    result = broker.results[named.training]
    assert [one.kind for one in broker.failures] == ["recipe"], "the other has no learning rate"
    assert found[nameless.training].last_result["outcome"] == "failed"
    assert trial.last_result["outcome"] == result.outcome
    assert {key: trial.last_result[key] for key in result.metrics} == result.metrics
    (place,) = folder.glob("digits_3_triplet_sec_lr=0.1_seed=1-*")
    lines = [json.loads(line) for line in (place / "result.json").read_text().splitlines()]
    assert lines[-1]["evaluations"] >= 2
    assert json.loads((place / "params.json").read_text())["trial"] == LABEL
    assert (place / "progress.csv").read_text().startswith(("step,", "evaluations,"))
    for file in folder.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file
    assert list(place.glob("events.out.tfevents.*"))


def test_nothing_of_a_recipe_is_evaluated(tmp_path: Path) -> None:
    evil = {"eval": f"open({str(tmp_path / 'done')!r}, 'w')"}
    each = order()
    each = replace(each, recipe={**each.recipe, "loss": {"name": "ok", "margin": evil, "grid_search": [1, evil]}})
    config = shown(each)
    assert config["recipe.loss.margin.eval"] == evil["eval"]
    assert all(isinstance(value, str | int | float | bool | None) for value in config.values())


@pytest.mark.ray
def test_a_tune_that_does_not_work_costs_no_training(
    local_ray: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its folder cannot be made, as on a full disk."""
    (tmp_path / "tune").write_text("no folder")
    broker = MemoryBroker(deque(order() for _ in range(3)))
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path / "data")
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(broker)
    assert (len(broker.results), broker.failures) == (3, [])
    assert "Ray Tune does not show what trains" in caplog.text
    assert not any(thread.name == "tune" for thread in threading.enumerate())


@pytest.mark.ray
def test_short_trainings_share_a_few_processes_of_tune_and_each_is_shown(local_ray: None, tmp_path: Path) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path / "data")
    orders = [order(iterations=2) for _ in range(20)]
    earlier = [tmp_path / "tune" / f"{PREFIX}2026010{day}T000000-aa" for day in range(1, 6)]
    for folder in earlier:
        folder.mkdir(parents=True)
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(MemoryBroker(deque(orders)))
    *kept, folder = sorted((tmp_path / "tune").glob(f"{PREFIX}*"))
    assert kept == earlier[-2:], "older folders are removed"
    ended = [trial.last_result for trial in tune.ExperimentAnalysis(str(folder)).trials]
    assert [result.get("outcome") for result in ended] == ["ok"] * len(orders)
    assert len({result["pid"] for result in ended}) <= 3


class LeavingBroker(MemoryBroker):
    """The conductor is asked to end as soon as a training has finished."""

    def finished(self, order: Order, result: Result) -> None:
        super().finished(order, result)
        self.close = True


@pytest.mark.ray
def test_a_conductor_that_leaves_shows_how_the_last_training_ended(local_ray: None, tmp_path: Path) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path / "data")
    long = order(iterations=20, delay=0.5)  # Tune's trial follows it by then
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(LeavingBroker(deque([long])))
    (folder,) = (tmp_path / "tune").glob(f"{PREFIX}*")
    (trial,) = tune.ExperimentAnalysis(str(folder)).trials
    assert trial.last_result["outcome"] == "ok"
