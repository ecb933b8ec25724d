"""A wrong spec, sweep, message or run does not stop the conductor; and which failures are tried again."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.conduct import conductor as conductors
from orchestrator.conduct import expansion
from orchestrator.conduct.broker import LeasedBroker
from orchestrator.conduct.upkeep import FIRST_PAUSE, INFRASTRUCTURE_TRIES, LONGEST_PAUSE, MOST_LOSSES, Retries
from orchestrator.plan import grid
from orchestrator.record import schema
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.store import Store
from orchestrator.record.sweeps import SweepWriter
from orchestrator.run.spool import Message
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.spec.spec import Slot
from orchestrator.views import runs
from orchestrator.views.errors import UnavailableError
from orchestrator.views.runs import Failure, Order
from tests.inline_conductor import conduct, ran
from tests.record.sample import lease, new_sweep, started
from tests.record.shelf import Shelf
from tests.run.broker import order
from tests.run.test_files import Clock
from tests.test_conductor import spec


@pytest.fixture
def sqlite_store(service: Service) -> Store:
    return service.store


def beside(service: Service) -> int:
    """A sweep that nothing is wrong with, behind the one that something is."""
    return service.submissions.submit(spec(name="good", tune={}, repeat={"seed": [7]})).id


def alter(service: Service, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change the spec of the first sweep as no client could."""
    one = schema.sweep.c.id == 1
    with service.store.database.writing() as connection:
        found = connection.execute(sa.select(schema.sweep.c.spec).where(one)).scalar_one()
        connection.execute(sa.update(schema.sweep).where(one).values(spec=change(found)))


def test_a_spec_that_cannot_be_expanded(service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = service.submissions.submit(spec()).id, beside(service)
    expand = grid.expand

    def fail(one: Any, *given: Any) -> Any:
        if one.name == "rates":
            raise RecursionError("too deep")
        return expand(one, *given)

    monkeypatch.setattr(expansion.grid, "expand", fail)  # type: ignore[attr-defined]
    conduct(settings)
    assert service.sweeps.get(good).state == "finished"
    assert service.sweeps.get(bad).state == "failed"
    assert "RecursionError" in (service.sweeps.get(bad).error or "")


def test_cells_that_cannot_be_summed_up(service: Service, settings: Settings) -> None:
    """A metric of one's own that the catalog has no more ended the conductor at every start."""
    bad, good = service.submissions.submit(spec()).id, beside(service)
    conduct(settings, 3)

    def select(metric: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        return lambda found: {**found, "select": {**found["select"], "metric": metric}}

    alter(service, select("mine"))
    conduct(settings)
    assert service.sweeps.get(good).state == "finished"
    found = service.sweeps.get(bad)
    assert (found.state, found.counts.finished) == ("failed", 8)
    assert (found.error or "").startswith("its cells cannot be summed up: nothing can be selected by 'mine'")
    alter(service, select("map@r"))
    service.commands.retry(bad)
    conduct(settings)
    found = service.sweeps.get(bad)
    assert (found.state, found.error) == ("finished", None)
    assert all(any(one.selected for one in cell.candidates) for cell in service.sweeps.grid(bad))


def test_a_report_that_the_database_refuses(tmp_path: Path) -> None:
    """It ended the conductor, and then the next conductor, to which the slot sent the same message."""
    settings = Settings(home=tmp_path, engine="inline", train="tests.run.trainings:overflowing", lease_seconds=5)
    service = Service.open(settings)
    sweep = service.submissions.submit(
        spec(tune={"optimizer.lr": [0.01]}, repeat={"seed": [0, 1, 2]}, compare={}, tables={})
    ).id
    conduct(settings)
    found = service.sweeps.get(sweep)
    assert (found.state, found.counts.finished, found.counts.failed) == ("failed", 1, 2)
    assert all(one.message.startswith("what it reported cannot be kept: Overflow") for one in found.problems)
    service.close()


class Ear:
    """A stand-in for the store and engine of a handler, which records the calls."""

    def __init__(self) -> None:
        self.events: list[runs.Event] = []
        self.checkpoints: list[int] = []

    def write(self, event: runs.Event) -> None:
        self.events.append(event)

    def ignore(self, *given: object) -> None:
        """Of no concern here."""

    progressed = ended = ignore

    def advanced(self, order: Order, step: int) -> None:
        """Note the step of a checkpoint."""
        self.checkpoints.append(step)

    def after(self, order: Order, failure: Failure) -> bool:
        return False


DAMAGED = b'{"seq": 3, "kind": "finished", "body": {"outcome": "ok\x00}}\n'


def test_messages_that_cannot_be_read() -> None:
    each, ear = order(), Ear()
    writer, tick = SimpleNamespace(events=ear), SimpleNamespace(retries=ear, pruning=ear)
    handler = LeasedBroker(ear, writer, tick, ear, bool)  # type: ignore[arg-type]
    handler.record(each, Message.made(1, "progress", {"step": "many"}))
    handler.record(each, Message.made(2, "progress", {"step": 1, "total": 3}))
    handler.record(each, Message.made(3, "progress", {"step": 2, "total": 3, "checkpoint": "last.pt"}))
    assert [(type(one), getattr(one, "seq", None)) for one in ear.events] == [(runs.Progressed, seq) for seq in (2, 3)]
    assert ear.checkpoints == [2]
    ear.events.clear()
    for message in (Message.made(3, "finished", {}), Message.made(3, "failed", {"kind": "other"}), Message.of(DAMAGED)):
        handler.record(each, message)
    failures = [one.failure for one in ear.events if isinstance(one, runs.Failed)]
    assert [one.kind for one in failures] == ["recipe", "recipe", "infrastructure"], "a damaged line may be whole again"
    assert all(one.message.startswith("its last message cannot be read: ") for one in failures)


def test_a_run_whose_error_no_database_holds(sqlite_store: Store) -> None:
    """The mark could not be postponed, so that it was the first again at the next turn, before all others."""
    fence = lease(sqlite_store)
    started(sqlite_store, fence, "bad")
    started(sqlite_store, fence, "good", seeds=(5, 6))
    shelf = Shelf()

    def refuse(name: str, uid: str, tags: Any) -> str:
        if name.startswith("bad"):
            raise RuntimeError("half a letter: \ud800, and much more " * 1_000)
        return Shelf.experiment(shelf, name, uid, tags)

    mirror = Mirror(sqlite_store, sqlite_store.writer(fence), lambda: shelf)
    shelf.experiment = refuse  # type: ignore[method-assign]
    assert mirror.forward(10) == 1


def test_what_a_statement_is_wrong_in_is_no_outage(sqlite_store: Store) -> None:
    """A request for more than the database takes would else be waited for without end."""
    with pytest.raises(sa.exc.OperationalError), sqlite_store.database.reading() as connection:
        connection.exec_driver_sql("SELECT nothing FROM nowhere")
    fence = lease(sqlite_store)
    sweep = sqlite_store.submissions.add_sweep(new_sweep()).id
    sqlite_store.writer(fence).sweeps.fail(sweep, "half a letter: \ud800 " * 1_000)
    assert len(sqlite_store.sweeps.get(sweep).error or "") == 2_000


LOST, STALLED = (Failure(kind, "said") for kind in ("infrastructure", "stalled"))


def test_a_machine_may_be_lost_a_few_times() -> None:
    retries, one = Retries(), order()
    told = [retries.after(one, LOST) for _ in range(INFRASTRUCTURE_TRIES)]
    assert told == [True] * (INFRASTRUCTURE_TRIES - 1) + [False]
    assert retries.after(order(), LOST), "of another training nothing was lost"
    retries.forget()
    assert retries.after(one, LOST)


def test_a_stall_has_the_users_limit_and_losses_do_not_count_against_it() -> None:
    retries, one = Retries(), order()
    assert one.slot == Slot(gpus=0)
    assert [retries.after(one, failure) for failure in (LOST, STALLED, LOST, STALLED)] == [True, True, True, False]


def test_the_pause_doubles_and_ends_by_the_monotonic_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("orchestrator.conduct.upkeep.time", SimpleNamespace(monotonic=clock))
    retries, one = Retries(), order()
    retries.after(one, LOST)
    assert retries.resting() == {one.training}
    clock.now += FIRST_PAUSE
    assert not retries.resting()
    retries.after(one, LOST)
    clock.now += FIRST_PAUSE
    assert retries.resting()
    clock.now += FIRST_PAUSE
    assert not retries.resting()
    assert FIRST_PAUSE * 2**20 > LONGEST_PAUSE


def test_losses_count_in_a_row_while_the_training_gets_no_further() -> None:
    retries, preempted = Retries(), order()
    for step in range(1, MOST_LOSSES):
        assert retries.after(preempted, LOST), "each attempt got further than the one before"
        retries.advanced(preempted, 10 * step)
    assert not retries.after(preempted, LOST), "but not for ever"
    poison = order()
    told = []
    for _ in range(INFRASTRUCTURE_TRIES + 1):
        told.append(retries.after(poison, LOST))
        retries.advanced(poison, 5)  # it comes to the same checkpoint each time, and dies there
    assert told == [True, True, True, False]


def test_what_never_began_says_nothing_of_the_recipe() -> None:
    retries, one = Retries(), order()
    gone = Failure("infrastructure", "its node left", begun=False)
    assert all(retries.after(one, gone) for _ in range(MOST_LOSSES - 1))
    assert not retries.after(one, gone), "but a cluster that never begins it is not tried for ever"


def test_it_survives_a_lost_database(service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    start, failures = SweepWriter.start, iter([UnavailableError("the database cannot be used: locked")])

    def unavailable_once(*given: Any) -> None:
        for failure in failures:
            raise failure
        start(*given)

    monkeypatch.setattr(SweepWriter, "start", unavailable_once)
    monkeypatch.setattr(conductors, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: None))
    assert service.sweeps.get(ran(service, settings, spec())).state == "finished"
