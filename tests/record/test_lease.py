"""One conductor at a time: the lease, its fence, and what a conductor that lost it may still do (nothing)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from orchestrator.conduct.lease import Standby
from orchestrator.record.lease import HeldLease
from orchestrator.record.store import Store
from orchestrator.record.sweeps import PlanRows
from orchestrator.views import runs
from orchestrator.views.errors import FencedError, UnavailableError
from tests.record.conftest import ON_BOTH
from tests.record.sample import SLOT, claimed, lease, new_sweep, planned, progress, result, started, states


@ON_BOTH
def test_the_lease_has_one_holder_and_every_holder_a_higher_fence(store: Store, another: Callable[[], Store]) -> None:
    other = another()
    first = store.lease.acquire("one", 600)
    assert first == 1
    assert other.lease.acquire("two", 600) is None
    assert store.writer(first).lease.renew(600)
    store.writer(first).lease.release()
    assert not store.lease.conducted()
    second = other.lease.acquire("two", 600)
    assert store.lease.conducted()
    assert second == 2
    assert not store.writer(first).lease.renew(600)
    store.writer(first).lease.release()  # another's lease is not given back
    assert store.lease.acquire("one", 600) is None


@ON_BOTH
def test_an_installation_has_one_name(store: Store, another: Callable[[], Store]) -> None:
    first = lease(store, seconds=-1)
    name = store.writer(first).lease.installation()
    second = lease(another(), "conductor-2")
    assert another().writer(second).lease.installation() == name
    with pytest.raises(FencedError):
        store.writer(first).lease.installation()


def test_a_lease_that_ran_out_but_was_not_taken_still_writes(store: Store) -> None:
    fence = lease(store, seconds=-1)
    started(store, fence)
    assert store.writer(fence).lease.renew(600)
    assert store.lease.acquire("two", 600) is None


@ON_BOTH
def test_a_clock_set_back_keeps_no_dead_conductor_alive(store: Store) -> None:
    first = store.lease.acquire("one", 3600)  # as a clock an hour ahead would have written it
    assert first is not None
    seen = store.lease.held()
    assert seen is not None
    assert store.lease.acquire("two", 600) is None
    assert store.lease.acquire("two", 600, seen) == first + 1, "nobody renewed it since it was seen"
    assert store.lease.acquire("three", 600, seen) is None, "that was another holder's"


def test_a_holder_that_renews_is_never_taken_for_dead(store: Store) -> None:
    first = store.lease.acquire("one", 3600)
    assert first is not None
    seen = store.lease.held()
    assert store.writer(first).lease.renew(3601)
    assert store.lease.acquire("two", 600, seen) is None


def test_a_standby_judges_by_its_own_clock(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = [100.0]
    monkeypatch.setattr("orchestrator.conduct.lease.time", SimpleNamespace(monotonic=lambda: moment[0]))
    standby, held = Standby(store, 15.0), HeldLease(3, 5_000_000.0, 15.0)
    assert standby.lapsed(None) is None
    assert standby.lapsed(held) is None
    moment[0] += 15
    assert standby.lapsed(held) is None
    renewed = HeldLease(3, 5_000_010.0, 15.0)
    moment[0] += 1
    assert standby.lapsed(renewed) is None, "it was renewed"
    moment[0] += 16
    assert standby.lapsed(renewed) == renewed


def test_a_standby_outlives_a_database_that_does_not_answer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    held, left = store.lease.held, iter([1])

    def refusing() -> HeldLease | None:
        if next(left, None):
            raise UnavailableError("the database cannot be used: a test")
        return held()

    monkeypatch.setattr(store.lease, "held", refusing)
    writer = Standby(store, 0.5).take_lease(lambda: False)
    assert writer is not None
    assert next(left, None) is None


@ON_BOTH
def test_of_many_that_want_the_lease_one_gets_it(store: Store, another: Callable[[], Store]) -> None:
    stores = [another() for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda one: one.lease.acquire("x", 600), stores * 2))
    assert sorted(fence for fence in got if fence is not None) == [1]


@ON_BOTH
def test_a_fenced_conductor_writes_nothing(store: Store, another: Callable[[], Store]) -> None:
    old = lease(store, seconds=-1)
    sweep = started(store, old)
    queued = store.submissions.add_sweep(new_sweep()).id
    order = claimed(store, old)
    request = store.submissions.add_request("cancel", sweep, None, "ann")
    other = another()
    new = lease(other, "conductor-2")
    dirty = store.outbox.due(10)[0]
    summary = runs.CellSummary(0, "complete", 0, {}, "key", None, {}, 1)
    former = store.writer(old)
    refused: list[Callable[[], object]] = [
        former.claims.next,
        lambda: former.sweeps.start(queued, PlanRows(**planned()), slot=SLOT, fresh=False),
        lambda: former.sweeps.fail(queued, "no"),
        lambda: former.requests.applied(request, "done"),
        lambda: former.trials.cancel(sweep),
        lambda: former.trials.retry(sweep),
        former.sweeps.unsettled,
        lambda: former.outbox.sent(dirty, "run"),
        lambda: former.outbox.postpone(dirty, "no", 1),
        *(
            lambda event=event: former.events.write(event)
            for event in (
                runs.Started(order.attempt, "slot", "host"),
                runs.Progressed(order.attempt, 1, progress(1, metrics={"train/loss": 1.0})),
                runs.Finished(order.attempt, result()),
                runs.AttemptStopped(order.attempt),
                runs.CellSettled(sweep, summary),
                runs.SweepSettled(sweep),
            )
        ),
    ]
    for write in refused:
        with pytest.raises(FencedError):
            write()
    assert states(store, sweep) == ["running", "waiting", "waiting", "waiting"]
    assert [one.attempt for one in other.claims.orphans()] == [order.attempt]
    assert other.writer(new).trials.cancel(sweep).trials == 4


@ON_BOTH
def test_threads_never_claim_the_same_training(store: Store, fence: int, another: Callable[[], Store]) -> None:
    sweep = started(store, fence, seeds=list(range(40)))

    def claim(own: Store) -> list[str]:
        return [order.training for order in iter(own.writer(fence).claims.next, None)]

    with ThreadPoolExecutor(8) as pool:
        every = [training for mine in pool.map(claim, [store, another()] * 4) for training in mine]
    assert len(every) == len(set(every)) == 80
    assert states(store, sweep) == ["running"] * 80
