"""What clients append: sweeps, once per idempotency key, and requests."""

import threading
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.store import Store
from orchestrator.record.writes.backlog import MOST_WAITING_OF
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.submissions import Submitted
from tests.record.sample import lease, new_sweep, started


def test_a_known_key_gives_the_known_sweep(store: Store) -> None:
    first = store.submissions.add_sweep(new_sweep(key="k"))
    again = store.submissions.add_sweep(new_sweep(key="k"))
    assert first.created
    assert (again.id, again.uid, again.created) == (first.id, first.uid, False)
    assert store.submissions.add_sweep(new_sweep(key="other")).id != first.id
    assert store.submissions.add_sweep(new_sweep()).created
    assert store.submissions.add_sweep(new_sweep()).created
    with pytest.raises(ConflictError, match=f"belongs to sweep {first.id}"):
        store.submissions.add_sweep(new_sweep(key="k", body_hash="another"))


def test_concurrent_duplicates_become_one_sweep(store: Store, another: Callable[[], Store]) -> None:
    shared = another()
    answers: list[Submitted] = []
    gate = threading.Barrier(8)

    def submit(own: Store) -> None:
        gate.wait()
        answers.append(own.submissions.add_sweep(new_sweep(key="k")))

    threads = [threading.Thread(target=submit, args=(store if n % 2 else shared,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len({answer.id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1
    assert len(store.sweeps.page().items) == 1


def test_requests_are_applied_in_order(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence)
    trial = store.trials.page(sweep).items[0].id
    first = store.submissions.add_request("cancel", sweep, None, "ann")
    second = store.submissions.add_request("retry", sweep, trial, None)
    assert [(one.id, one.kind, one.sweep, one.trial, one.actor) for one in store.requests.pending()] == [
        (first, "cancel", sweep, None, "ann"),
        (second, "retry", sweep, trial, None),
    ]
    store.writer(fence).requests.applied(first, "cancelled 4 trials")
    assert [one.id for one in store.requests.pending()] == [second]


def test_a_request_names_what_exists(store: Store) -> None:
    fence = lease(store)
    one, two = started(store, fence), started(store, fence)
    with pytest.raises(NotFoundError, match="no sweep 99"):
        store.submissions.add_request("cancel", 99, None, None)
    trial = store.trials.page(two).items[0].id
    with pytest.raises(NotFoundError, match=f"no trial {trial} in sweep {one}"):
        store.submissions.add_request("cancel", one, trial, None)
    assert store.requests.pending() == []


def test_what_waits_for_a_sweep_has_a_limit(store: Store) -> None:
    fence = lease(store)
    one, two = started(store, fence), started(store, fence)
    asked = [store.submissions.add_request("extend", one, None, None, {"text": "x", "spec": {}}) for _ in range(4)]
    assert len(asked) == MOST_WAITING_OF["extend"]
    with pytest.raises(ConflictError, match=f"4 requests of the kind 'extend' wait for sweep {one} already"):
        store.submissions.add_request("extend", one, None, None, {"text": "x", "spec": {}})
    store.submissions.add_request("extend", two, None, None, {"text": "x", "spec": {}})
    store.submissions.add_request("cancel", one, None, None)
    store.writer(fence).requests.applied(asked[0], "0 trials added")
    store.submissions.add_request("extend", one, None, None, {"text": "x", "spec": {}})


def test_an_extension_that_was_carried_out_keeps_no_spec(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence)
    wider = store.submissions.add_request("extend", sweep, None, None, {"text": "x" * 1_000, "spec": {}})
    part = store.submissions.add_request("cancel", sweep, None, None, {"cell": 1})
    for one in (wider, part):
        store.writer(fence).requests.applied(one, "0 trials")
    assert store.requests.get(part).cell == 1
    assert store.requests.looks(sweep) == ()
    with store.database.reading() as connection:
        kept = sa.select(schema.request.c.arguments).where(schema.request.c.id == wider)
        assert connection.execute(kept).scalar_one() is None
