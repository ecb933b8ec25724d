"""An oracle in memory, SQLite and Postgres get the same random calls, and answer each of them alike."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.store import Store, Writer
from orchestrator.record.sweeps import PlanRows
from orchestrator.views.runs import AttemptStopped, CellSettled, CellSummary, Failed, Failure, Finished, SweepSettled
from tests.record.invariants import check
from tests.record.oracle import Attempt, Key, Oracle
from tests.record.sample import SLOT, lease, new_sweep, planned, result

LOSSES = ["triplet", "semihard", "normalized_npair"]
STEPS, MOST_SWEEPS = 80, 6


class Recorded:
    """A store with the interface of the oracle."""

    def __init__(self, store: Store) -> None:
        self._store, self._writer = store, store.writer(lease(store))
        self._sweeps: list[int] = []
        self._uids: dict[Attempt, str] = {}

    @property
    def writer(self) -> Writer:
        return self._writer

    def start(self, losses: list[str], seeds: list[int]) -> None:
        sweep = self._store.submissions.add_sweep(new_sweep()).id
        self._sweeps.append(sweep)
        self._writer.sweeps.start(sweep, PlanRows(**planned(losses, seeds)), slot=SLOT, fresh=False)

    def claim(self) -> Attempt | None:
        order = self._writer.claims.next()
        if order is None:
            return None
        made = _key(order.recipe), order.number
        self._uids[made] = order.attempt
        return made

    def finish(self, attempt: Attempt) -> None:
        self._writer.events.write(Finished(self._uids[attempt], result()))

    def fail(self, attempt: Attempt, again: bool) -> None:
        self._writer.events.write(Failed(self._uids[attempt], Failure("recipe", "no"), again))

    def stop(self, attempt: Attempt) -> None:
        self._writer.events.write(AttemptStopped(self._uids[attempt]))

    def needed(self, attempt: Attempt) -> bool:
        return bool(self._store.claims.needed_of([self._uids[attempt]]))

    def cancel(self, number: int, trial: int | None = None) -> None:
        sweep = self._sweeps[number]
        one = None if trial is None else self._store.trials.page(sweep).items[trial].id
        self._writer.trials.cancel(sweep, one)

    def retry(self, number: int) -> None:
        self._writer.trials.retry(self._sweeps[number])

    def pause(self, number: int) -> None:
        self._writer.sweeps.pause(self._sweeps[number])

    def resume(self, number: int) -> None:
        self._writer.sweeps.resume(self._sweeps[number])

    def prioritize(self, number: int, priority: int) -> None:
        self._writer.sweeps.prioritize(self._sweeps[number], priority)

    def settle(self) -> None:
        for sweep, cell in self._store.sweeps.cells_to_settle():
            self._writer.events.write(CellSettled(sweep, CellSummary(cell, "complete", 0, {}, "k", None, {}, 1)))
        for sweep in self._writer.sweeps.unsettled():
            self._writer.events.write(SweepSettled(sweep))

    def take_over(self) -> None:
        self._writer.lease.release()
        self._writer = self._store.writer(lease(self._store, "next"))

    def running(self) -> list[Attempt]:
        return [(_key(order.recipe), order.number) for order in self._store.claims.orphans()]

    def answer(self) -> object:
        """All that the oracle has, too."""
        trial, training = schema.trial, schema.training
        with self._store.database.reading() as connection:
            sweeps = connection.execute(sa.select(schema.sweep.c.state).order_by(schema.sweep.c.id)).scalars().all()
            rows = connection.execute(sa.select(trial.c.state).order_by(trial.c.sweep_id, trial.c.position)).scalars()
            trials = rows.all()
            known = {_key(row.recipe): row.state for row in connection.execute(sa.select(training))}
        return [*sweeps], [*trials], known, self.running()


def _key(recipe: dict[str, object]) -> Key:
    loss, seed = recipe["loss"], recipe["seed"]
    assert isinstance(loss, dict)
    assert isinstance(seed, int)
    return str(loss["name"]), seed


def answer(oracle: Oracle) -> object:
    """The same of the oracle."""
    trials = [state for sweep in oracle.sweeps for state in sweep.trials]
    return [sweep.state for sweep in oracle.sweeps], trials, dict(oracle.trainings), oracle.running()


def question(drawn: random.Random, oracle: Oracle, attempts: list[Attempt]) -> tuple[str, tuple[object, ...]]:
    """What to ask next: the name of a method, and what it is given."""
    if not oracle.sweeps or (drawn.random() < 0.15 and len(oracle.sweeps) < MOST_SWEEPS):
        return "start", (drawn.sample(LOSSES, drawn.randint(1, 3)), drawn.sample(range(3), drawn.randint(1, 2)))
    number = drawn.randrange(len(oracle.sweeps))
    one = drawn.randrange(len(oracle.sweeps[number].keys))
    questions: list[tuple[str, tuple[object, ...]]] = [
        ("claim", ()), ("claim", ()), ("claim", ()), ("cancel", (number, None)), ("cancel", (number, one)),
        ("retry", (number,)), ("pause", (number,)), ("resume", (number,)), ("settle", ()),
        ("prioritize", (number, drawn.randint(-1, 1))), ("take_over", ()),
    ]  # fmt: skip
    if attempts:  # ended attempts too: their messages change nothing
        attempt = drawn.choice(attempts)
        again = drawn.random() < 0.5
        questions += [
            ("finish", (attempt,)),
            ("finish", (attempt,)),
            ("fail", (attempt, again)),
            ("needed", (attempt,)),
        ]
        if not oracle.needed(attempt):
            questions.append(("stop", (attempt,)))
    return drawn.choice(questions)


@pytest.fixture
def stores(
    request: pytest.FixtureRequest, tmp_path: Path, migrated_url: Callable[[str, Path], str]
) -> Iterator[list[Store]]:
    opened = [Store.open(migrated_url(kind, tmp_path), migrate=False) for kind in request.param]
    yield opened
    for one in opened:
        one.close()


@pytest.mark.parametrize(
    ("stores", "seed"),
    [*((["sqlite"], seed) for seed in range(3)), pytest.param(["sqlite", "postgres"], 3, marks=pytest.mark.postgres)],
    indirect=["stores"],
)
def test_all_answer_alike(stores: list[Store], seed: int) -> None:
    drawn, oracle, told = random.Random(seed), Oracle(), [Recorded(one) for one in stores]
    attempts: list[Attempt] = []
    for _ in range(STEPS):
        name, given = question(drawn, oracle, attempts)
        answers = [getattr(one, name)(*given) for one in (oracle, *told)]
        assert answers[1:] == answers[:1] * len(told), (name, given)
        for one, store in zip(told, stores, strict=True):
            assert one.answer() == answer(oracle), (name, given)
            check(store)
        if name == "claim" and answers[0] is not None:
            attempts.append(answers[0])
    for one in (oracle, *told):
        for number in range(len(oracle.sweeps)):
            one.resume(number)
            one.retry(number)
        for attempt in one.running():
            one.finish(attempt)
        while (claimed := one.claim()) is not None:
            one.finish(claimed)
        one.settle()
    assert {sweep.state for sweep in oracle.sweeps} == {"finished"}, "everything can be brought to a good end"
    for one, store in zip(told, stores, strict=True):
        assert one.answer() == answer(oracle)
        check(store)
