"""The product's safeguards, each with the switch that takes it out: a world must then break."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import sqlalchemy as sa

from orchestrator.conduct.broker import LeasedBroker
from orchestrator.conduct.lease import Standby
from orchestrator.conduct.search import Searches
from orchestrator.conduct.upkeep import Retries
from orchestrator.record import outbox, schema
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.outbox import Dirty, OutboxWriter
from orchestrator.record.queue import ClaimReader
from orchestrator.record.requests import Submissions
from orchestrator.record.sweeps import SweepReader
from orchestrator.record.trainings import Shared
from orchestrator.record.transitions import EventWriter
from orchestrator.run import spool
from orchestrator.run.dispatch import Dispatch, Report
from orchestrator.run.engine import Broker
from orchestrator.run.files.slot import FileSlot, Instruction
from orchestrator.run.ray.pool import PooledSlot, SlotPool
from orchestrator.run.spool import Message
from orchestrator.views.runs import Failure, Order, Progressed
from tests.simulation.installation import QUIET, USUAL, Trouble

Switch = Callable[[], AbstractContextManager[object]]


class Safeguard(NamedTuple):
    """A safeguard of the product."""

    out: Switch
    """Takes it out."""
    seed: int
    """Of a world that breaks without it."""
    trouble: Trouble = USUAL
    """Where it guards against what is rare, that is more frequent."""
    joined: bool = False
    """Whether it is one of slots that join by files."""
    soak: bool = True
    """Whether it is taken out in `make soak` only."""


def _replaced(of: Any, name: str, by: Callable[..., object]) -> Switch:
    return lambda: patch(f"{of}.{name}", by) if isinstance(of, str) else patch.object(of, name, by)


def _wrapped(of: Any, name: str, by: Callable[..., object]) -> Switch:
    """Calls `by` in place of a function, with that function and what it is given."""
    real = getattr(of, name)
    return _replaced(of, name, lambda *given: by(real, *given))


def _any_version_is_sent(
    sent: Callable[..., None], self: OutboxWriter, dirty: Dirty, run_id: str | None, last_point: int = 0
) -> None:
    """A run that was marked again while it was sent counts as sent."""
    sent(self, dirty, run_id, last_point)
    with self._database.writing() as connection:
        connection.execute(sa.delete(schema.outbox).where(schema.outbox.c.id == dirty.id))


def _silence_is_emptiness(read: Callable[..., Iterator[Message]], *given: Any) -> list[Message]:
    """A store that does not answer seems to hold nothing."""
    try:
        return list(read(*given))
    except OSError:
        return []


class _Kept(dict[Any, Any]):
    """Keeps what is to be dropped."""

    def pop(self, *given: Any) -> Any:
        """Nothing."""


def _studies_are_kept(made: Callable[..., None], self: Searches, *given: Any) -> None:
    """A search keeps suggestions and results that were not recorded."""
    made(self, *given)
    self._cells = _Kept()


def _any_fence_is_obeyed(obey: Callable[..., None], self: FileSlot, given: Instruction) -> None:
    """A slot that has joined follows the instructions of any conductor."""
    fence, number = self._state.fence, self._state.acknowledged
    obey(self, given if given.fence >= fence else replace(given, fence=fence, number=number + 1))


def _unspooled(broker: Broker, order: Order, workplace: object, seen: int, failure: Failure | None) -> None:
    """A lost order is a failure, whatever it had spooled."""
    broker.failed(order, failure or Failure("infrastructure", "its slot is gone"))


def _dropped(self: SlotPool, slot: PooledSlot) -> None:
    """Forget a slot, which trains on."""
    self._slots.pop(slot.name, None)


def _messages_are_taken_again() -> AbstractContextManager[object]:
    """Neither the dispatch nor the record knows which messages were taken."""
    stack, take, progressed = ExitStack(), Dispatch.take, EventWriter._progressed

    def taken(self: Dispatch[Any], report: Report) -> None:
        execution = self._running.get(report.attempt)
        if execution is not None:
            execution.seen = 0
        take(self, report)

    def recorded(self: EventWriter, connection: sa.Connection, running: Any, event: Progressed) -> None:
        progressed(self, connection, SimpleNamespace(**{**running._mapping, "seen": 0}), event)  # type: ignore[arg-type]

    stack.enter_context(patch.object(Dispatch, "take", taken))
    stack.enter_context(patch.object(EventWriter, "_progressed", recorded))
    return stack


def _unnoted_train_on() -> AbstractContextManager[object]:
    """An attempt is noted only once it has begun, and what trains unnoted is left alone: either would do."""
    stack, settled = ExitStack(), Dispatch._settled

    def begun_first(self: Dispatch[Any], order: Order) -> bool:
        note, later = self._broker.started, list[Callable[[], object]]()
        with patch.object(self._broker, "started", lambda *given: later.append(lambda: note(*given))):
            done = settled(self, order)
        for noting in later:
            noting()
        return done

    stack.enter_context(patch.object(Dispatch, "_settled", begun_first))
    stack.enter_context(patch.object(SlotPool, "reap", lambda self: None))
    return stack


_UNBEGUN: Final = replace(USUAL, unbegun=0.4, crashes=0.0, unheard=0.0)
SAFEGUARDS: Final[Mapping[str, Safeguard]] = {
    "every write checks that the conductor still holds the lease": Safeguard(
        _replaced("orchestrator.record.database", "_check_fence", lambda *given, **named: None), 5, soak=False
    ),
    "a repeated submission is recognized by its key": Safeguard(
        _wrapped(Submissions, "add_sweep", lambda add, self, new: add(self, replace(new, idempotency_key=None))),
        1,
        replace(USUAL, unacknowledged=0.1),
        soak=False,
    ),
    "an outbox mark that was renewed during a send stays": Safeguard(
        _wrapped(OutboxWriter, "sent", _any_version_is_sent), 23, replace(USUAL, away=0.4, crashes=0.002)
    ),
    "attempts that a dead conductor left running are adopted": Safeguard(
        _replaced(ClaimReader, "orphans", lambda self: []), 0, soak=False
    ),
    "an attempt begins after its slot is recorded, and unrecorded trainings are ended": Safeguard(
        _unnoted_train_on, 27, replace(_UNBEGUN, crashes=0.02)
    ),
    "a slot actor begins nothing under an old fence": Safeguard(
        _replaced(LeasedBroker, "fence", lambda self: 0), 1, _UNBEGUN
    ),
    "a slot that has joined by files does nothing under an old fence": Safeguard(
        _wrapped(FileSlot, "_obey", _any_fence_is_obeyed),
        3,
        replace(_UNBEGUN, unbegun=0.9, stalls=0.012),
        joined=True,
    ),
    "a lost attempt ends as its spool says": Safeguard(
        _replaced("orchestrator.run.dispatch", "settle_from_spool", _unspooled), 7, soak=False
    ),
    "slots that die are noticed": Safeguard(_replaced(Dispatch, "_lose", lambda self, *given: None), 3),
    "a damaged checkpoint is skipped": Safeguard(
        _replaced("orchestrator.run.attempt", "CheckpointError", type("NeverError", (Exception,), {})),
        40,
        replace(USUAL, crashes=0.025),
    ),
    "each change is marked for MLflow in its transaction": Safeguard(
        _replaced("orchestrator.record.changes", "_upsert", lambda *given: None), 0, soak=False
    ),
    "a slot that is given up ends before its training continues elsewhere": Safeguard(
        _replaced(SlotPool, "drop", _dropped), 0, soak=False
    ),
    "a known training is not planned again": Safeguard(
        _wrapped(Shared, "__init__", lambda made, self, connection, _, *place: made(self, connection, True, *place)),
        0,
    ),
    "a silent lease is judged by the standby's own clock": Safeguard(
        _replaced(Standby, "lapsed", lambda self, held: None), 6
    ),
    "an outbox mark with a future time is due at once": Safeguard(
        lambda: patch.object(outbox, "_FAR", 1e12), 19, replace(USUAL, jumps=0.02, away=0.2, crashes=0.0)
    ),
    "a recipe that kills its process each time is given up": Safeguard(
        _replaced(Retries, "after", lambda self, *given: True), 3
    ),
    "a repeated message is recorded once": Safeguard(_messages_are_taken_again, 0),
    "the conductor waits for a store that does not answer": Safeguard(
        _wrapped(spool, "read", _silence_is_emptiness), 0, replace(USUAL, lost=0.4, lies=0.0, unheard=0.4, crashes=0.0)
    ),
    "messages sent during a change of the lease are sent again": Safeguard(
        _replaced(Mirror, "_leave_to_successor", lambda self: None),
        6,
        replace(USUAL, outlived=0.4, away=0.0, crashes=0.0, stalls=0.0),
    ),
    "a search whose record was refused is rebuilt": Safeguard(
        _wrapped(Searches, "__init__", _studies_are_kept), 4, replace(USUAL, refusals=0.15, crashes=0.0)
    ),
    "a deletion waits until its trainings have stopped": Safeguard(
        _wrapped(SweepReader, "deletion", lambda read, *given: (found := read(*given)) and replace(found, busy=False)),
        3,
        replace(QUIET, regrets=0.9, stops=USUAL.stops, lies=USUAL.lies),
    ),
}
"""In words what each does."""
