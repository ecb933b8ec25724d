"""The product's safeguards, each with the switch that takes it out: a world must then break."""

from collections.abc import Callable, Mapping
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
from orchestrator.run.ray.pool import HeldSlot, SlotPool
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
    return lambda: patch.object(of, name, by) if isinstance(of, type) else patch(f"{of}.{name}", by)


def _any_version_is_sent() -> AbstractContextManager[object]:
    """What was marked again while it was told counts as told."""
    real = OutboxWriter.sent

    def sent(self: OutboxWriter, dirty: Dirty, run_id: str | None, last_point: int = 0) -> None:
        real(self, dirty, run_id, last_point)
        with self._database.writing() as connection:
            connection.execute(sa.delete(schema.outbox).where(schema.outbox.c.id == dirty.id))

    return patch.object(OutboxWriter, "sent", sent)


def _keys_are_lost() -> AbstractContextManager[object]:
    """No submission is known by its key."""
    real = Submissions.add_sweep

    def add(self: Submissions, new: Any) -> object:
        return real(self, replace(new, idempotency_key=None))

    return patch.object(Submissions, "add_sweep", add)


def _unspooled(broker: Broker, order: Order, workplace: object, seen: int, failure: Failure | None) -> None:
    """A lost order is a failure, whatever it had spooled."""
    broker.failed(order, failure or Failure("infrastructure", "its slot is gone"))


def _dropped(self: SlotPool, slot: HeldSlot) -> None:
    """Forget a slot, which trains on."""
    self._slots.pop(slot.name, None)


def _nothing_is_known() -> AbstractContextManager[object]:
    """Every sweep trains all of its own."""
    real = Shared.__init__

    def made(self: Shared, connection: sa.Connection, fresh: bool, whose: int) -> None:
        real(self, connection, True, whose)

    return patch.object(Shared, "__init__", made)


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


def _silence_is_emptiness() -> AbstractContextManager[object]:
    """A store that does not answer seems to hold nothing."""
    real = spool.read

    def read(*given: Any) -> list[Message]:
        try:
            return list(real(*given))
        except OSError:
            return []

    return patch.object(spool, "read", read)


class _Kept(dict[Any, Any]):
    """Keeps what is to be dropped."""

    def pop(self, *given: Any) -> Any:
        """Nothing."""


def _studies_are_kept() -> AbstractContextManager[object]:
    """What a search was asked and told stays so, though it is not recorded."""
    real = Searches.__init__

    def made(self: Searches, *given: Any) -> None:
        real(self, *given)
        self._cells = _Kept()

    return patch.object(Searches, "__init__", made)


def _nothing_is_busy() -> AbstractContextManager[object]:
    """A sweep is deleted while what it trained has not stopped."""
    real = SweepReader.deletion

    def deletion(self: SweepReader, sweep: int) -> Any:
        found = real(self, sweep)
        return found and replace(found, busy=False)

    return patch.object(SweepReader, "deletion", deletion)


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


def _actors_know_no_fence() -> AbstractContextManager[object]:
    """Slot actors are greeted, and told to begin, under one fence for all."""
    return patch.object(LeasedBroker, "fence", lambda self: 0)


def _joined_slots_know_no_fence() -> AbstractContextManager[object]:
    """A slot that has joined does what stands there, whoever has written it."""
    real = FileSlot._obey

    def obey(self: FileSlot, given: Instruction) -> None:
        fence, taken = self._state.fence, self._state.taken
        real(self, given if given.fence >= fence else replace(given, fence=fence, number=taken + 1))

    return patch.object(FileSlot, "_obey", obey)


_UNBEGUN: Final = replace(USUAL, unbegun=0.4, crashes=0.0, unheard=0.0)
SAFEGUARDS: Final[Mapping[str, Safeguard]] = {
    "each write of a conductor checks that the lease is still its own": Safeguard(
        _replaced("orchestrator.record.database", "_check_fence", lambda *given, **named: None), 5, soak=False
    ),
    "a submission that is repeated is known by its key": Safeguard(
        _keys_are_lost, 1, replace(USUAL, unacknowledged=0.1), soak=False
    ),
    "a mark of the outbox that was renewed meanwhile stays": Safeguard(
        _any_version_is_sent, 94, replace(USUAL, away=0.4, crashes=0.002)
    ),
    "attempts that a dead conductor left running are adopted": Safeguard(
        _replaced(ClaimReader, "orphans", lambda self: []), 0, soak=False
    ),
    "an attempt begins once its slot is noted, and what trains unnoted is ended": Safeguard(
        _unnoted_train_on, 27, replace(_UNBEGUN, crashes=0.02)
    ),
    "a slot actor begins nothing under an old fence": Safeguard(_actors_know_no_fence, 7, _UNBEGUN),
    "a slot that has joined by files does nothing under an old fence": Safeguard(
        _joined_slots_know_no_fence, 3, replace(_UNBEGUN, unbegun=0.9, stalls=0.012), joined=True
    ),
    "a lost attempt ends as its spool says": Safeguard(
        _replaced("orchestrator.run.dispatch", "settle_from_spool", _unspooled), 7, soak=False
    ),
    "slots that die are noticed": Safeguard(_replaced(Dispatch, "_lose", lambda self, *given: None), 3),
    "a checkpoint that is damaged is passed over": Safeguard(
        _replaced("orchestrator.run.attempt", "CheckpointError", type("NeverError", (Exception,), {})),
        11,
        replace(USUAL, crashes=0.025),
    ),
    "what changes is marked for MLflow in the same transaction": Safeguard(
        _replaced("orchestrator.record.transitions", "mark_trials", lambda *given: None), 0, soak=False
    ),
    "a slot that is given up is ended before its training goes on elsewhere": Safeguard(
        _replaced(SlotPool, "drop", _dropped), 7, soak=False
    ),
    "a training that is known is not planned again": Safeguard(_nothing_is_known, 0),
    "a silent lease is judged by the standby's own clock": Safeguard(
        _replaced(Standby, "lapsed", lambda self, held: None), 6
    ),
    "a mark of a clock that was ahead is due": Safeguard(
        lambda: patch.object(outbox, "_FAR", 1e12), 19, replace(USUAL, jumps=0.02, away=0.2, crashes=0.0)
    ),
    "a recipe that kills its process each time is given up": Safeguard(
        _replaced(Retries, "after", lambda self, *given: True), 3
    ),
    "a message that comes twice is taken once": Safeguard(_messages_are_taken_again, 3),
    "a store that does not answer is waited for": Safeguard(
        _silence_is_emptiness, 33, replace(USUAL, lost=0.4, lies=0.0, unheard=0.4, crashes=0.0)
    ),
    "what was told while the lease passed on is told anew": Safeguard(
        _replaced(Mirror, "_leave_to_successor", lambda self: None),
        6,
        replace(USUAL, outlived=0.4, away=0.0, crashes=0.0, stalls=0.0),
    ),
    "a search whose record was refused is rebuilt": Safeguard(
        _studies_are_kept, 4, replace(USUAL, refusals=0.15, crashes=0.0)
    ),
    "a deletion waits until what trains has stopped": Safeguard(
        _nothing_is_busy, 3, replace(QUIET, regrets=0.9, stops=USUAL.stops, lies=USUAL.lies)
    ),
}
"""In words what each does."""
