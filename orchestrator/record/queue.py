"""Claims the next training for a slot: the order of the queue, and the limits on slots."""

import uuid
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from orchestrator.record.attempts import write_log
from orchestrator.record.changes import note_trials
from orchestrator.record.database import Access, FencedAccess, first_of_either, with_labels
from orchestrator.record.schema import attempt, collected, node, sweep, training, trial
from orchestrator.record.trainings import evaluation_left, evaluation_of, needed
from orchestrator.spec.spec import Slot
from orchestrator.views.accounts import UNLIMITED, QuotaLimits
from orchestrator.views.operations import Node, shape_of
from orchestrator.views.runs import Order
from orchestrator.views.states import SWEEP_GOING, TRIAL_ACTIVE, SweepState, TrialState

_HELD = (
    sa.select(attempt.c.owner_id, attempt.c.project_id, sa.func.count().label("n"))
    .where(attempt.c.state == "running")
    .group_by(attempt.c.owner_id, attempt.c.project_id)
)


RUNNING = "running"

_SOURCE, _EARLIER = training.alias(), trial.alias()
_TRAINED = (
    sa.select(sweep.c.actor, sa.func.count(trial.c.training_id.distinct()).label("n"))
    .join(trial, trial.c.sweep_id == sweep.c.id)
    .where(sweep.c.state.in_(SWEEP_GOING), trial.c.state == TrialState.RUNNING)
    .group_by(sweep.c.actor)
)
_EVALUATED = (
    sa.select(sweep.c.actor, sa.func.count(trial.c.evaluation_id.distinct()).label("n"))
    .join(trial, trial.c.sweep_id == sweep.c.id)
    .join(training, training.c.id == trial.c.evaluation_id)
    .where(sweep.c.state.in_(SWEEP_GOING), trial.c.evaluation_id.is_not(None))
    .where(training.c.state == TrialState.RUNNING)
    .group_by(sweep.c.actor)
)


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The trainings that must not be claimed now, by owner, slot, data set and other reasons."""

    quota: int | None = None
    """Trainings of owners who hold so many slots."""
    resting: Collection[str] = ()
    """Trainings that rest after a loss."""
    impossible_slots: Collection[str] = ()
    """Slots, as JSON of the database."""
    missing_needs: Collection[str] = ()
    """Needs, by their keys."""
    racing: Mapping[int, int] = field(default_factory=dict)
    """By racing sweep, the number of first repeats that need not wait for earlier repeats of their cell to end."""
    limits: QuotaLimits = UNLIMITED
    """Owners and projects with all their slots in use, and slots of sweeps whose hours are used up."""
    everything: bool = False
    """Everything, since a disk has too little room."""


NOTHING: Final = Exclusions()


class ClaimReader(Access):
    """Reads which trainings wait for a slot and which attempts run."""

    def outranked(self, uid: str, passed: Exclusions) -> bool:
        """Whether an attempt should give its slot to a training of a higher priority.

        Also true if only paused sweeps want the attempt's training. `passed`: trainings that cannot be claimed.
        """
        wanting = (
            sa.select(sa.func.max(sweep.c.priority))
            .join(trial, trial.c.sweep_id == sweep.c.id)
            .where(sweep.c.state == SweepState.RUNNING, _whose(uid))
        )
        with self._database.reading() as connection:
            rank = connection.scalar(wanting)
            return rank is None or first_waiting(connection, passed, rank) is not None

    def waits(self, passed: Exclusions = NOTHING) -> bool:
        """Whether a training waits for a slot that `passed` does not exclude."""
        with self._database.reading() as connection:
            return first_waiting(connection, passed) is not None

    def waits_of(self, sweep_id: int, slots: Collection[str]) -> bool:
        """Whether a trial of the sweep waits for one of these slots (JSON), to be trained or evaluated."""
        query = (
            sa.select(trial.c.id)
            .join(sweep, sweep.c.id == trial.c.sweep_id)
            .where(trial.c.sweep_id == sweep_id, asks_for(slots, sa.cast(sweep.c.slot, sa.Text)))
            .where(sa.or_(trial.c.state == TrialState.WAITING, evaluation_left()))
        )
        return self._exists(query)

    def orphans(self) -> list[Order]:
        """The attempts that the database has as running, oldest first, for a new conductor to adopt or give up.

        An attempt without a recorded holder, whose holder is empty, has usually not begun.
        """
        columns = (
            attempt.c.uid, attempt.c.number, attempt.c.slot, attempt.c.resumed_from, attempt.c.holder, attempt.c.seen,
            training.c.uid.label("training"), training.c.recipe, training.c.need, attempt.c.training_id,
        )  # fmt: skip
        query = (
            sa.select(*columns)
            .join(training, training.c.id == attempt.c.training_id)
            .where(attempt.c.state == RUNNING)
            .order_by(attempt.c.id)
        )
        with self._database.reading() as connection:
            return [
                Order(
                    attempt=row.uid, training=row.training, number=row.number, recipe=row.recipe,
                    slot=Slot.model_validate(row.slot), resume=row.resumed_from, holder=row.holder or "", seen=row.seen,
                    need=row.need, **order_names(connection, row.training_id),
                )
                for row in connection.execute(query).all()
            ]  # fmt: skip

    def needed_of(self, attempts: Collection[str]) -> set[str]:
        """Those of the attempts that run and whose training a trial still needs."""
        query = (
            sa.select(attempt.c.uid)
            .where(attempt.c.uid.in_(list(attempts)), attempt.c.state == RUNNING)
            .join(training, training.c.id == attempt.c.training_id)
            .where(training.c.state == TrialState.RUNNING, needed(attempt.c.training_id))
        )
        return {row.uid for row in self._rows(query)}


def _whose(uid: str) -> sa.ColumnElement[bool]:
    """The condition that a trial runs with the training of an attempt, or will move to it."""
    its = sa.select(attempt.c.training_id).where(attempt.c.uid == uid).scalar_subquery()
    runs = sa.and_(trial.c.training_id == its, trial.c.state == TrialState.RUNNING)
    return sa.or_(runs, trial.c.evaluation_id == its)


class Turn(NamedTuple):
    """The training to claim next, the slot that its trial asks for, and the owner and project that use the slot."""

    training: int
    slot: Slot
    owner: int | None
    project: int


def first_waiting(connection: sa.Connection, passed: Exclusions, above: int | None = None) -> Turn | None:
    """The first training of the queue that may be claimed; with `above`, only of a higher priority."""
    if passed.everything:
        return None
    busy, room = busy_slots(connection), FreeSlots(connection, passed.limits)
    for row in in_turn(connection, busy):
        if above is not None and row.priority <= above:
            return None  # the rest has no higher priority either
        if passed.quota is not None and busy.get(row.actor, 0) >= passed.quota:
            continue
        if room.left(row.owner_id, row.project_id, 1) < 1:
            continue
        excluded = [*passed.impossible_slots, *sorted(passed.limits.spent.get(row.id, ()))]
        free = (~asks_for(excluded, row.text), ~reads(passed.missing_needs), training.c.uid.not_in(passed.resting))
        # One sweep at a time: the index (sweep, state, position) then gives the first row without sorting.
        for query in (evaluations_due(row.id), trainings_due(row.id, passed.racing.get(row.id))):
            first = connection.execute(query.where(*free).limit(1)).first()
            if first is not None:
                slot = Slot.model_validate(first.slot or row.slot)
                return Turn(first.id, slot, row.owner_id, row.project_id)
    return None


def busy_slots(connection: sa.Connection) -> dict[str | None, int]:
    """The number of running trainings by owner; a shared training counts for each owner."""
    busy: dict[str | None, int] = {}
    for row in [*connection.execute(_TRAINED), *connection.execute(_EVALUATED)]:
        busy[row.actor] = busy.get(row.actor, 0) + row.n
    return busy


class FreeSlots:
    """Counts the slots that owners and projects use, against their quotas."""

    def __init__(self, connection: sa.Connection, limits: QuotaLimits) -> None:
        self._limits = limits
        self.users, self.projects = Counter[int | None](), Counter[int | None]()
        """Used slots, by the ids of owners and projects."""
        for row in connection.execute(_HELD):
            self.take(row.owner_id, row.project_id, row.n)

    def left(self, owner: int | None, project: int, most: int) -> int:
        """The number of slots that an owner and its project may still use, at most `most`."""
        pairs = ((owner, self._limits.users, self.users), (project, self._limits.projects, self.projects))
        for number, limits, held in pairs:
            if number is not None and number in limits:
                most = min(most, limits[number] - held[number])
        return most

    def take(self, owner: int | None, project: int | None, slots: int) -> None:
        """Count slots as used by an owner and its project."""
        self.users[owner] += slots
        self.projects[project] += slots


def in_turn(connection: sa.Connection, busy: Mapping[str | None, int]) -> list[sa.Row[Any]]:
    """The running sweeps in the order of the queue.

    By priority, then the owner with the fewest used slots, then age.
    """
    columns = (sweep.c[name] for name in ("id", "slot", "priority", "actor", "owner_id", "project_id"))
    query: sa.Select[Any] = sa.select(*columns, sa.cast(sweep.c.slot, sa.Text).label("text"))
    rows = connection.execute(query.where(sweep.c.state == SweepState.RUNNING)).all()
    return sorted(rows, key=lambda row: (-row.priority, busy.get(row.actor, 0), row.id))


def trainings_due(sweep_id: int, racing: int | None = None) -> sa.Select[Any]:
    """SQL for the waiting trainings of a sweep in the order of its plan.

    In a race, a trial waits for earlier repeats of its cell, but for the first `racing` repeats.
    """
    query = (
        sa.select(training.c.id, trial.c.slot)
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id == sweep_id, trial.c.state == TrialState.WAITING)
        .where(training.c.state == TrialState.WAITING)
        .order_by(trial.c.position)
    )
    if racing is None:
        return query
    same = (_EARLIER.c.sweep_id == trial.c.sweep_id, _EARLIER.c.cell == trial.c.cell)
    earlier = sa.exists().where(*same, _EARLIER.c.state.in_(TRIAL_ACTIVE), _EARLIER.c.repeat < trial.c.repeat)
    return query.where(sa.or_(trial.c.repeat < racing, ~earlier))


def evaluations_due(sweep_id: int) -> sa.Select[Any]:
    """SQL for the waiting evaluations of a sweep's finished trials whose weights exist, oldest first."""
    done = sa.exists().where(_SOURCE.c.id == training.c.source, _SOURCE.c.state == TrialState.FINISHED)
    return (
        sa.select(training.c.id, trial.c.slot)
        .join(training, training.c.id == trial.c.evaluation_id)
        .where(trial.c.sweep_id == sweep_id, trial.c.evaluation_id.is_not(None))
        .where(training.c.state == TrialState.WAITING, sa.or_(training.c.source.is_(None), done))
        .order_by(trial.c.evaluation_id)
    )


def asks_for(slots: Collection[str], usual: str | sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """The SQL condition that a trial asks for one of these slots, as JSON; `usual` is the slot of its sweep."""
    return sa.func.coalesce(sa.cast(trial.c.slot, sa.Text), usual).in_(slots)


def reads(needs: Collection[str]) -> sa.ColumnElement[bool]:
    """The SQL condition that a training reads one of these data sets."""
    return sa.func.coalesce(training.c.need, "").in_(needs)


def order_names(connection: sa.Connection, training_id: int) -> dict[str, Any]:
    """The `label`, `sweep` and `trial` that name a training, of the first trial that points to it or will."""
    first = first_of_either(trial.c.training_id == training_id, trial.c.evaluation_id == training_id)
    query = sa.select(sweep.c.id, trial.c.id.label("trial"), sweep.c.name, trial.c.repeat_labels).select_from(trial)
    query = query.join(sweep, sweep.c.id == trial.c.sweep_id).where(trial.c.id == first)
    row = connection.execute(with_labels(query)).one_or_none()
    if row is None:
        return {}
    label = f"{row.name} #{row.id} · {trial_name(row.cell_labels, {**row.candidate_labels, **row.repeat_labels})}"
    return {"label": label, "sweep": row.id, "trial": row.trial}


def trial_name(compared: Mapping[str, str], chosen: Mapping[str, str]) -> str:
    """The name of a trial, from the labels of its cell and its own: `triplet · sec · eta=0.5 · seed=1`."""
    return " · ".join([cell_name(compared), *(f"{axis.rpartition('.')[2]}={label}" for axis, label in chosen.items())])


def cell_name(labels: Mapping[str, str]) -> str:
    """The name of a cell, from its labels: `triplet · sec`."""
    return " · ".join(labels.values()) or "all"


class ClaimWriter(FencedAccess):
    """Claims waiting trainings, so that each starts in one slot only."""

    def next(self, passed: Exclusions = NOTHING) -> Order | None:
        """Claim the next training of the queue; `None` if all waiting trainings are excluded by `passed`."""
        with self._database.reading() as connection:
            if first_waiting(connection, passed) is None:
                return None  # the usual case, without the writer's lock
        with self._database.writing() as connection:
            first = first_waiting(connection, passed)
            return None if first is None else _claim(connection, self._database.fence, first)


def _claim(connection: sa.Connection, fence: int, turn: Turn) -> Order:
    now, training_id, slot = datetime.now(UTC), turn.training, turn.slot
    claiming = (
        sa.update(training)
        .where(training.c.id == training_id, training.c.state == TrialState.WAITING)
        .values(state=TrialState.RUNNING, started=sa.func.coalesce(training.c.started, now))
        .returning(training.c.uid, training.c.recipe, training.c.need, training.c.source)
    )
    row = connection.execute(claiming).one()
    run_with_training(connection, training_id, now)
    number, resume = _number_and_resume(connection, training_id, row.uid)
    # The attempt will keep weights again.
    connection.execute(sa.delete(collected).where(collected.c.training_id == training_id))
    uid = str(uuid.uuid4())
    values = {
        "uid": uid, "training_id": training_id, "number": number, "state": RUNNING, "fence": fence,
        "slot": slot.model_dump(mode="json"), "resumed_from": resume, "started": now, "owner_id": turn.owner,
        "project_id": turn.project, "cpus": slot.cpus, "gpus": _gpus(connection, slot),
    }  # fmt: skip
    connection.execute(sa.insert(attempt), [values])
    if number > 1:
        attempt_id = connection.execute(sa.select(attempt.c.id).where(attempt.c.uid == uid)).scalar_one()
        write_log(connection, training_id, attempt_id, 0, f"--- attempt {number} ---\n")
    names = order_names(connection, training_id)
    evaluation = None if row.source is None else evaluation_of(connection, row.source, row.recipe)
    return Order(uid, row.uid, number, row.recipe, slot, resume, need=row.need, evaluation=evaluation, **names)


def _gpus(connection: sa.Connection, slot: Slot) -> float:
    """The GPUs that an attempt holds; `auto` depends on the present nodes."""
    if slot.gpus != "auto":
        return slot.gpus
    there = connection.execute(sa.select(node.c.uid, node.c.host, node.c.resources).where(node.c.alive))
    return shape_of(slot, [Node(row.uid, row.host, row.resources) for row in there]).gpus


def run_with_training(connection: sa.Connection, training_id: int, now: datetime) -> None:
    """Set the waiting trials of all sweeps that share a training to running."""
    begun = connection.execute(
        sa.update(trial)
        .where(trial.c.training_id == training_id, trial.c.state == TrialState.WAITING)
        .values(state=TrialState.RUNNING, started=sa.func.coalesce(trial.c.started, now))
        .returning(trial.c.sweep_id, trial.c.id)
    ).all()
    note_trials(connection, [(row.sweep_id, row.id) for row in begun])


def _number_and_resume(connection: sa.Connection, training_id: int, uid: str) -> tuple[int, str | None]:
    """The next attempt's number, and the latest checkpoint."""
    query = sa.select(attempt.c.number, attempt.c.checkpoint).where(attempt.c.training_id == training_id)
    earlier = connection.execute(query.order_by(attempt.c.number.desc())).all()
    number = earlier[0].number + 1 if earlier else 1
    kept = next((row for row in earlier if row.checkpoint), None)
    return number, f"{uid}/{kept.number}/{kept.checkpoint}" if kept else None
