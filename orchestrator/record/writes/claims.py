"""Orders: the trainings that wait, claimed one by one as attempts, and those that an earlier conductor left running."""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.reads.trial_name import order_label
from orchestrator.record.schema import attempt, sweep, training, trial
from orchestrator.record.writes.journal import write_log
from orchestrator.views.lifecycle import SWEEP_GOING, TRIAL_ACTIVE, SweepState, TrialState
from orchestrator.views.orders import Order
from orchestrator.views.slot import Slot

_RUNNING = "running"


@dataclass(frozen=True, slots=True)
class _Turn:
    """Who may not have the next turn."""

    quota: int | None
    resting: tuple[str, ...]
    barred: tuple[str, ...]
    held: tuple[str, ...] = ()


class Claims(Access):
    """Gives out what waits."""

    def next_order(
        self,
        fence: int,
        quota: int | None = None,
        resting: Collection[str] = frozenset(),
        barred: Collection[str] = frozenset(),
        held: Collection[str] = frozenset(),
    ) -> Order | None:
        """Claim the training whose turn it is.

        None: nothing waits, or only for owners who hold `quota` slots, or only trainings that rest after a loss, or
        whose slot is one of `barred` (its JSON as the database holds it), or whose need is one of `held` (its key).
        """
        turn = _Turn(quota, tuple(resting), tuple(barred), tuple(held))
        if not self._anything_waits(turn):
            return None
        with self._database.writing(fence) as connection:
            found = _first_waiting(connection, turn)
            return None if found is None else _claim(connection, fence, *found)

    def outranked(
        self,
        uid: str,
        quota: int | None,
        resting: Collection[str],
        barred: Collection[str],
        held: Collection[str] = frozenset(),
    ) -> bool:
        """Whether a training of a higher priority waits than that of this attempt, or only paused sweeps want it."""
        wanting = (
            sa.select(sa.func.max(sweep.c.priority))
            .join(trial, trial.c.sweep_id == sweep.c.id)
            .join(attempt, attempt.c.training_id == trial.c.training_id)
            .where(attempt.c.uid == uid, trial.c.state == TrialState.RUNNING, sweep.c.state == SweepState.RUNNING)
        )
        with self._database.reading() as connection:
            rank = connection.execute(wanting).scalar()
            turn = _Turn(quota, tuple(resting), tuple(barred), tuple(held))
            return rank is None or _first_waiting(connection, turn, rank) is not None

    def waits(self, barred: Collection[str], held: Collection[str] = frozenset()) -> bool:
        """Whether a training waits whose slot is none of `barred`, and whose need is none of `held`."""
        return self._anything_waits(_Turn(None, (), tuple(barred), tuple(held)))

    def _anything_waits(self, turn: "_Turn") -> bool:
        # Most calls find nothing; they need not take the writer's lock.
        with self._database.reading() as connection:
            return _first_waiting(connection, turn) is not None

    def orphans(self) -> list[Order]:
        """Attempts that are running by the database, oldest first: what a new conductor adopts or gives up."""
        columns = (
            attempt.c.uid, attempt.c.number, attempt.c.slot, attempt.c.resumed_from, attempt.c.holder, attempt.c.seen,
            training.c.uid.label("training"), training.c.recipe, training.c.need, attempt.c.training_id,
        )  # fmt: skip
        query = (
            sa.select(*columns)
            .join(training, training.c.id == attempt.c.training_id)
            .where(attempt.c.state == _RUNNING)
            .order_by(attempt.c.id)
        )
        with self._database.reading() as connection:
            return [
                Order(
                    attempt=row.uid, training=row.training, number=row.number, recipe=row.recipe,
                    slot=Slot.model_validate(row.slot), resume=row.resumed_from, holder=row.holder, seen=row.seen,
                    need=row.need, label=order_label(connection, row.training_id),
                )
                for row in connection.execute(query)
            ]  # fmt: skip

    def wanted(self, attempt: str) -> bool:
        """Whether the attempt runs and some trial still waits for its training."""
        with self._database.reading() as connection:
            return connection.execute(_wanted(attempt)).first() is not None


def _wanted(uid: str) -> sa.Select[tuple[int]]:
    return (
        sa.select(attempt.c.id)
        .where(attempt.c.uid == uid, attempt.c.state == _RUNNING)
        .where(
            sa.exists().where(
                trial.c.training_id == attempt.c.training_id,
                trial.c.state.in_(TRIAL_ACTIVE),
            )
        )
    )


def _first_waiting(connection: sa.Connection, turn: _Turn, above: int | None = None) -> tuple[int, Slot] | None:
    """The training to claim next and the slot that its trial asks for; with `above`, of a higher priority than that."""
    busy = busy_slots(connection)
    for row in in_turn(connection, busy):
        if above is not None and row.priority <= above:
            return None  # as are all that follow
        if turn.quota is not None and busy.get(row.actor, 0) >= turn.quota:
            continue
        # One sweep at a time: the index (sweep, state, position) then gives the first row without sorting.
        first = connection.execute(
            sa.select(trial.c.training_id, trial.c.slot)
            .join(training, training.c.id == trial.c.training_id)
            .where(trial.c.sweep_id == row.id, trial.c.state == TrialState.WAITING)
            .where(training.c.state == TrialState.WAITING, training.c.uid.not_in(turn.resting))
            .where(*_not_barred(row.text, turn.barred), *not_held(turn.held))
            .order_by(trial.c.position)
            .limit(1)
        ).first()
        if first is not None:
            return first.training_id, Slot.model_validate(first.slot or row.slot)
    return None


def _not_barred(slot: str, barred: tuple[str, ...]) -> list[sa.ColumnElement[bool]]:
    """What holds of a trial whose slot is none of those; `slot` is its sweep's."""
    if not barred:  # as nearly always: then the index alone says which trial is next
        return []
    own = sa.cast(trial.c.slot, sa.Text).not_in(barred)
    return [own] if slot in barred else [sa.or_(trial.c.slot.is_(None), own)]


def not_held(held: Collection[str]) -> list[sa.ColumnElement[bool]]:
    """What holds of a training that needs none of those."""
    return [sa.or_(training.c.need.is_(None), training.c.need.not_in(held))] if held else []


def in_turn(connection: sa.Connection, busy: Mapping[str | None, int]) -> list[sa.Row[Any]]:
    """Running sweeps by priority; among equals those of the owner who holds the fewest slots; then the oldest."""
    text = sa.cast(sweep.c.slot, sa.Text).label("text")
    running = sa.select(sweep.c.id, sweep.c.slot, text, sweep.c.priority, sweep.c.actor)
    rows = connection.execute(running.where(sweep.c.state == SweepState.RUNNING)).all()
    return sorted(rows, key=lambda one: (-one.priority, busy.get(one.actor, 0), one.id))


def busy_slots(connection: sa.Connection) -> dict[str | None, int]:
    """How many trainings run for each owner; one that two owners share counts for both."""
    query = (
        sa.select(sweep.c.actor, sa.func.count(trial.c.training_id.distinct()).label("n"))
        .join(trial, trial.c.sweep_id == sweep.c.id)
        .where(sweep.c.state.in_(SWEEP_GOING), trial.c.state == TrialState.RUNNING)
        .group_by(sweep.c.actor)
    )
    return {row.actor: row.n for row in connection.execute(query)}


def _claim(connection: sa.Connection, fence: int, training_id: int, slot: Slot) -> Order:
    now = datetime.now(UTC)
    row = connection.execute(
        sa.update(training)
        .where(training.c.id == training_id, training.c.state == TrialState.WAITING)
        .values(state=TrialState.RUNNING, started=sa.func.coalesce(training.c.started, now))
        .returning(training.c.uid, training.c.recipe, training.c.need)
    ).one()
    run_with_training(connection, training_id, now)
    number, resume = _number_and_resume(connection, training_id, row.uid)
    uid = str(uuid.uuid4())
    connection.execute(
        sa.insert(attempt).values(
            uid=uid, training_id=training_id, number=number, state=_RUNNING, fence=fence,
            slot=slot.model_dump(mode="json"), resumed_from=resume, started=now,
        )
    )  # fmt: skip
    if number > 1:
        attempt_id = connection.execute(sa.select(attempt.c.id).where(attempt.c.uid == uid)).scalar_one()
        write_log(connection, training_id, attempt_id, 0, f"--- attempt {number} ---\n")
    label = order_label(connection, training_id)
    return Order(uid, row.uid, number, row.recipe, slot, resume, need=row.need, label=label)


def run_with_training(connection: sa.Connection, training_id: int, now: datetime) -> None:
    """A training's waiting trials run when it runs, whichever sweep they are of."""
    connection.execute(
        sa.update(trial)
        .where(trial.c.training_id == training_id, trial.c.state == TrialState.WAITING)
        .values(state=TrialState.RUNNING, started=sa.func.coalesce(trial.c.started, now))
    )


def _number_and_resume(connection: sa.Connection, training_id: int, uid: str) -> tuple[int, str | None]:
    """The next attempt's number, and the checkpoint of the latest attempt that reported one."""
    earlier = connection.execute(
        sa.select(attempt.c.number, attempt.c.checkpoint)
        .where(attempt.c.training_id == training_id)
        .order_by(attempt.c.number.desc())
    ).all()
    number = earlier[0].number + 1 if earlier else 1
    kept = next((row for row in earlier if row.checkpoint), None)
    return number, f"{uid}/{kept.number}/{kept.checkpoint}" if kept else None
