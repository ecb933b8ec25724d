"""What a person finds who opens Ray's own tools: names, recipes and metrics of the trials, and no secret."""

import json
from collections import deque
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

import pytest
from ray import tune

from orchestrator.run.attempt import Workplace
from orchestrator.run.ray import trial_files, tuner
from orchestrator.run.ray.assignment import Assignment
from orchestrator.run.ray.engine import RayTune
from orchestrator.run.report import Report
from tests.run.broker import MemoryBroker, order

LABEL = "digits #3 · triplet / sec · lr=0.1 · seed=1"


@pytest.mark.ray
def test_a_trial_of_tune_is_named_and_has_its_recipe_and_its_metrics(local_ray: None, tmp_path: Path) -> None:
    secret = "hunter2-of-the-store"
    workplace = Workplace("tests.run.trainings:evaluating", tmp_path / secret, tmp_path / "data")
    named, nameless = replace(order(iterations=20), label=LABEL), order()
    named = replace(named, recipe={**named.recipe, "optimizer": {"name": "adam", "lr": 0.5}})
    broker = MemoryBroker(deque([named, nameless]))
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(broker)
    (folder,) = (tmp_path / "tune").glob("relays-*")
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
    assert "said" not in trial.last_result
    (place,) = folder.glob("digits_3_triplet_sec_lr=0.1_seed=1-*")
    lines = [json.loads(line) for line in (place / "result.json").read_text().splitlines()]
    assert lines[-1]["evaluations"] >= 2
    assert json.loads((place / "params.json").read_text())["trial"] == LABEL
    assert (place / "progress.csv").read_text().startswith(("step,", "evaluations,"))
    for file in folder.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file


def test_nothing_of_a_recipe_is_evaluated(tmp_path: Path) -> None:
    evil = {"eval": f"open({str(tmp_path / 'done')!r}, 'w')"}
    each = order()
    each = replace(each, recipe={**each.recipe, "loss": {"name": "ok", "margin": evil, "grid_search": [1, evil]}})
    config = Assignment(each, "slot:1:0:0:aa:bb:", "metricsweep-x", 0).config
    assert config["recipe.loss.margin.eval"] == evil["eval"]
    assert all(isinstance(value, str | int | float | bool | None) for value in config.values())


class Trial:
    trial_id = "t1"


class Homeless(Trial):
    """A trial whose folder cannot be made."""

    def __init__(self, folder: Path) -> None:
        self.local_path = str(folder)
        self.config = self.evaluated_params = {"attempt": "a"}

    def init_local_path(self) -> None:
        Path(self.local_path).mkdir(parents=True)


def test_files_of_trials_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    files, written = trial_files.TrialFiles(), []

    class Logger:
        def log_trial_result(self, iteration: int, trial: object, result: dict[str, object]) -> None:
            written.append(result)

    monkeypatch.setattr(files, "_loggers", [Logger()])
    for second in range(10_000):
        files.take(second, Trial, {"evaluations": second // 10, "done": False})
    files.take(10_000, Trial, {"evaluations": 1_001, "done": True, "config": {}})
    assert len(written) == trial_files.MOST_LINES + 1
    assert written[-1] == {"evaluations": 1_001, "done": True}


def test_old_folders_are_removed(tmp_path: Path) -> None:
    for day in range(10):
        (tmp_path / f"{tuner.PREFIX}2026110{day}T000000-aa").mkdir()
    (tmp_path / "other").mkdir()
    trial_files.remove_old(tmp_path, tuner.PREFIX)
    assert sorted(one.name[:16] for one in tmp_path.iterdir()) == [
        "other",
        *(f"relays-2026110{day}T"[:16] for day in (7, 8, 9)),
    ]


def test_a_disk_that_takes_no_files_of_trials_ends_no_tuner(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Tune's loop, and with it the conductor, would end with an error of a callback."""
    (tmp_path / "full").write_text("no folder")
    trial = Homeless(tmp_path / "full" / "trial")
    reports: SimpleQueue[Report] = SimpleQueue()
    reporting = tuner.Reporting(reports)
    reporting.on_trial_start(0, [], trial)
    reporting.on_trial_result(1, [], trial, {"said": [b"line"], "evaluations": 1})
    reporting.on_trial_complete(1, [], trial)
    assert [reports.get_nowait().said for _ in range(2)] == [(b"line",), ()]
    assert "files of a trial are incomplete" in caplog.text
