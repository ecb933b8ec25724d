"""Remarks beside what else is written of their sweep at the same moment."""

import threading
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from orchestrator.record.store import Store
from orchestrator.views.errors import NotFoundError
from orchestrator.views.events import SweepSettled
from orchestrator.views.remarks import TagChange
from tests.record.sample import lease, started
from tests.record.side_by_side import HANGS, OVER_POSTGRES, beside, waits_for_a_lock


def at(store: Store, begun: str, other: Store, act: Callable[[], Any]) -> list[threading.Thread]:
    """Has something be done beside the first statement that begins so, which waits then; gives its thread."""
    threads: list[threading.Thread] = []

    def heard(connection: Any, cursor: Any, statement: str, *given: Any) -> None:
        if statement.startswith(begun) and not threads:
            threads.append(beside(act))
            waits_for_a_lock(other)

    sa.event.listen(store.database.engine, "after_cursor_execute", heard)
    return threads


@OVER_POSTGRES
def test_a_remark_on_a_sweep_that_is_just_being_deleted_is_refused(store: Store, another: Callable[[], Store]) -> None:
    fence = lease(store)
    sweep = started(store, fence)
    store.writer(fence).trials.cancel(sweep)
    store.writer(fence).events.write(SweepSettled(sweep))
    other, refusals = another(), list[NotFoundError]()

    def remark() -> None:
        try:
            other.remarks.put(("sweep", sweep, sweep), "odd", None, "ann")
        except NotFoundError as error:
            refusals.append(error)

    threads = at(store, "DELETE FROM note", other, remark)
    store.writer(fence).sweeps.delete(sweep)
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
