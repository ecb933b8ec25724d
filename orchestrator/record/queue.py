"""Decides which training is claimed next: the order of the queue, and the limits on slots."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from orchestrator.record.database import Access, first_of_either, with_labels
from orchestrator.record.schema import attempt, sweep, training, trial
from orchestrator.record.trainings import evaluation_left, needed
from orchestrator.spec.spec import Slot
from orchestrator.views.accounts import UNLIMITED, QuotaLimits
from orchestrator.views.runs import Order
from orchestrator.views.states import SWEEP_GOING, TRIAL_ACTIVE, SweepState, TrialState

_HELD = (
    sa.select(attempt.c.owner_id, attempt.c.project_id, sa.func.count().label("n"))
    .where(attempt.c.state == "running")
    .group_by(attempt.c.owner_id, attempt.c.project_id)
)


RUNNING = "running"

_SOURCE, _EARLIER = training.alias(), trial.alias()
_IN_TURN = sa.select(
    sweep.c.id,
    sweep.c.slot,
    sa.cast(sweep.c.slot, sa.Text).label("text"),
    sweep.c.priority,
    sweep.c.actor,
    sweep.c.owner_id,
    sweep.c.project_id,
).where(sweep.c.state == SweepState.RUNNING)
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
            rank = connection.execute(wanting).scalar()
            return rank is None or first_waiting(connection, passed, rank) is not None

    def waits(self, passed: Exclusions = NOTHING) -> bool:
        """Whether a training waits for a slot that `passed` does not exclude."""
        with self._database.reading() as connection:
            return first_waiting(connection, passed) is not None

    def waits_of(self, sweep_id: int, slots: Collection[str]) -> bool:
        """Whether a trial of the sweep waits for one of these slots (JSON), to be trained or evaluated."""
        own, texts = sa.cast(trial.c.slot, sa.Text), list(slots)
        usual = sa.cast(sweep.c.slot, sa.Text).in_(texts)
        asks = sa.or_(own.in_(texts), sa.and_(trial.c.slot.is_(None), usual))
        query = (
            sa.select(trial.c.id)
            .join(sweep, sweep.c.id == trial.c.sweep_id)
            .where(trial.c.sweep_id == sweep_id, asks)
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
        excluded, racing = (
            (*passed.impossible_slots, *sorted(passed.limits.spent.get(row.id, ()))),
            passed.racing.get(row.id),
        )
        queries = _USUAL
        if excluded or passed.missing_needs or racing is not None:
            queries = _next_of_sweep((*slot_not_in(row.text, excluded), *need_not_in(passed.missing_needs)), racing)
        # One sweep at a time: the index (sweep, state, position) then gives the first row without sorting.
        for query in queries:
            first = connection.execute(query, {"sweep": row.id, "resting": [*passed.resting]}).first()
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
    """Counts the slots that owners and projects use, against their quotas.

    The database is read only if there are quotas, or for `every`.
    """

    def __init__(self, connection: sa.Connection, limits: QuotaLimits, *, every: bool = False) -> None:
        self._limits = limits
        self.users, self.projects = Counter[int | None](), Counter[int | None]()
        """Used slots, by the ids of owners and projects."""
        if every or limits.users or limits.projects:
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
    rows = connection.execute(_IN_TURN).all()
    return sorted(rows, key=lambda row: (-row.priority, busy.get(row.actor, 0), row.id))


def _next_of_sweep(
    free: tuple[sa.ColumnElement[bool], ...] = (), racing: int | None = None
) -> tuple[sa.Select[Any], ...]:
    """The queries for a sweep's next evaluation, and for its next training; without those that are `resting`."""
    waiting = (
        sa.select(training.c.id, trial.c.slot)
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id == sa.bindparam("sweep"), trial.c.state == TrialState.WAITING)
        .where(*_in_its_round(racing))
        .order_by(trial.c.position)
    )
    rested = training.c.uid.not_in(sa.bindparam("resting", expanding=True))
    mine = (training.c.state == TrialState.WAITING, rested, *free)
    return tuple(query.where(*mine).limit(1) for query in (evaluations_due(sa.bindparam("sweep")), waiting))


def _in_its_round(first: int | None) -> list[sa.ColumnElement[bool]]:
    """The condition that a trial of a race need not wait for earlier repeats; the `first` repeats never do."""
    if first is None:
        return []
    same = (_EARLIER.c.sweep_id == trial.c.sweep_id, _EARLIER.c.cell == trial.c.cell)
    open_ones = sa.exists().where(*same, _EARLIER.c.state.in_(TRIAL_ACTIVE), _EARLIER.c.repeat < trial.c.repeat)
    return [sa.or_(trial.c.repeat < first, ~open_ones)]


def evaluations_due(sweep_id: int | sa.BindParameter[int]) -> sa.Select[Any]:
    """SQL for the waiting evaluations of a sweep's finished trials whose weights exist, oldest first."""
    done = sa.exists().where(_SOURCE.c.id == training.c.source, _SOURCE.c.state == TrialState.FINISHED)
    return (
        sa.select(training.c.id, trial.c.slot)
        .join(training, training.c.id == trial.c.evaluation_id)
        .where(trial.c.sweep_id == sweep_id, trial.c.evaluation_id.is_not(None))
        .where(training.c.state == TrialState.WAITING, sa.or_(training.c.source.is_(None), done))
        .order_by(trial.c.evaluation_id)
    )


def slot_not_in(slot: str, excluded: tuple[str, ...]) -> list[sa.ColumnElement[bool]]:
    """The SQL condition that a trial's slot is not `excluded`; `slot` is the slot of its sweep."""
    if not excluded:  # the usual case, for which the index alone suffices
        return []
    own = sa.cast(trial.c.slot, sa.Text).not_in(excluded)
    return [own] if slot in excluded else [sa.or_(trial.c.slot.is_(None), own)]


def need_not_in(missing_needs: Collection[str]) -> list[sa.ColumnElement[bool]]:
    """The SQL condition that a training reads none of these data sets."""
    return [sa.or_(training.c.need.is_(None), training.c.need.not_in(missing_needs))] if missing_needs else []


_USUAL: Final = _next_of_sweep()
"""For a sweep without exclusions that does not race."""


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
