"""What MLflow shows is what the database says, whatever became of MLflow meanwhile; over a real server."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from orchestrator.record.mlflow.client import KEY_TAG
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.mlflow.tracker import RunMirror
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import FencedError
from orchestrator.views.runs import Finished, Progressed, Started
from tests.inline_conductor import Killed
from tests.mlflow_server import Another
from tests.record.sample import claimed, lease, progress, result, run_all, started
from tests.record.test_recorder import forward_all, rested, settle

Shown = dict[str, tuple[Any, ...]]
"""By key what a run shows: status, times, params, tags, curves."""
Mirrored = Callable[[int], Mirror]


@pytest.fixture
def mirrored(store: Store, another_tracker: Another) -> Mirrored:
    return lambda fence: Mirror(store, store.writer(fence), another_tracker)


def shown(client: MlflowClient, store: Store, sweep: int) -> Shown:
    """Every run of a sweep; its tag of the parent by the parent's key, since ids may be others."""
    runs = client.search_runs([store.runs.experiment(sweep)])
    keys = {run.info.run_id: run.data.tags[KEY_TAG] for run in runs}
    assert len(set(keys.values())) == len(runs), "no run twice"
    found: Shown = {}
    for run in runs:
        tags = {key: value for key, value in run.data.tags.items() if key != "mlflow.user"}
        if "mlflow.parentRunId" in tags:
            tags["mlflow.parentRunId"] = keys[tags["mlflow.parentRunId"]]
        curves = {
            key: [(one.step, one.timestamp, one.value) for one in client.get_metric_history(run.info.run_id, key)]
            for key in run.data.metrics
        }
        head = (run.info.status, run.info.start_time, run.info.end_time)
        found[keys[run.info.run_id]] = (*head, run.data.params, tags, curves)
    return found


def test_a_deleted_run_is_made_anew(
    store: Store, fence: int, writer: Writer, client: MlflowClient, mirrored: Mirrored
) -> None:
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    order, mirror = claimed(store, fence), mirrored(fence)
    writer.events.write(Started(order.attempt, "slot-0", "host-a"))
    for seq in (1, 2):
        message = Progressed(order.attempt, seq, progress(10 * seq, metrics={"train/loss": 1 / seq}))
        writer.events.write(message)
        rested(store)
        forward_all(mirror)
        (trial,) = store.trials.page(sweep).items
        run = store.runs.run("trial", sweep, trial.id)
        if seq == 1:
            client.delete_run(run)
    assert [point.step for point in client.get_metric_history(run, "train/loss")] == [10, 20]


def test_a_wiped_mlflow_is_filled_anew(
    store: Store, fence: int, writer: Writer, client: MlflowClient, mirrored: Mirrored
) -> None:
    first, second = (started(store, fence, name=name, fresh=True, losses=["triplet"]) for name in ("first", "second"))
    run_all(store, fence)
    for sweep in (first, second):
        settle(store, fence, sweep)
    mirror = mirrored(fence)
    forward_all(mirror)
    before = {sweep: shown(client, store, sweep) for sweep in (first, second)}
    assert [len(runs) for runs in before.values()] == [4, 4]
    for sweep in (first, second):  # a wiped MLflow gives the numbers of its experiments out again
        client.delete_experiment(store.runs.experiment(sweep))
    for sweep in (second, first):
        assert writer.outbox.mirror_again(sweep) == 4
        forward_all(mirror)
    assert {sweep: shown(client, store, sweep) for sweep in (first, second)} == before


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_killed_at_any_moment_it_tells_every_run_once(
    store: Store,
    client: MlflowClient,
    mirrored: Mirrored,
    another_tracker: Another,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    """Killed before a request reaches MLflow, or before its answer reaches us; then everything is sent again."""
    drawn = random.Random(seed)
    fence = lease(store)
    sweep = started(store, fence, seeds=[0])
    run_all(store, fence)
    settle(store, fence, sweep)
    forward_all(mirrored(fence))
    whole = shown(client, store, sweep)
    for run in client.search_runs([store.runs.experiment(sweep)]):
        if drawn.random() < 0.6:
            client.delete_run(run.info.run_id)
    store.writer(fence).outbox.mirror_again(sweep)
    kills, told = 0, False
    while not told:
        told_by: Any = another_tracker()
        asked = told_by._client
        for name in ("create_run", "log_batch", "set_terminated", "search_runs", "delete_run", "set_experiment_tag"):
            monkeypatch.setattr(asked, name, mortal(getattr(asked, name), drawn, kills))
        try:
            forward_all(Mirror(store, store.writer(fence), lambda told_by=told_by: told_by))
            told = True
        except Killed:
            kills += 1
            if drawn.random() < 0.3:
                store.writer(fence).outbox.mirror_again(sweep)
    assert kills
    assert store.outbox.lag() == 0
    assert shown(client, store, sweep) == whole


def mortal(call: Callable[..., Any], drawn: random.Random, kills: int) -> Callable[..., Any]:
    """The same call, at which the process may be killed: before it, or before its answer is read."""

    def either(*given: Any, **more: Any) -> Any:
        moment = drawn.random() if kills < 12 else 1.0
        if moment < 0.06:
            raise Killed
        answer = call(*given, **more)
        if moment < 0.16:
            raise Killed
        return answer

    return either


def test_what_is_sent_after_the_lease_is_sent_anew_by_the_next(
    store: Store, fence: int, client: MlflowClient, another_tracker: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood still with a request on its way; MLflow knows no fence, and shows what it was sent last."""
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    order = claimed(store, fence)
    for event in (
        Started(order.attempt, "slot-0", "host-a"),
        Progressed(order.attempt, 1, progress(10, metrics={"train/loss": 1.0})),
    ):
        store.writer(fence).events.write(event)
    rested(store)
    stalled: Any = another_tracker()
    real = type(stalled).mirror
    next_fence: list[int] = []

    def late(self: Any, experiment: str, run: RunMirror) -> str:
        if self is stalled and run.points and not next_fence:
            store.writer(fence).lease.release()
            next_fence.append(lease(store, "next"))
            store.writer(next_fence[0]).events.write(Finished(order.attempt, result()))
            forward_all(Mirror(store, store.writer(next_fence[0]), another_tracker))
        return real(self, experiment, run)

    monkeypatch.setattr(type(stalled), "mirror", late)
    mirror = Mirror(store, store.writer(fence), lambda: stalled)
    with pytest.raises(FencedError):
        forward_all(mirror)
    (asked,) = store.requests.pending()
    assert (asked.kind, asked.sweep) == ("mirror", sweep)
    assert mirror.forward() == 0
    assert len(store.requests.pending()) == 1, "asked for once"
    writer = store.writer(next_fence[0])
    writer.outbox.mirror_again(asked.sweep)
    forward_all(Mirror(store, writer, another_tracker))
    (trial,) = store.trials.page(sweep).items
    assert client.get_run(store.runs.run("trial", sweep, trial.id)).info.status == "FINISHED"


def test_a_send_during_a_new_full_mirror_is_not_recorded(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    run_all(store, fence)
    (sent,) = [one for one in store.outbox.due(100) if one.kind == "trial"]
    writer.outbox.mirror_again(sweep)
    writer.outbox.sent(sent, "in the MLflow that was wiped", 7)
    assert store.runs.run("trial", sweep, sent.entity) is None
    assert [point.step for point in store.mirror_states.trial(sent.entity).points] == [10, 20]
    assert "trial" in {one.kind for one in store.outbox.due(100)}
