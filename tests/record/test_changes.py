"""Changes: each is reported once, in the order of the commits; and what is noted of it for the webhook."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.record import changes, schema
from orchestrator.record.requests import MOST_WAITING_OF
from orchestrator.record.schema import delivery
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.evidence import CellSeeds, ResolutionBudget, ResolutionRound, ResolutionView
from orchestrator.views.pages import TagChange
from orchestrator.views.runs import CellSettled, CellSummary, ChangeKind, Extension, PlannedTrial, SweepSettled
from orchestrator.views.sweeps import Submitted
from tests.record.conftest import ON_BOTH, OVER_POSTGRES
from tests.record.sample import claimed, fail, lease, new_sweep, recipe, run_all, started

HANGS = 60.0
"""Seconds after which something that waits for ever is given up."""


def waits_for_a_lock(store: Store) -> None:
    """Return once a transaction waits for a lock."""
    query = sa.text(
        "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) "
        "WHERE NOT granted AND datname = current_database()"
    )
    deadline = time.monotonic() + HANGS
    while time.monotonic() < deadline:
        with store.database.reading() as connection:
            if connection.execute(query).scalar_one():
                return
    pytest.fail("nobody waits")


def beside(act: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def told(store: Store, position: int = 0) -> list[tuple[str, int]]:
    span = store.changes.after(position, 1_000)
    return [(one.view.type, one.view.trial or one.view.request or one.view.sweep) for one in span.changes]


def test_a_stall_is_announced_and_another_loss_is_not(store: Store, fence: int) -> None:
    sweep = started(store, fence)
    for kind in ("infrastructure", "stalled"):
        order, before = claimed(store, fence), store.changes.newest()
        fail(store, fence, order, requeue=True, kind=kind)
        heard = [one.view for one in store.changes.after(before, 1_000).changes]
        found = [(one.sweep, one.trial) for one in heard if one.type is ChangeKind.STALLED]
        assert found == ([(sweep, order.trial)] if kind == "stalled" else [])
        assert "trial" in {one.type for one in heard}, "it waits again either way"


@OVER_POSTGRES
def test_a_client_waits_for_a_conductor(store: Store, fence: int, writer: Writer, another: Callable[[], Store]) -> None:
    """Else a stream that has read the later number would never look for the earlier one."""
    sweep = started(store, fence)
    other, before = another(), store.changes.newest()
    with writer.sweeps._database.writing() as connection:
        changes.note(connection, ChangeKind.NOTICE, sweep, sweep)
        client = beside(lambda: other.submissions.add_request("pause", sweep, None, "ann"))
        waits_for_a_lock(other)
        assert other.changes.newest() == before
    client.join(HANGS)
    assert [kind for kind, _ in told(store, before)] == ["notice", "request"]


@OVER_POSTGRES
def test_a_conductor_waits_for_a_client(store: Store, fence: int, writer: Writer, another: Callable[[], Store]) -> None:
    sweep = started(store, fence)
    other, before = another(), store.changes.newest()
    with other.database.writing() as connection:
        changes.lock_changes(connection)
        changes.note(connection, ChangeKind.REQUEST, sweep, 7)
        conductor = beside(lambda: writer.sweeps.prioritize(sweep, 3))
        waits_for_a_lock(other)
        assert other.changes.newest() == before
    conductor.join(HANGS)
    assert [kind for kind, _ in told(store, before)] == ["request", "sweep"]


@OVER_POSTGRES
def test_they_never_wait_for_each_other(store: Store, fence: int, writer: Writer, another: Callable[[], Store]) -> None:
    """A conductor has changed the rows of a sweep when it comes to note that: nobody may wait for both."""
    sweep = started(store, fence)
    other = another()
    with writer.sweeps._database.writing() as connection:
        for table, mine in ((schema.sweep, schema.sweep.c.id), (schema.trial, schema.trial.c.sweep_id)):
            connection.execute(sa.update(table).where(mine == sweep).values(started=None))
        acts = (
            lambda: other.submissions.add_request("cancel", sweep, 1, "ann"),
            lambda: other.submissions.add_sweep(new_sweep("second")),
        )
        for act in acts:
            client = beside(act)
            client.join(HANGS)
            assert not client.is_alive()
        changes.note(connection, ChangeKind.SWEEP, sweep, sweep)


def at(store: Store, begun: str, other: Store, act: Callable[[], Any]) -> list[threading.Thread]:
    """Call `act` in a thread after the first statement that begins with `begun`, and wait until it waits for a lock."""
    threads: list[threading.Thread] = []

    def heard(connection: Any, cursor: Any, statement: str, *given: Any) -> None:
        if statement.startswith(begun) and not threads:
            threads.append(beside(act))
            waits_for_a_lock(other)

    sa.event.listen(store.database.engine, "after_cursor_execute", heard)
    return threads


@OVER_POSTGRES
def test_a_sweep_in_deletion_no_note(store: Store, fence: int, writer: Writer, another: Callable[[], Store]) -> None:
    sweep = started(store, fence)
    writer.trials.cancel(sweep)
    writer.events.write(SweepSettled(sweep))
    other, refusals = another(), list[NotFoundError]()

    def annotation() -> None:
        try:
            other.annotations.put(("sweep", sweep, sweep), "odd", None, "ann")
        except NotFoundError as error:
            refusals.append(error)

    threads = at(store, "DELETE FROM note", other, annotation)
    writer.sweeps.delete(sweep)
    threads[0].join(HANGS)
    assert len(refusals) == 1


@OVER_POSTGRES
def test_of_two_users_who_tag_at_once_the_later_tags_stay(store: Store, another: Callable[[], Store]) -> None:
    sweep, other = started(store, lease(store)), another()
    assert sweep == 1
    threads = at(
        store,
        "DELETE FROM tag",
        other,
        lambda: other.annotations.put(("trial", 1, 1), None, TagChange(["both", "second"]), "bob"),
    )
    store.annotations.put(("trial", 1, 1), None, TagChange(["both", "first"]), "ann")
    threads[0].join(HANGS)
    assert store.annotations.of("trial", 1, 1).tags == ["both", "second"]


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
    said = {one.sweep: one.message for one in store.deliveries.due(100)}
    assert said[good]["counts"]["finished"] == said[good]["trials"] == 4
    assert (said[bad]["state"], said[bad]["counts"]["failed"], said[bad]["counts"]["finished"]) == ("failed", 1, 3)
    assert said[stopped]["counts"]["cancelled"] == 4
    run_all(store, fence)
    settle(store, fence, bad)
    assert noted(store)[-1] == ("sweep.finished", bad)  # another end


def test_a_rollback_sends_nothing(store: Store, fence: int, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = started(store, fence)

    def die(*_: Any) -> None:
        raise RuntimeError("killed in the middle")

    monkeypatch.setattr("orchestrator.record.changes.queue_delivery_state", die)
    with pytest.raises(RuntimeError, match="killed"):
        writer.trials.cancel(sweep)
    assert (store.sweeps.get(sweep).state, noted(store)) == ("running", [])


@ON_BOTH
def test_stalls_and_obstacles_are_reported_once_an_hour(store: Store, fence: int, writer: Writer) -> None:
    sweep, other = started(store, fence), started(store, fence, "other", fresh=True)
    for _ in range(2):
        fail(store, fence, claimed(store, fence), requeue=True, kind="stalled")
    fail(store, fence, claimed(store, fence), requeue=True, kind="infrastructure")
    for message in ("no node has 9 CPUs", "no node has 9 CPUs, 3 trials", None, "no node has 9 CPUs"):
        writer.capacity.note_notices({sweep: message} if message else {})
    assert noted(store) == [("sweep.stalled", sweep), ("sweep.blocked", sweep)]
    stalled, blocked = sorted(store.deliveries.due(100), key=lambda one: one.id)
    assert stalled.message["trial"] == store.trials.page(sweep).items[0].id
    assert (stalled.message["state"], blocked.message["detail"]) == ("running", "no node has 9 CPUs")
    age(store, 3_601)
    writer.capacity.note_notices({other: "no machine has cub200"})
    writer.capacity.note_notices({other: "no machine has cub200", sweep: "again"})
    assert noted(store)[2:] == [("sweep.blocked", other), ("sweep.blocked", sweep)]


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


@ON_BOTH
def test_concurrent_duplicates_become_one_sweep(store: Store, another: Callable[[], Store]) -> None:
    gate = threading.Barrier(8)

    def submit(own: Store) -> Submitted:
        gate.wait()
        return own.submissions.add_sweep(new_sweep(key="k"))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(submit, [store, another()] * 4))
    assert len({answer.id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1
    assert len(store.sweeps.page()[0].items) == 1


@ON_BOTH
def test_what_waits_for_a_sweep_has_a_limit(store: Store, fence: int, writer: Writer) -> None:
    one, two = started(store, fence), started(store, fence)
    asked = [store.submissions.add_request("extend", one, None, None, {"text": "x", "spec": {}}) for _ in range(4)]
    assert len(asked) == MOST_WAITING_OF["extend"]
    with pytest.raises(ConflictError, match=f"4 requests of the kind 'extend' wait for sweep {one}"):
        store.submissions.add_request("extend", one, None, None, {"text": "x", "spec": {}})
    store.submissions.add_request("extend", two, None, None, {"text": "x", "spec": {}})
    store.submissions.add_request("cancel", one, None, None)
    writer.requests.applied(asked[0], "0 trials added")
    store.submissions.add_request("extend", one, None, None, {"text": "x", "spec": {}})


def test_an_extension_that_was_carried_out_keeps_no_spec(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence)
    wider = store.submissions.add_request("extend", sweep, None, None, {"text": "x" * 1_000, "spec": {}})
    part = store.submissions.add_request("cancel", sweep, None, None, {"cell": 1})
    for one in (wider, part):
        writer.requests.applied(one, "0 trials")
    assert store.requests.get(part).cell == 1
    assert store.requests.looks(sweep) == ()
    with store.database.reading() as connection:
        kept = sa.select(schema.request.c.arguments).where(schema.request.c.id == wider)
        assert connection.execute(kept).scalar_one() is None


def carry_out(store: Store, fence: int, sweep: int, asked: int, seed: int) -> None:
    made = recipe("triplet", seed)
    trial = PlannedTrial(0, 0, seed, {"seed": str(seed)}, made, made.fingerprint)
    store.writer(fence).sweeps.extend(sweep, Extension("text", {}, seed, [], [], [trial]), asked)
    store.writer(fence).requests.applied(asked, "1 trial added")


@ON_BOTH
def test_a_round_and_its_extension_are_written_together(store: Store, fence: int) -> None:
    sweep = started(store, fence)
    run_all(store, fence)
    budget = ResolutionBudget(seeds=2)
    writer = store.writer(fence).resolutions
    asked = store.submissions.add_request("resolve", sweep, None, "ann")
    for _ in range(2):  # again after a crash
        writer.begin(sweep, asked, "main", budget, "ann")
    (going,) = store.resolutions.going(sweep)
    with pytest.raises(ConflictError, match="is still active"):
        writer.begin(sweep, 99, "main", budget, None)
    coming = ResolutionRound(
        number=1, cells=[CellSeeds(cell=0, labels={"loss": "triplet"}, seeds=[2])], trials=1, hours=None, open=1
    )
    report = going.report.model_copy(update={"rounds": [coming], "trials": 1})
    asked = writer.grow(going, report, {"text": "wider", "spec": {}})
    (waiting,) = [one for one in store.requests.pending() if one.kind == "extend"]
    assert (waiting.id, waiting.arguments["text"], waiting.actor) == (asked, "wider", "ann")
    (going,) = store.resolutions.going()
    assert (going.position, going.report.rounds[0].request, going.budget) == (4, asked, budget)
    assert not store.resolutions.at_rest(sweep)
    carry_out(store, fence, sweep, asked, 2)
    assert store.requests.looks(sweep)[0].position == 4
    writer.end(going, "1 of 1 comparison decided", going.report)
    with pytest.raises(ConflictError, match="has ended"):
        writer.grow(going, report, {})
    found = store.resolutions.latest(sweep)
    assert isinstance(found, ResolutionView)
    assert (found.state, found.summary, found.trials) == ("ended", "1 of 1 comparison decided", 1)
