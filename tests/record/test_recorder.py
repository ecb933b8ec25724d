"""From events to the tracker: each event is sent once and in order, even if the tracker is unavailable for a while."""

import time
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.record.mlflow.content import DESCRIPTION_TAG
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.mlflow.tracker import Artifacts, DatasetMirror
from orchestrator.record.schema import outbox
from orchestrator.record.store import Store, Writer
from orchestrator.views import runs
from orchestrator.views.runs import Finished, Progressed, Started
from tests.record.conftest import ON_BOTH
from tests.record.sample import KEY, claimed, fail, new_sweep, progress, recipe, result, run, run_all, started
from tests.record.shelf import Shelf
from workers.contract import Result

URL = "http://127.0.0.1:8787"


def forward_all(mirror: Mirror) -> int:
    """Forward until nothing is due."""
    sent = 0
    while now := mirror.forward(10):
        sent += now
    return sent


def rested(store: Store) -> None:
    """As if what trainings say on their way had waited for as long as it may."""
    with store.database.writing() as connection:
        connection.execute(sa.update(outbox).values(next_try=0.0))


def settle(store: Store, fence: int, sweep: int) -> None:
    for one, cell in store.sweeps.cells_to_settle():
        statistics = {KEY: runs.Statistic(0.5, 0.01, 2), "best/test/recall@1": runs.Statistic(0.4, None, 1)}
        summary = runs.CellSummary(cell, "complete", 0, {"eta": "0.5"}, KEY, statistics[KEY], statistics, 3)
        store.writer(fence).events.write(runs.CellSettled(one, summary))
    store.writer(fence).events.write(runs.SweepSettled(sweep))


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@ON_BOTH
def test_a_sweep_is_mirrored_whole(store: Store, fence: int, writer: Writer, shelf: Shelf) -> None:
    sweep = started(store, fence)
    uid = store.sweeps.get(sweep).uid
    asked: list[int] = []

    def artifacts(one: int, ended: bool) -> Artifacts:
        asked.extend([one] if ended else [])
        return Artifacts(selected_by=KEY, files={"main.tex": b"table"} if ended else {})

    mirror = Mirror(store, writer, lambda: shelf, artifacts, URL + "/")
    assert forward_all(mirror) == 1
    assert list(shelf.experiments.values()) == [f"sample #{sweep}"]
    assert shelf.runs[f"{uid}/summary"].status == "RUNNING"
    assert shelf.runs[f"{uid}/summary"].metrics == {}

    order = claimed(store, fence)
    writer.events.write(Started(order.attempt, "slot-0", "host-a"))
    writer.events.write(Progressed(order.attempt, 1, progress(10, metrics={"train/loss": 2.0})))
    rested(store)
    forward_all(mirror)
    first = store.trials.page(sweep).items[0]
    shown = shelf.runs[first.uid]
    assert (shown.status, shown.ended, shown.name) == ("RUNNING", None, "triplet · margin=0.2 · seed=0")
    assert shown.parent == shelf.ids[f"{uid}/cell/0"] == store.runs.run("cell", sweep, 0)
    assert shelf.sent.index(f"{uid}/cell/0") < shelf.sent.index(first.uid)
    assert shelf.ids[first.uid] == store.runs.run("trial", sweep, first.id)
    writer.events.write(Progressed(order.attempt, 2, progress(20, metrics={"validation/map@r": 0.5})))
    kept = result()
    read = {**kept.provenance, "manifest": "sha256:12"}  # of data whose content nobody knew before
    writer.events.write(Finished(order.attempt, kept.model_copy(update={"provenance": read})))
    run_all(store, fence)
    settle(store, fence, sweep)
    forward_all(mirror)

    assert store.outbox.lag() == 0
    assert asked == [sweep]
    summary = shelf.runs[f"{uid}/summary"]
    assert (summary.status, summary.files) == ("FINISHED", {"main.tex": b"table"})
    assert (summary.metrics["trials finished"], summary.metrics["trials failed"]) == (4, 0)
    assert store.runs.run("summary", sweep, sweep) == shelf.ids[f"{uid}/summary"]
    assert store.runs.experiment(sweep) == "experiment-0"
    assert store.runs.of_cells(sweep) == {index: shelf.ids[f"{uid}/cell/{index}"] for index in (0, 1)}
    shown = shelf.runs[first.uid]
    assert (shown.status, shown.ended is None) == ("FINISHED", False)
    assert shelf.points[first.uid] == [("train/loss", 10, 2.0), ("validation/map@r", 20, 0.5)]
    assert shown.metrics["best validation/map@r"] == 0.5
    assert f"]({URL}/v1/trials/{first.id}/model)" in shown.tags[DESCRIPTION_TAG]
    cell = shelf.runs[f"{uid}/cell/0"]
    assert (cell.name, cell.status) == ("triplet", "FINISHED")
    assert cell.params == {"loss": "triplet", "eta": "0.5"}
    assert cell.metrics == {"recall@1": 0.4, "best validation/map@r": 0.5, "std/best validation map@r": 0.01}
    assert "eta = 0.5" in cell.tags[DESCRIPTION_TAG]
    assert shelf.points[f"{uid}/cell/0"] == [("train/loss", 10, 2.0)], "the loss of its first trial"
    assert (shown.dataset, cell.dataset) == (cell.dataset, DatasetMirror("digits", "sha256:12"))
    assert shown.tags["metricsweep.selected"] == "true"


def test_params_are_the_recipe_and_tags_the_rest(store: Store, fence: int, writer: Writer, shelf: Shelf) -> None:
    sweep = started(store, fence, seeds=[3])
    run_all(store, fence)
    forward_all(Mirror(store, writer, lambda: shelf, url=URL))
    trial = store.trials.get(store.trials.page(sweep).items[1].id)
    shown = shelf.runs[trial.uid]
    assert shown.params["loss.name"] == "semihard"
    assert shown.params["loss.margin"] == "0.2"
    assert shown.params["validation.folds"] == "3"
    assert shown.params["seed"] == "3"
    assert not any(key.startswith("pins") for key in shown.params)
    assert shown.params["loss"] == "semihard"
    assert shown.tags["metricsweep.cell"] == "semihard"
    assert shown.tags["metricsweep.fingerprint"] == trial.fingerprint
    said = shown.tags[DESCRIPTION_TAG]
    assert f"]({URL}/trials/{trial.id}) of [cell 1]({URL}/sweeps/{sweep}/cells/1)" in said
    assert "| versions.loss | 1 |" in said
    assert "| device | cpu |" in said
    assert "| versions.torch | 2.6 |" in said
    assert shown.tags["mlflow.source.git.commit"] == "abc123"
    assert shown.tags["metricsweep.state"] == "finished"


def test_a_reused_trial_names_its_source(store: Store, fence: int, writer: Writer, shelf: Shelf) -> None:
    one = started(store, fence, losses=["triplet"], seeds=[0])
    run_all(store, fence)
    mirror = Mirror(store, writer, lambda: shelf)
    forward_all(mirror)
    two = started(store, fence, losses=["triplet"], seeds=[0])
    forward_all(mirror)
    source, reused = store.trials.page(one).items[0], store.trials.page(two).items[0]
    shown = shelf.runs[reused.uid]
    assert (shown.status, shown.points) == ("FINISHED", ())
    assert shown.metrics["best validation/map@r"] == 0.5
    assert f"[trial {source.id}](/trials/{source.id})" in shown.tags[DESCRIPTION_TAG]
    assert shelf.ids[source.uid] in shown.tags[DESCRIPTION_TAG]


def test_repeated_points_are_sent_once(store: Store, fence: int, writer: Writer, shelf: Shelf) -> None:
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    mirror = Mirror(store, writer, lambda: shelf)
    first = claimed(store, fence)
    for seq, step in enumerate((10, 20), start=1):
        writer.events.write(Progressed(first.attempt, seq, progress(step, metrics={"train/loss": float(step)})))
    forward_all(mirror)
    writer.events.write(runs.Failed(first.attempt, runs.Failure("infrastructure", "lost"), requeue=True))
    forward_all(mirror)
    second = claimed(store, fence)
    for seq, step in enumerate((20, 30), start=1):
        writer.events.write(Progressed(second.attempt, seq, progress(step, metrics={"train/loss": float(step)})))
    writer.events.write(Finished(second.attempt, result()))
    forward_all(mirror)
    uid = store.trials.page(sweep).items[0].uid
    assert [step for _, step, _ in shelf.points[uid]] == [10, 20, 30]


def test_a_retried_trials_run_runs_again(store: Store, fence: int, writer: Writer, shelf: Shelf) -> None:
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    mirror = Mirror(store, writer, lambda: shelf)
    order = claimed(store, fence)
    writer.events.write(runs.Failed(order.attempt, runs.Failure("recipe", "ValueError: no"), requeue=False))
    forward_all(mirror)
    uid = store.trials.page(sweep).items[0].uid
    assert shelf.runs[uid].status == "FAILED"
    assert shelf.runs[uid].tags["metricsweep.error"] == "ValueError: no"
    writer.trials.retry(sweep)
    forward_all(mirror)
    assert (shelf.runs[uid].status, shelf.runs[uid].ended) == ("RUNNING", None)
    assert "metricsweep.error" not in shelf.runs[uid].tags


def test_an_evaluated_trials_run_gets_the_metric(store: Store, fence: int, writer: Writer, shelf: Shelf) -> None:
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    mirror = Mirror(store, writer, lambda: shelf, url=URL)
    run_all(store, fence)
    settle(store, fence, sweep)
    forward_all(mirror)
    (one,) = store.trials.page(sweep).items
    before = store.trials.get(one.id)
    (run_before,) = [run for run in shelf.runs.values() if run.kind == "trial"]
    wider = recipe(metrics=["nmi_sec"])
    plan = runs.PlannedTrial(0, 0, 0, {"seed": "0"}, wider, wider.fingerprint)
    asked = runs.MeasuredTrial(one.id, plan)
    spec = new_sweep().spec
    writer.sweeps.extend(sweep, runs.Extension("text", spec, 1, [], [], [], [asked]))
    order = claimed(store, fence)
    assert order.evaluation == runs.RequestedEvaluation(f"{before.training}/1/best.safetensors", ("nmi_sec",))
    told = Result(outcome="ok", metrics={"best/test/nmi_sec": 0.25}, steps=0, seconds=0.1)
    writer.events.write(Finished(order.attempt, told))
    settle(store, fence, sweep)
    forward_all(mirror)
    (run_after,) = [run for run in shelf.runs.values() if run.kind == "trial"]
    assert run_after.metrics["nmi_sec"] == 0.25
    assert run_after.metrics.keys() - {"nmi_sec"} == run_before.metrics.keys()
    assert "| further metrics | nmi\\_sec |" in run_after.tags[DESCRIPTION_TAG]
    assert f"| evaluated.training | {before.training} |" in run_after.tags[DESCRIPTION_TAG]
    assert [run.key for run in shelf.runs.values()].count(run_after.key) == 1
    assert (run_after.status, store.sweeps.get(sweep).state) == ("FINISHED", "finished")


def test_what_never_ran_has_no_run(store: Store, fence: int, writer: Writer, shelf: Shelf) -> None:
    queued = store.submissions.add_sweep(new_sweep()).id
    writer.trials.cancel(queued)
    sweep = started(store, fence)
    writer.trials.cancel(sweep)
    forward_all(Mirror(store, writer, lambda: shelf))
    assert list(shelf.experiments.values()) == [f"sample #{sweep}"]
    assert [shown.kind for shown in shelf.runs.values()] == ["sweep"]
    assert shelf.runs[f"{store.sweeps.get(sweep).uid}/summary"].status == "KILLED"


def test_a_mark_that_is_made_while_it_is_sent_is_kept(store: Store, fence: int, writer: Writer) -> None:
    started(store, fence, losses=["triplet"], seeds=[0])
    order = claimed(store, fence)
    writer.events.write(Started(order.attempt, "slot-0", "host-a"))
    rested(store)
    (dirty,) = [one for one in store.outbox.due(100) if one.kind == "trial"]
    writer.events.write(Finished(order.attempt, result()))
    writer.outbox.sent(dirty, "run-1", 0)
    (again,) = [one for one in store.outbox.due(100) if one.kind == "trial"]
    assert again.version > dirty.version
    writer.outbox.sent(again, "run-1", 0)
    assert store.outbox.lag() == 1


@pytest.mark.parametrize("end", ["cancelled", "not selected"])
def test_a_run_being_sent_is_sent_again_once_ended(store: Store, fence: int, writer: Writer, end: str) -> None:
    """Its id is not noted yet: the world of seed 20388 ended with a cancelled trial that MLflow showed as RUNNING."""
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    order = claimed(store, fence)
    if end == "not selected":
        run(store, fence, order)
    else:
        fail(store, fence, order, requeue=True, kind="machine")
    rested(store)
    (told,) = [one for one in store.outbox.due(100) if one.kind == "trial"]
    if end == "cancelled":
        writer.trials.cancel(sweep)
    else:
        writer.events.write(runs.CellSettled(sweep, runs.CellSummary(0, "complete", 1, {}, KEY, None, {}, 1)))
    writer.outbox.sent(told, "run-1", 0)
    assert "trial" in {one.kind for one in store.outbox.due(100)}


def test_an_unavailable_tracker_is_tried_rarely(store: Store, fence: int, writer: Writer, shelf: Shelf) -> None:
    started(store, fence)
    run_all(store, fence)
    shelf.away = True
    mirror = Mirror(store, writer, lambda: shelf)
    assert mirror.forward(100) == 0
    assert shelf.calls == 2
    assert mirror.forward(100) == 0
    assert shelf.calls == 2
    assert store.outbox.lag() == 5


def test_one_bad_run_does_not_keep_the_others(
    store: Store, fence: int, writer: Writer, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    sweep = started(store, fence)
    run_all(store, fence)
    first, second, *others = store.trials.page(sweep).items
    shelf.poison.add("triplet · margin=0.2 · seed=0")
    shelf.refused.add("triplet · margin=0.2 · seed=1")
    mirror = Mirror(store, writer, lambda: shelf)
    forward_all(mirror)
    assert {one.uid for one in others} <= set(shelf.runs)
    assert not {first.uid, second.uid} & set(shelf.runs)
    assert store.outbox.lag() == 2
    assert "too long" in caplog.text
    assert (store.outbox.backlog(sweep).error, store.outbox.backlog(sweep + 1).error) == ("ValueError: too long", None)
    shelf.poison.clear()
    shelf.refused.clear()
    deadline = time.monotonic() + 60
    while store.outbox.lag() and time.monotonic() < deadline:
        mirror.forward(10)
        time.sleep(0.05)
    assert {first.uid, second.uid} <= set(shelf.runs)


def test_a_mark_from_before_the_clock_was_set_back_is_due(store: Store, fence: int, writer: Writer) -> None:
    started(store, fence)
    (mark,) = store.outbox.due(10)
    writer.outbox.postpone(mark, "away", 30)
    assert store.outbox.due(10) == []
    writer.outbox.postpone(mark, "away", 3_600)  # what a clock an hour ahead would have written
    assert [one.id for one in store.outbox.due(10)] == [mark.id]


def ended(store: Store, fence: int) -> int:
    sweep = started(store, fence)
    run_all(store, fence)
    settle(store, fence, sweep)
    return sweep


def deleted(store: Store, fence: int, sweep: int) -> None:
    request = store.submissions.add_request("delete", sweep, None, None)
    store.writer(fence).sweeps.delete(sweep, request)


def test_a_killed_deletion_leaves_no_experiment(store: Store, fence: int, writer: Writer, shelf: Shelf) -> None:
    """Killed right after the deletion, and the next one while MLflow is away: the third removes it."""
    sweep, other = ended(store, fence), ended(store, fence)
    forward_all(Mirror(store, writer, lambda: shelf, url=URL))
    assert (len(shelf.experiments), store.outbox.lag()) == (2, 0)
    deleted(store, fence, sweep)
    shelf.away = True
    assert Mirror(store, writer, lambda: shelf, url=URL).forward() == 0
    shelf.away = False
    third = Mirror(store, writer, lambda: shelf, url=URL)
    assert third.forward() == 0
    assert list(shelf.experiments) == [store.runs.experiment(other)]
    calls = shelf.calls
    assert third.forward() == Mirror(store, writer, lambda: shelf, url=URL).forward() == 0
    assert shelf.calls == calls, "what is removed is not asked for again"


def test_a_sweep_deleted_while_its_experiment_is_made_leaves_none(
    store: Store, fence: int, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep, shelf = ended(store, fence), Shelf()
    make = shelf.experiment

    def make_and_delete(*given: Any) -> str:
        made = make(*given)
        writer.sweeps.delete(sweep)
        return made

    monkeypatch.setattr(shelf, "experiment", make_and_delete)
    mirror = Mirror(store, writer, lambda: shelf, url=URL)
    assert mirror.forward(1) == 0
    assert (shelf.calls, shelf.experiments, shelf.runs) == (2, {}, {})
    assert (mirror.forward(10), store.outbox.lag()) == (0, 0)
