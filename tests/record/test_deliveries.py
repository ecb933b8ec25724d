"""Deliveries: what is noted for the webhook with each change, once, and what becomes of it; over both databases."""

from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.record.schema import delivery
from orchestrator.record.store import Store, Writer
from orchestrator.views.runs import CellSettled, CellSummary, SweepSettled
from tests.record.conftest import ON_BOTH
from tests.record.sample import claimed, fail, new_sweep, run_all, started


def noted(store: Store) -> list[tuple[str, int]]:
    return [(one.event.value, one.sweep) for one in sorted(store.deliveries.due(100), key=lambda one: one.id)]


def age(store: Store, seconds: float) -> None:
    with store.database.writing() as connection:
        connection.execute(sa.update(delivery).values(created=delivery.c.created - seconds))


def settle(store: Store, fence: int, sweep: int) -> None:
    for cell in (0, 1):
        store.writer(fence).events.write(CellSettled(sweep, CellSummary(cell, "complete", 0, {}, "key", None, {}, 1)))
    store.writer(fence).events.write(SweepSettled(sweep))


def test_each_end_of_a_sweep_is_noted_as_it_was_then(store: Store, fence: int, writer: Writer) -> None:
    good = started(store, fence, "good")
    run_all(store, fence)
    settle(store, fence, good)
    settle(store, fence, good)  # a second time is no second end
    bad = started(store, fence, "bad", fresh=True)
    fail(store, fence, claimed(store, fence))
    run_all(store, fence)
    settle(store, fence, bad)
    stopped = started(store, fence, "stopped", fresh=True)
    writer.trials.cancel(stopped)
    unexpanded = store.submissions.add_sweep(new_sweep("unexpanded")).id
    writer.sweeps.fail(unexpanded, "cannot be expanded")
    assert noted(store) == [
        ("sweep.finished", good), ("sweep.failed", bad), ("sweep.cancelled", stopped), ("sweep.failed", unexpanded),
    ]  # fmt: skip
    writer.trials.retry(bad)
    writer.sweeps.delete(good)
    said = {one.sweep: one.said for one in store.deliveries.due(100)}
    assert said[good]["counts"]["finished"] == said[good]["trials"] == 4
    assert (said[bad]["state"], said[bad]["counts"]["failed"], said[bad]["counts"]["finished"]) == ("failed", 1, 3)
    assert said[stopped]["counts"]["cancelled"] == 4
    run_all(store, fence)
    settle(store, fence, bad)
    assert noted(store)[-1] == ("sweep.finished", bad)  # another end


def test_a_transaction_that_is_rolled_back_sends_nothing(
    store: Store, fence: int, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = started(store, fence)

    def die(*_: Any) -> None:
        raise RuntimeError("killed in the middle")

    monkeypatch.setattr("orchestrator.record.changes.tell_state", die)
    with pytest.raises(RuntimeError, match="killed"):
        writer.trials.cancel(sweep)
    assert (store.sweeps.get(sweep).state, noted(store)) == ("running", [])


@ON_BOTH
def test_stalls_and_hindrances_are_told_once_an_hour(store: Store, fence: int, writer: Writer) -> None:
    sweep, other = started(store, fence), started(store, fence, "other", fresh=True)
    for _ in range(2):
        fail(store, fence, claimed(store, fence), requeue=True, kind="stalled")
    fail(store, fence, claimed(store, fence), requeue=True, kind="infrastructure")
    for said in ("no node has 9 CPUs", "no node has 9 CPUs, 3 trials", None, "no node has 9 CPUs"):
        writer.capacity.note_notices({sweep: said} if said else {})
    assert noted(store) == [("sweep.stalled", sweep), ("sweep.hindered", sweep)]
    stalled, hindered = sorted(store.deliveries.due(100), key=lambda one: one.id)
    assert stalled.said["trial"] == store.trials.page(sweep).items[0].id
    assert (stalled.said["state"], hindered.said["detail"]) == ("running", "no node has 9 CPUs")
    age(store, 3_601)
    writer.capacity.note_notices({other: "no machine has cub200"})
    writer.capacity.note_notices({other: "no machine has cub200", sweep: "again"})
    assert noted(store)[2:] == [("sweep.hindered", other), ("sweep.hindered", sweep)]


@ON_BOTH
def test_what_was_settled_is_kept_a_week_and_what_nobody_wants_is_dropped(store: Store, writer: Writer) -> None:
    for name in ("a", "b", "c"):
        writer.sweeps.fail(store.submissions.add_sweep(new_sweep(name)).id, "no")
    told, refused, waits = (one.id for one in store.deliveries.due(100))
    writer.deliveries.delivered(told)
    writer.deliveries.postpone(refused, "answered 500", 60)
    assert [one.id for one in store.deliveries.due(100)] == [waits]
    backlog = store.deliveries.backlog()
    assert (backlog.waiting, backlog.failing, backlog.given_up, backlog.error) == (2, 1, 0, "answered 500")
    writer.deliveries.give_up(refused, "answered 410")
    writer.deliveries.prune(wanted=True)
    assert (store.deliveries.backlog().given_up, store.deliveries.backlog().waiting) == (1, 1)
    age(store, 8 * 86_400)
    writer.deliveries.prune(wanted=True)
    assert (store.deliveries.backlog().given_up, store.deliveries.backlog().waiting) == (0, 1)
    assert store.deliveries.backlog().seconds > 8 * 86_400
    writer.deliveries.prune(wanted=False)
    assert store.deliveries.backlog().waiting == 0
