"""Changes: each is reported once, in the order of the commits; and what transactions of Postgres wait for."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.record import changes, schema
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import NotFoundError
from orchestrator.views.pages import TagChange
from orchestrator.views.runs import ChangeKind, SweepSettled
from tests.record.conftest import OVER_POSTGRES
from tests.record.sample import claimed, fail, lease, new_sweep, started

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


def test_a_stall_is_told_and_another_loss_is_not(store: Store, fence: int) -> None:
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
        changes.alone(connection)
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
def test_a_note_on_a_sweep_being_deleted_is_refused(
    store: Store, fence: int, writer: Writer, another: Callable[[], Store]
) -> None:
    sweep = started(store, fence)
    writer.trials.cancel(sweep)
    writer.events.write(SweepSettled(sweep))
    other, refusals = another(), list[NotFoundError]()

    def remark() -> None:
        try:
            other.remarks.put(("sweep", sweep, sweep), "odd", None, "ann")
        except NotFoundError as error:
            refusals.append(error)

    threads = at(store, "DELETE FROM note", other, remark)
    writer.sweeps.delete(sweep)
    threads[0].join(HANGS)
    assert len(refusals) == 1


@OVER_POSTGRES
def test_of_two_who_tag_at_once_the_later_ones_tags_stay(store: Store, another: Callable[[], Store]) -> None:
    sweep, other = started(store, lease(store)), another()
    assert sweep == 1
    threads = at(
        store,
        "DELETE FROM tag",
        other,
        lambda: other.remarks.put(("trial", 1, 1), None, TagChange(["both", "second"]), "bob"),
    )
    store.remarks.put(("trial", 1, 1), None, TagChange(["both", "first"]), "ann")
    threads[0].join(HANGS)
    assert store.remarks.of("trial", 1, 1).tags == ["both", "second"]
