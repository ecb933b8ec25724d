"""The MLflow tracker against a real server."""

import math
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from mlflow.entities import Run, ViewType
from mlflow.tracking import MlflowClient

from orchestrator.record.mlflow import tracker as tracking
from orchestrator.record.mlflow.client import KEY_TAG, NOT_FINITE_TAG, SWEEP_TAG, MlflowTracker
from orchestrator.record.mlflow.tracker import RunGoneError, RunMirror, Tracker
from orchestrator.record.outbox import CurvePoint
from orchestrator.views.errors import UnavailableError
from tests.mlflow_server import Another
from tests.ports import free_port

STARTED = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


@pytest.fixture
def tracker(another_tracker: Another) -> Tracker:
    return another_tracker()


@pytest.fixture
def experiment(tracker: Tracker) -> str:
    uid = str(uuid4())
    return tracker.experiment(f"sweep #{uid[:6]}", uid, {})


def a_trial(**changes: object) -> RunMirror:
    points = [CurvePoint("train/loss", 1.0 / step, step, STARTED + timedelta(seconds=step)) for step in range(1, 6)]
    whole = RunMirror(
        kind="trial",
        key=str(uuid4()),
        run=None,
        name="triplet · sec · seed 0",
        status="FINISHED",
        started=STARTED,
        ended=STARTED + timedelta(minutes=1),
        params={"loss": "triplet", "loss.margin": "0.2"},
        tags={"metricsweep.trial": "7"},
        points=points,
        metrics={"best/test/recall@1": 0.75},
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def everything(client: MlflowClient, run_id: str) -> tuple[object, ...]:
    run: Run = client.get_run(run_id)
    histories = {key: client.get_metric_history(run_id, key) for key in run.data.metrics}
    plain = {key: [(m.value, m.step, m.timestamp) for m in history] for key, history in histories.items()}
    return run.info.status, run.info.start_time, run.info.end_time, run.data.params, run.data.tags, plain


def test_a_trial_is_shown_once(
    another_tracker: Another, client: MlflowClient, experiment: str, capfd: pytest.CaptureFixture[str]
) -> None:
    trial, tracker = a_trial(files={"log.txt": b"lines"}), another_tracker()
    run_id = tracker.mirror(experiment, trial)
    run = client.get_run(run_id)
    assert run.info.run_name == "triplet · sec · seed 0"
    assert (run.info.status, run.info.start_time) == ("FINISHED", 1767323045678)
    assert run.info.end_time == run.info.start_time + 60_000
    assert run.data.params == {"loss": "triplet", "loss.margin": "0.2"}
    assert run.data.metrics == {"train/loss": 0.2, "best/test/recall_at_1": 0.75}
    assert run.data.tags[KEY_TAG] == trial.key
    assert run.data.tags["mlflow.source.name"] == "metricsweep"
    history = client.get_metric_history(run_id, "train/loss")
    assert [(m.step, m.timestamp - 1767323045678) for m in history] == [(s, 1000 * s) for s in range(1, 6)]
    before = everything(client, run_id)
    assert tracker.mirror(experiment, replace(trial, run=run_id)) == run_id
    assert another_tracker().mirror(experiment, trial) == run_id, "found by its key"
    client.update_run(run_id, status="RUNNING")  # as a server that was restored from a backup shows it
    assert tracker.mirror(experiment, trial) == run_id
    assert everything(client, run_id) == before
    assert len(client.search_runs([experiment])) == 1
    assert capfd.readouterr().out == ""


def test_a_run_of_a_cell_is_replaced_when_it_chose_otherwise(
    another_tracker: Another, client: MlflowClient, experiment: str
) -> None:
    cell = a_trial(kind="cell", params={"regularizer.eta": "0.1"})
    first = another_tracker().mirror(experiment, cell)
    again = another_tracker().mirror(experiment, replace(cell, params={"regularizer.eta": "0.5"}))
    assert again != first
    assert [run.info.run_id for run in client.search_runs([experiment])] == [again]
    assert client.get_run(again).data.params == {"regularizer.eta": "0.5"}


def test_a_run_grows_and_ends(tracker: Tracker, client: MlflowClient, experiment: str) -> None:
    trial = a_trial()
    begun = replace(trial, status="RUNNING", ended=None, points=trial.points[:2], metrics={})
    run_id = tracker.mirror(experiment, begun)
    assert client.get_run(run_id).info.status == "RUNNING"
    assert client.get_run(run_id).info.end_time is None
    tracker.mirror(experiment, replace(trial, run=run_id, points=trial.points[2:]))
    assert client.get_run(run_id).info.status == "FINISHED"
    assert len(client.get_metric_history(run_id, "train/loss")) == 5
    for status in ("FAILED", "RUNNING", "KILLED"):
        tracker.mirror(experiment, replace(trial, run=run_id, status=status, points=()))
        assert client.get_run(run_id).info.status == status


def test_values_that_are_not_finite_are_named(tracker: Tracker, client: MlflowClient, experiment: str) -> None:
    points = [CurvePoint("train/loss", value, step, STARTED) for step, value in enumerate([1.0, math.nan, math.inf])]
    run_id = tracker.mirror(experiment, a_trial(points=points, metrics={"last/test/nmi": -math.inf}))
    run = client.get_run(run_id)
    assert run.data.metrics == {"train/loss": 1.0}
    assert run.data.tags[NOT_FINITE_TAG] == "train/loss@1=nan, train/loss@2=inf, last/test/nmi@0=-inf"


def test_more_than_a_batch_holds(tracker: Tracker, client: MlflowClient, experiment: str) -> None:
    points = [CurvePoint("train/loss", float(step), step, STARTED + timedelta(seconds=step)) for step in range(2_345)]
    run_id = tracker.mirror(
        experiment,
        a_trial(
            points=points,
            params={f"param.{number}": "é" * 7_000 for number in range(130)},
            tags={f"tag.{number}": "x" * 9_000 for number in range(130)},
        ),
    )
    run = client.get_run(run_id)
    assert [m.value for m in client.get_metric_history(run_id, "train/loss")] == [float(s) for s in range(2_345)]
    assert len(run.data.params) == 130
    assert all(f"tag.{number}" in run.data.tags for number in range(130))


def test_unicode_and_odd_keys(tracker: Tracker, client: MlflowClient, experiment: str) -> None:
    odd = {"naïve/κ@1": 1.0, "a(b)%c": 2.0, "/../up": 3.0, "./x//y": 4.0, "..": 5.0, "k" * 400: 6.0}
    name = "损失 🧪 \"x\" 'y'"
    run_id = tracker.mirror(experiment, a_trial(name=name, params={"η": "½ ≤ 1"}, metrics=odd, points=()))
    run = client.get_run(run_id)
    assert run.info.run_name == name
    assert run.data.params == {"η": "½ ≤ 1"}
    assert run.data.metrics == {"naïve/κ_at_1": 1.0, "a_b__c": 2.0, "up": 3.0, "x/y": 4.0, "_": 5.0, "k" * 250: 6.0}


def test_files_are_artifacts(
    tracker: Tracker, client: MlflowClient, experiment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_id = tracker.mirror(experiment, a_trial(files={"table.tex": b"\\toprule", "tables/main.png": b"\x89PNG\x00"}))
    assert Path(client.download_artifacts(run_id, "tables/main.png")).read_bytes() == b"\x89PNG\x00"
    assert Path(client.download_artifacts(run_id, "table.tex")).read_bytes() == b"\\toprule"
    assert list(tmp_path.iterdir()) == []  # no ./mlruns in the working directory
    with pytest.raises(ValueError, match="out of its MLflow run"):
        tracker.mirror(experiment, a_trial(files={"../out": b""}))


def test_a_missing_run_is_an_error(another_tracker: Another, client: MlflowClient, experiment: str) -> None:
    trial = a_trial()
    tracker = another_tracker()
    run_id = tracker.mirror(experiment, trial)
    client.delete_run(run_id)
    for gone in (replace(trial, run=run_id), replace(trial, run=uuid4().hex), replace(trial, run=run_id, points=())):
        with pytest.raises(RunGoneError, match="is gone from MLflow"):
            another_tracker().mirror(experiment, gone)
    again = tracker.mirror(experiment, trial)
    assert again != run_id
    assert client.get_run(again).data.metrics["train/loss"] == 0.2


def test_a_missing_experiment_is_an_error(another_tracker: Another, client: MlflowClient, experiment: str) -> None:
    sweep = client.get_experiment(experiment).tags[SWEEP_TAG]
    tracker = another_tracker()
    assert tracker.mirror(experiment, a_trial(sweep=sweep))
    for elsewhere, whose in ((experiment, str(uuid4())), ("987654321", sweep)):
        with pytest.raises(tracking.ExperimentGoneError):
            tracker.mirror(elsewhere, a_trial(sweep=whose))
    assert len(client.search_runs([experiment])) == 1, "nothing goes into an experiment that is another sweep's"


def test_a_cell_that_chose_otherwise_gets_another_run(
    another_tracker: Another, client: MlflowClient, experiment: str
) -> None:
    cell = a_trial(
        kind="cell", params={"loss": "triplet"}, dataset=tracking.DatasetMirror("digits", "sha256:" + "a" * 64)
    )
    tracker = another_tracker()
    run_id = tracker.mirror(experiment, cell)
    settled = replace(cell, run=run_id, params={"loss": "triplet", "eta": "0.5"})
    assert tracker.mirror(experiment, settled) == run_id
    assert tracker.mirror(experiment, settled) == run_id
    (data,) = client.get_run(run_id).inputs.dataset_inputs
    assert (data.dataset.name, data.dataset.digest) == ("digits", "sha256:" + "a" * 29)
    other = replace(settled, params={"loss": "triplet", "eta": "1.0"})
    with pytest.raises(RunGoneError, match="other params and is replaced: eta"):
        tracker.mirror(experiment, other)
    again = tracker.mirror(experiment, replace(other, run=None))
    assert [run.info.run_id for run in client.search_runs([experiment])] == [again]
    assert client.get_run(again).data.params == {"loss": "triplet", "eta": "1.0"}


def test_of_two_runs_of_a_key_the_known_one_stays(
    another_tracker: Another, client: MlflowClient, experiment: str
) -> None:
    tracker, keys = another_tracker(), [str(uuid4()) for _ in range(3)]
    made = {key: [client.create_run(experiment, tags={KEY_TAG: key}).info.run_id for _ in range(2)] for key in keys}
    client.create_run(experiment, tags={"somebody's": "own"})
    known = {keys[0]: made[keys[0]][0], keys[1]: made[keys[1]][1]}
    assert tracker.unite(experiment, lambda asked: {key: known[key] for key in asked if key in known}) == 3
    left = {run.data.tags.get(KEY_TAG): run.info.run_id for run in client.search_runs([experiment])}
    assert len(left) == 4
    assert {key: left[key] for key in known} == known
    assert tracker.unite(experiment, lambda asked: known) == 0


def test_an_experiment_goes_to_the_trash_and_comes_back(tracker: Tracker, client: MlflowClient) -> None:
    uid = str(uuid4())
    experiment = tracker.experiment(f"gone {uid[:6]}", uid, {})
    tracker.mirror(experiment, a_trial(sweep=uid))
    for _ in range(2):
        tracker.remove(uid)
    tracker.remove(str(uuid4()))
    assert client.get_experiment(experiment).lifecycle_stage == "deleted"
    client.restore_experiment(experiment)
    assert len(client.search_runs([experiment])) == 1


def test_a_taken_or_deleted_name_gets_a_suffix(tracker: Tracker, client: MlflowClient) -> None:
    first, second = str(uuid4()), str(uuid4())
    name = f"taken #{first[:4]}"
    theirs = tracker.experiment(name, first, {})
    ours = tracker.experiment(name, second, {})
    assert client.get_experiment(ours).name == f"{name} ({second[:8]})"
    client.delete_experiment(theirs)
    client.delete_experiment(ours)
    anew = tracker.experiment(name, second, {})
    assert client.get_experiment(anew).name == f"{name} ({second[:8]}-2)"
    assert client.search_experiments(view_type=ViewType.ACTIVE_ONLY, filter_string=f"name = '{name}'") == []


def test_a_server_that_is_down_is_unavailable() -> None:
    tracker = MlflowTracker(f"http://127.0.0.1:{free_port()}")
    for ask in (
        lambda: tracker.experiment("x", str(uuid4()), {}),
        lambda: tracker.mirror("1", a_trial()),
        lambda: tracker.mirror("1", a_trial(run=uuid4().hex)),
    ):
        with pytest.raises(UnavailableError, match="does not answer"):
            ask()


def test_a_deleted_experiment_is_refused(tracker: Tracker, client: MlflowClient, experiment: str) -> None:
    client.delete_experiment(experiment)
    with pytest.raises(tracking.TrackerRefusedError, match=f"{experiment} must be in the 'active' state"):
        tracker.mirror(experiment, a_trial())


def test_a_server_that_hangs_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")  # the tracker's own is 5
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        tracker = MlflowTracker(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(UnavailableError, match="does not answer"):
            tracker.mirror("1", a_trial())
