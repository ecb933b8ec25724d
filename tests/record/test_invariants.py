"""Whatever happens in whatever order, trials and trainings agree, and no training is run twice at once."""

import random
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.store import Store
from orchestrator.views.events import AttemptStopped, CellSettled, Failed, Finished, SweepSettled
from orchestrator.views.orders import Failure, Order
from orchestrator.views.outcomes import CellSummary
from tests.record.sample import lease, new_sweep, result, run_all, started

LOSSES = ["triplet", "semihard", "normalized_npair"]
ACTIVE = {"waiting", "running"}


class History:
    """A random life of a few sweeps that share recipes."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.random = store, random.Random(seed)
        self.fence = lease(store)
        self.writer = store.writer(self.fence)
        self.sweeps: list[int] = []
        self.orders: list[Order] = []
        self.steps: list[Callable[[], object]] = [
            self.start, self.claim, self.claim, self.claim, self.finish, self.finish, self.fail, self.stop,
            self.cancel, self.cancel_one, self.retry, self.settle, self.take_over,
        ]  # fmt: skip

    def start(self) -> None:
        if len(self.sweeps) < 6:
            losses = self.random.sample(LOSSES, self.random.randint(1, 3))
            seeds = self.random.sample(range(3), self.random.randint(1, 2))
            fresh = self.random.random() < 0.2
            self.sweeps.append(started(self.store, self.fence, losses=losses, seeds=seeds, fresh=fresh))
        else:
            self.writer.trials.cancel(self.store.submissions.add_sweep(new_sweep()).id)

    def claim(self) -> None:
        order = self.writer.claims.next()
        if order is not None:
            self.orders.append(order)

    def finish(self) -> None:
        if self.orders:
            outcome = self.random.choice(["ok", "ok", "diverged"])
            self.writer.events.write(Finished(self.random.choice(self.orders).attempt, result(outcome=outcome)))

    def fail(self) -> None:
        if self.orders:
            order, failure = self.random.choice(self.orders), Failure("recipe", "no")
            self.writer.events.write(Failed(order.attempt, failure, self.random.random() < 0.5))

    def stop(self) -> None:
        for order in self.orders:
            if not self.store.claims.wanted(order.attempt):
                self.writer.events.write(AttemptStopped(order.attempt))

    def cancel(self) -> None:
        if self.sweeps and self.random.random() < 0.4:
            self.writer.trials.cancel(self.random.choice(self.sweeps))

    def cancel_one(self) -> None:
        if self.sweeps:
            sweep = self.random.choice(self.sweeps)
            self.writer.trials.cancel(sweep, self.random.choice(self.store.trials.page(sweep).items).id)

    def retry(self) -> None:
        if self.sweeps:
            self.writer.trials.retry(self.random.choice(self.sweeps))

    def settle(self) -> None:
        for sweep, cell in self.store.sweeps.cells_to_settle():
            self.writer.events.write(CellSettled(sweep, CellSummary(cell, "complete", 0, {}, "k", None, {}, 1)))
        for sweep in self.writer.sweeps.unsettled():
            self.writer.events.write(SweepSettled(sweep))

    def take_over(self) -> None:
        self.writer.lease.release()
        self.fence = lease(self.store, "next")
        self.writer = self.store.writer(self.fence)
        self.orders = self.store.claims.orphans()


def check(store: Store) -> None:
    with store.database.reading() as connection:
        trials = connection.execute(
            sa.select(schema.trial, schema.training.c.state.label("training_state"), schema.sweep.c.state.label("of"))
            .join(schema.training, schema.training.c.id == schema.trial.c.training_id)
            .join(schema.sweep, schema.sweep.c.id == schema.trial.c.sweep_id)
        ).all()
        trainings = {row.id: row for row in connection.execute(sa.select(schema.training))}
        running = [
            row.training_id
            for row in connection.execute(sa.select(schema.attempt).where(schema.attempt.c.state == "running"))
        ]
        settled = connection.execute(sa.select(schema.cell).where(schema.cell.c.settled.is_not(None))).all()
    still_open = {(row.sweep_id, row.cell) for row in trials if row.state in ACTIVE}
    assert not still_open & {(row.sweep_id, row.cell) for row in settled}
    assert len(running) == len(set(running))
    assert set(running) == {one.id for one in trainings.values() if one.state == "running"}
    for row in trials:
        if row.state in ACTIVE or row.state == "finished":
            assert row.training_state == row.state, row
        if row.state in ACTIVE:
            assert row.of in {"queued", "running", "paused"}  # queued: not all of its trials are written
            assert row.ended is None
        else:
            assert row.ended is not None
        assert row.started is not None or row.state in {"waiting", "cancelled", "failed", "pruned"}
    wanted = {row.training_id for row in trials if row.state in ACTIVE}
    assert {one.id for one in trainings.values() if one.state == "waiting"} <= wanted


@pytest.mark.parametrize("seed", range(12))
def test_trials_and_trainings_agree(sqlite_store: Store, seed: int) -> None:
    history = History(sqlite_store, seed)
    for _ in range(80):
        history.random.choice(history.steps)()
        check(sqlite_store)
    # At the end everything can be brought to a good end.
    for sweep in history.sweeps:
        sqlite_store.writer(history.fence).trials.retry(sweep)
    for order in sqlite_store.claims.orphans():
        sqlite_store.writer(history.fence).events.write(Finished(order.attempt, result()))
    run_all(sqlite_store, history.fence)
    history.settle()
    check(sqlite_store)
    assert {sqlite_store.sweeps.get(sweep).state.value for sweep in history.sweeps} <= {"finished"}
    assert not sqlite_store.sweeps.active()
