"""Which training is next: the order of the queue, and the room that its slot needs."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from orchestrator.record.database import Access, first_of_either, of_candidate
from orchestrator.record.schema import attempt, candidate, cell, sweep, training, trial
from orchestrator.record.trainings import evaluation_left, wanted
from orchestrator.spec.axes import Slot
from orchestrator.views.accounts import UNLIMITED, QuotaLimits
from orchestrator.views.runs import Order
from orchestrator.views.states import SWEEP_GOING, TRIAL_ACTIVE, SweepState, TrialState

_HELD = (
    sa.select(attempt.c.owner_id, attempt.c.project_id, sa.func.count().label("n"))
    .where(attempt.c.state == "running")
    .group_by(attempt.c.owner_id, attempt.c.project_id)
)


class SlotRoom:
    """The slots of one moment; where there are no quotas nothing is asked, but for `every`."""

    def __init__(self, connection: sa.Connection, limits: QuotaLimits, *, every: bool = False) -> None:
        self._limits = limits
        self.users, self.projects = Counter[int | None](), Counter[int | None]()
        """Slots that are held, by number of their owner and their project."""
        if every or limits.users or limits.projects:
            for row in connection.execute(_HELD):
                self.take(row.owner_id, row.project_id, row.n)

    def left(self, owner: int | None, project: int, most: int) -> int:
        """How many more slots sweeps of this owner and this project may take; `most` where nothing limits them."""
        pairs = ((owner, self._limits.users, self.users), (project, self._limits.projects, self.projects))
        for number, limits, held in pairs:
            if number is not None and number in limits:
                most = min(most, limits[number] - held[number])
        return most

    def take(self, owner: int | None, project: int | None, slots: int) -> None:
        """Count further slots as held."""
        self.users[owner] += slots
        self.projects[project] += slots


def cell_name(labels: Mapping[str, str]) -> str:
    """Such as `triplet · sec`."""
    return " · ".join(labels.values()) or "all"


def trial_name(compared: Mapping[str, str], chosen: Mapping[str, str]) -> str:
    """The name of its cell, and what sets it apart there: `triplet · sec · eta=0.5 · seed=1`."""
    return " · ".join([cell_name(compared), *(f"{axis.rpartition('.')[2]}={one}" for axis, one in chosen.items())])


@dataclass(frozen=True, slots=True)
class OrderNames:
    """What an order is called, and whose it is first."""

    label: str = ""
    sweep: int | None = None
    trial: int | None = None


_MINE: Final[sa.BindParameter[int]] = sa.bindparam("mine")
_NAMED: Final = (
    sa.select(
        sweep.c.id, trial.c.id.label("trial"), sweep.c.name, cell.c.labels.label("compared"),
        candidate.c.labels.label("tuned"), trial.c.repeat_labels,
    )
    .select_from(trial)
    .join(sweep, sweep.c.id == trial.c.sweep_id)
    .join(cell, sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell))
    .join(candidate, of_candidate())
    .where(trial.c.id == first_of_either(trial.c.training_id == _MINE, trial.c.evaluation_id == _MINE))
)  # fmt: skip
"""Made once, since every claim asks it."""


def order_names(connection: sa.Connection, training_id: int) -> OrderNames:
    """Those of the first trial that points to a training, or is to, with its sweep's; none does so: nothing."""
    row = connection.execute(_NAMED, {"mine": training_id}).one_or_none()
    if row is None:
        return OrderNames()
    label = f"{row.name} #{row.id} · {trial_name(row.compared, {**row.tuned, **row.repeat_labels})}"
    return OrderNames(label, row.id, row.trial)


RUNNING = "running"

# Made once, since they are asked at every turn.
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
    """What is passed over when the next training is chosen."""

    quota: int | None = None
    """Owners who hold so many slots."""
    resting: Collection[str] = ()
    """Trainings that rest after a loss."""
    barred: Collection[str] = ()
    """Slots, their JSON as the database holds it."""
    held: Collection[str] = ()
    """Needs, by their keys."""
    racing: Mapping[int, int] = field(default_factory=dict)
    """Sweeps of which a repeat waits for all earlier ones of its cell to end, but for so many first ones."""
    limits: QuotaLimits = UNLIMITED
    """Owners and projects who hold as many slots as they may, and slots of sweeps whose hours are used up."""
    everything: bool = False
    """Nothing new is begun at all, since a disk has too little room."""

    def barred_of(self, sweep_id: int) -> tuple[str, ...]:
        """The slots that are not given to trials of a sweep."""
        return (*self.barred, *sorted(self.limits.spent.get(sweep_id, ())))


NOTHING: Final = Exclusions()


class Turn(NamedTuple):
    """Whose turn it is: a training, the slot that its trial asks for, and for whom it is claimed."""

    training: int
    slot: Slot
    owner: int | None
    project: int


class ClaimReader(Access):
    """Reads what waits and what runs."""

    def outranked(self, uid: str, passed: Exclusions) -> bool:
        """Whether a training of a higher priority waits than that of this attempt, or only paused sweeps want it."""
        wanting = (
            sa.select(sa.func.max(sweep.c.priority))
            .join(trial, trial.c.sweep_id == sweep.c.id)
            .where(sweep.c.state == SweepState.RUNNING, _whose(uid))
        )
        with self._database.reading() as connection:
            rank = connection.execute(wanting).scalar()
            return rank is None or first_waiting(connection, passed, rank) is not None

    def waits(self, passed: Exclusions = NOTHING) -> bool:
        """Whether a training waits that is not passed over."""
        with self._database.reading() as connection:
            return first_waiting(connection, passed) is not None

    def waits_of(self, sweep_id: int, slots: Collection[str]) -> bool:
        """Whether a trial of a running sweep waits for one of these slots (JSON), or is to be evaluated there."""
        own, texts = sa.cast(trial.c.slot, sa.Text), list(slots)
        usual = sa.cast(sweep.c.slot, sa.Text).in_(texts)
        asks = sa.or_(own.in_(texts), sa.and_(trial.c.slot.is_(None), usual))
        query = (
            sa.select(trial.c.id)
            .join(sweep, sweep.c.id == trial.c.sweep_id)
            .where(trial.c.sweep_id == sweep_id, asks)
            .where(sa.or_(trial.c.state == TrialState.WAITING, evaluation_left()))
        )
        with self._database.reading() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def orphans(self) -> list[Order]:
        """Attempts that are running by the database, oldest first: what a new conductor adopts or gives up.

        Each has a holder, an empty one where none was noted: it has not begun, unless an engine begins before it notes.
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
                    need=row.need, label=names.label, sweep=names.sweep, trial=names.trial,
                )
                for row in connection.execute(query).all()
                for names in [order_names(connection, row.training_id)]
            ]  # fmt: skip

    def wanted(self, attempt: str) -> bool:
        """Whether the attempt runs and some trial still waits for its training."""
        return attempt in self.wanted_of([attempt])

    def wanted_of(self, attempts: Collection[str]) -> set[str]:
        """Those of the attempts that run, and for whose training some trial still waits."""
        with self._database.reading() as connection:
            return set(connection.scalars(_WANTED, {"attempts": list(attempts)}))


_WANTED: Final = (
    sa.select(attempt.c.uid)
    .where(attempt.c.uid.in_(sa.bindparam("attempts", expanding=True)), attempt.c.state == RUNNING)
    .join(training, training.c.id == attempt.c.training_id)
    .where(training.c.state == TrialState.RUNNING, wanted(attempt.c.training_id))
)
"""Made once: it is asked twice a second."""


def _whose(uid: str) -> sa.ColumnElement[bool]:
    """Of a trial: whether it runs with the training of an attempt, or is to move to it."""
    its = sa.select(attempt.c.training_id).where(attempt.c.uid == uid).scalar_subquery()
    runs = sa.and_(trial.c.training_id == its, trial.c.state == TrialState.RUNNING)
    return sa.or_(runs, trial.c.evaluation_id == its)


def first_waiting(connection: sa.Connection, passed: Exclusions, above: int | None = None) -> Turn | None:
    """The training to claim next; with `above`, of a higher priority than that."""
    if passed.everything:
        return None
    busy, room = busy_slots(connection), SlotRoom(connection, passed.limits)
    for row in in_turn(connection, busy):
        if above is not None and row.priority <= above:
            return None  # as are all that follow
        if passed.quota is not None and busy.get(row.actor, 0) >= passed.quota:
            continue
        if room.left(row.owner_id, row.project_id, 1) < 1:
            continue
        # One sweep at a time: the index (sweep, state, position) then gives the first row without sorting.
        for query in _queries(row, passed):
            first = connection.execute(query, {"sweep": row.id, "resting": [*passed.resting]}).first()
            if first is not None:
                slot = Slot.model_validate(first.slot or row.slot)
                return Turn(first.id, slot, row.owner_id, row.project_id)
    return None


def _queries(row: sa.Row[Any], passed: Exclusions) -> tuple[sa.Select[Any], ...]:
    """What asks a sweep for its next training, in turn."""
    barred, racing = passed.barred_of(row.id), passed.racing.get(row.id)
    if barred or passed.held or racing is not None:
        return _next_of_sweep((*not_barred(row.text, barred), *not_held(passed.held)), racing)
    return _USUAL


def _next_of_sweep(
    free: tuple[sa.ColumnElement[bool], ...] = (), racing: int | None = None
) -> tuple[sa.Select[Any], ...]:
    """Of `sweep`, without those that are `resting`: the evaluation, which soon makes a trial whole, and the trial."""
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


def evaluations_due(sweep_id: int | sa.BindParameter[int]) -> sa.Select[Any]:
    """The trainings, in the order of their making, to which finished trials of a sweep are to move.

    One that evaluates can do so once its source has finished.
    """
    done = sa.exists().where(_SOURCE.c.id == training.c.source, _SOURCE.c.state == TrialState.FINISHED)
    return (
        sa.select(training.c.id, trial.c.slot)
        .join(training, training.c.id == trial.c.evaluation_id)
        .where(trial.c.sweep_id == sweep_id, trial.c.evaluation_id.is_not(None))
        .where(training.c.state == TrialState.WAITING, sa.or_(training.c.source.is_(None), done))
        .order_by(trial.c.evaluation_id)
    )


def _in_its_round(first: int | None) -> list[sa.ColumnElement[bool]]:
    """What holds of a trial that need not wait for others of its cell to end; `first`: of a race, as `racing` has."""
    if first is None:
        return []
    same = (_EARLIER.c.sweep_id == trial.c.sweep_id, _EARLIER.c.cell == trial.c.cell)
    open_ones = sa.exists().where(*same, _EARLIER.c.state.in_(TRIAL_ACTIVE), _EARLIER.c.repeat < trial.c.repeat)
    return [sa.or_(trial.c.repeat < first, ~open_ones)]


def not_barred(slot: str, barred: tuple[str, ...]) -> list[sa.ColumnElement[bool]]:
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
    rows = connection.execute(_IN_TURN).all()
    return sorted(rows, key=lambda one: (-one.priority, busy.get(one.actor, 0), one.id))


def busy_slots(connection: sa.Connection) -> dict[str | None, int]:
    """How many trainings run for each owner; one that two owners share counts for both."""
    busy: dict[str | None, int] = {}
    for row in [*connection.execute(_TRAINED), *connection.execute(_EVALUATED)]:
        busy[row.actor] = busy.get(row.actor, 0) + row.n
    return busy


_USUAL: Final = _next_of_sweep()
"""Of a sweep of which nothing is passed over and that does not race: every claim asks it twice."""
