"""What the cluster page and the metrics endpoint show."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import sqlalchemy as sa

from orchestrator.record.capacity import CapacityReader, QuotaReader
from orchestrator.record.changes import DeliveryReader
from orchestrator.record.columns import DatabaseSeconds
from orchestrator.record.database import CONDUCTOR, Access, first_of_either, of_candidate
from orchestrator.record.queue import SlotRoom, busy_slots
from orchestrator.record.schema import (
    attempt,
    candidate,
    cell,
    finding,
    lease,
    node,
    outbox,
    slot,
    sweep,
    sweep_need,
    training,
    trial,
)
from orchestrator.record.trials import of_whole
from orchestrator.views.operations import (
    Backlog,
    Gauges,
    NodeView,
    Occupant,
    ProcessUsage,
    SlotView,
    WaitingSweep,
    WaitReason,
    possible,
)
from orchestrator.views.states import SWEEP_GOING, TRIAL_ACTIVE, SweepState, TrialState

FORGOTTEN: Final = timedelta(seconds=60)
"""A slot that nobody has noted for so long is not shown: its conductor is gone."""
MOST_QUEUED: Final = 500
"""Sweeps of the queue that are told, in turn."""
_ABSENT: Final = ("missing", "wrong")  # states of findings
_TEXT: Final = sa.cast(trial.c.slot, sa.Text)


class ClusterReader(Access):
    """Reads what is there and what it does."""

    def heartbeat(self) -> float | None:
        """Seconds since the lease was renewed, by the database's clock; none: no conductor ever was."""
        age = (DatabaseSeconds() - (lease.c.until - lease.c.seconds)).label("age")
        query = sa.select(age, lease.c.until).where(lease.c.name == CONDUCTOR)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None or row.until <= 0 else max(0.0, float(row.age))

    def nodes(self) -> list[NodeView]:
        """The nodes that are there, and those that left, each with what its slots hold."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(node).order_by(node.c.alive.desc(), node.c.host, node.c.uid)).all()
            held = _held(connection)
        return [
            NodeView(
                uid=row.uid, host=row.host, alive=row.alive, resources=row.resources, seen=row.seen,
                held=_of_node(held, row.uid) if row.alive else {},
            )
            for row in rows
        ]  # fmt: skip

    def slots(self) -> list[SlotView]:
        """The slots that there are, by machine, with the first trial of what each trains."""
        query = (
            sa.select(slot, attempt.c.training_id, attempt.c.started, training.c.step, training.c.total_steps)
            .outerjoin(attempt, sa.and_(attempt.c.uid == slot.c.attempt, attempt.c.state == "running"))
            .outerjoin(training, training.c.id == attempt.c.training_id)
            .where(slot.c.seen > datetime.now(UTC) - FORGOTTEN)
            .order_by(slot.c.host, slot.c.node, slot.c.name)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            trials = _first_trials(connection, [row.training_id for row in rows if row.training_id is not None])
        return [_slot_view(row, trials.get(row.training_id)) for row in rows]

    def queue(self, quota: int | None) -> list[WaitingSweep]:
        """The sweeps of which trials wait, in turn, with how many wait for what."""
        barred = self._barred()
        limits = QuotaReader(self._database).state().limits
        columns = (sweep.c.id, sweep.c.name, sweep.c.actor, sweep.c.state, sweep.c.priority, sweep.c.total)
        text = sa.cast(sweep.c.slot, sa.Text).label("text")
        whose = (sweep.c.owner_id, sweep.c.project_id)
        query = sa.select(*columns, *whose, sweep.c.notice, text).where(
            sweep.c.state.in_([SweepState.QUEUED, *SWEEP_GOING])
        )  # fmt: skip
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(sweep.c.priority.desc(), sweep.c.id).limit(MOST_QUEUED)).all()
            waiting, due = _waiting(connection, [row.id for row in rows]), _due(connection, [row.id for row in rows])
            held, busy, room = _held_needs(connection), busy_slots(connection), SlotRoom(connection, limits)
            queue = []
            for row in rows:
                full = quota is not None and busy.get(row.actor, 0) >= quota
                full = full or room.left(row.owner_id, row.project_id, 1) < 1
                out = barred, limits.spent.get(row.id, frozenset())
                counts = _reasons(connection, row, waiting.get(row.id, 0), held, out, full)
                counts[WaitReason.EVALUATION] = due.get(row.id, 0)
                said = {reason: count for reason, count in counts.items() if count}
                if said:
                    queue.append(
                        WaitingSweep(
                            id=row.id, name=row.name, actor=row.actor, state=row.state, priority=row.priority,
                            waiting=said, notice=row.notice,
                        )
                    )  # fmt: skip
        return queue

    def _barred(self) -> frozenset[str]:
        """The slots, as the database holds them, that no node which is there can hold."""
        capacity = CapacityReader(self._database)
        known, there = capacity.nodes(), capacity.nodes(present=True)
        if not known:  # an engine that does not say which nodes there are
            return frozenset()
        return frozenset(asked.text for asked in capacity.asked_slots() if not possible(asked.slot, there))


def _reasons(
    connection: sa.Connection,
    row: sa.Row[Any],
    waiting: int,
    held: frozenset[str],
    out: tuple[frozenset[str], frozenset[str]],
    full: bool,
) -> dict[WaitReason, int]:
    """How many trials of a sweep wait for what: what hinders longest is said of each.

    `out` are the slots that no node can hold, and those for which its owner or its project has no hours left.
    """
    if row.state == SweepState.QUEUED:
        return {WaitReason.EXPANSION: row.total}
    if row.state == SweepState.PAUSED:
        return {WaitReason.PAUSED: waiting}
    ours = (trial.c.sweep_id == row.id, trial.c.state == TrialState.WAITING)
    counting = sa.select(sa.func.count()).select_from(trial).where(*ours)
    absent = ~sa.false()
    data = 0
    if held and waiting and _needs(connection, row.id, held):
        absent = training.c.need.is_(None) | training.c.need.not_in(held)
        counting = counting.join(training, training.c.id == trial.c.training_id)
        data = waiting - connection.execute(counting.where(absent)).scalar_one()
    large, spent = out
    resources, hours = (
        connection.execute(counting.where(absent, _asks(row.text, slots))).scalar_one() if slots and waiting else 0
        for slots in (large, spent - large)
    )
    left = waiting - data - resources - hours
    last = WaitReason.QUOTA if full else WaitReason.SLOT
    return {WaitReason.DATA: data, WaitReason.RESOURCES: resources, WaitReason.HOURS: hours, last: left}


def _asks(usual: str, slots: frozenset[str]) -> sa.ColumnElement[bool]:
    """Whether a trial asks for one of these slots; `usual` is its sweep's."""
    own = sa.and_(trial.c.slot.is_not(None), _TEXT.in_(slots))
    return sa.or_(trial.c.slot.is_(None), own) if usual in slots else own


def _needs(connection: sa.Connection, sweep_id: int, held: frozenset[str]) -> bool:
    query = sa.select(sweep_need.c.need).where(sweep_need.c.sweep_id == sweep_id, sweep_need.c.need.in_(held))
    return connection.execute(query.limit(1)).first() is not None


def _held_needs(connection: sa.Connection) -> frozenset[str]:
    """The needs that machines looked for and none has."""
    absent = sa.func.sum(sa.case((finding.c.state.in_(_ABSENT), 0), else_=1))
    query = sa.select(finding.c.need).group_by(finding.c.need).having(absent == 0)
    return frozenset(connection.execute(query).scalars())


def _waiting(connection: sa.Connection, sweeps: Iterable[int]) -> dict[int, int]:
    query = sa.select(trial.c.sweep_id, sa.func.count().label("n")).group_by(trial.c.sweep_id)
    waits = (trial.c.sweep_id.in_(list(sweeps)), trial.c.state == TrialState.WAITING)
    return {row.sweep_id: row.n for row in connection.execute(query.where(*waits))}


def _due(connection: sa.Connection, sweeps: Iterable[int]) -> dict[int, int]:
    """How many finished trials of each sweep wait for an evaluation that has not begun."""
    query = (
        sa.select(trial.c.sweep_id, sa.func.count().label("n"))
        .join(training, training.c.id == trial.c.evaluation_id)
        .where(trial.c.sweep_id.in_(list(sweeps)), trial.c.evaluation_id.is_not(None))
        .where(training.c.state == TrialState.WAITING)
        .group_by(trial.c.sweep_id)
    )
    return {row.sweep_id: row.n for row in connection.execute(query)}


def _held(connection: sa.Connection) -> dict[str, dict[str, float]]:
    """What slots hold, by the first characters of their node's uid."""
    held: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    fresh = slot.c.seen > datetime.now(UTC) - FORGOTTEN
    for row in connection.execute(sa.select(slot.c.node, slot.c.resources).where(fresh)):
        for name, amount in row.resources.items():
            held[row.node][name] += amount
    return held


def _of_node(held: Mapping[str, Mapping[str, float]], uid: str) -> dict[str, float]:
    return next((dict(amounts) for short, amounts in held.items() if uid.startswith(short)), {})


def _first_trials(connection: sa.Connection, trainings: Iterable[int]) -> dict[int, sa.Row[Any]]:
    """By training, the first trial that runs with it, or that is to move to it, with its labels."""
    trials: dict[int, sa.Row[Any]] = {}
    for training_id in trainings:  # at most as many as there are slots
        runs = sa.and_(trial.c.training_id == training_id, trial.c.state.in_(TRIAL_ACTIVE))
        query = (
            sa.select(
                trial.c.id, trial.c.sweep_id, trial.c.repeat_labels, sweep.c.name, cell.c.labels.label("compared"),
                candidate.c.labels.label("tuned"),
            )
            .join(sweep, sweep.c.id == trial.c.sweep_id)
            .join(cell, sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell))
            .join(candidate, of_candidate())
            .where(trial.c.id == first_of_either(runs, trial.c.evaluation_id == training_id))
        )  # fmt: skip
        row = connection.execute(query).one_or_none()
        if row is not None:
            trials[training_id] = cast("sa.Row[Any]", row)
    return trials


def _slot_view(row: sa.Row[Any], its: sa.Row[Any] | None) -> SlotView:
    trains = its and Occupant(
        sweep=its.sweep_id, sweep_name=its.name, trial=its.id, step=row.step, total_steps=row.total_steps,
        labels={**its.compared, **its.tuned, **its.repeat_labels}, started=row.started,
    )  # fmt: skip
    usage = None if row.usage is None else ProcessUsage.model_validate(row.usage)
    return SlotView(
        name=row.name, node=row.node, host=row.host, resources=row.resources, trains=trains, usage=usage,
        seen=row.seen,
    )  # fmt: skip


class GaugeReader(Access):
    """Reads them all; on a database of a million trials that takes a good part of a second."""

    def read(self, quota: int | None) -> Gauges:
        """The values of now; `quota` is the most slots of one owner."""
        cluster = ClusterReader(self._database)
        slots, waiting = cluster.slots(), Counter[str]()
        for queued in cluster.queue(quota):
            waiting.update({str(reason): count for reason, count in queued.waiting.items()})
        return Gauges(
            sweeps=self._by(sweep.c.state),
            trials=self._by(trial.c.state),
            attempts=self._attempts(),
            waiting=waiting,
            slots=slots,
            offered=_summed(node.resources for node in cluster.nodes() if node.alive),
            held=_summed(slot.resources for slot in slots if slot.trains is not None),
            backlog=self.backlog(),
            deliveries=DeliveryReader(self._database).backlog(),
            report_lag=self._report_lag(),
            heartbeat=cluster.heartbeat(),
            quotas=[one for one in QuotaReader(self._database).of_projects() if one.limited],
        )

    def backlog(self) -> Backlog:
        """What the tracker does not show yet."""
        first = sa.func.min(sa.case((outbox.c.marked > 0, outbox.c.marked), else_=None))
        age = (DatabaseSeconds() - first).label("age")
        failing = sa.func.count(sa.case((outbox.c.failures > 0, 1), else_=None)).label("failing")
        error = sa.select(outbox.c.error).where(outbox.c.failures > 0).order_by(outbox.c.id).limit(1)
        with self._database.reading() as connection:
            row = connection.execute(sa.select(sa.func.count().label("n"), age, failing)).one()
            said = connection.execute(error).scalar() if row.failing else None
        return Backlog(row.n, max(0.0, float(row.age or 0.0)), row.failing, said)

    def _by(self, column: sa.Column[str]) -> dict[str, int]:
        query = sa.select(column.label("state"), sa.func.count().label("n")).group_by(column)
        with self._database.reading() as connection:
            if column.table is trial:
                query = query.where(*of_whole(connection))
            return {row.state: row.n for row in connection.execute(query)}

    def _attempts(self) -> dict[tuple[str, str], int]:
        columns = (attempt.c.state, attempt.c.cause)
        query = sa.select(*columns, sa.func.count().label("n")).group_by(*columns)
        with self._database.reading() as connection:
            return {(row.state, row.cause or ""): row.n for row in connection.execute(query)}

    def _report_lag(self) -> float:
        """Seconds that the oldest message which is not recorded has waited, over all slots."""
        fresh = slot.c.seen > datetime.now(UTC) - FORGOTTEN
        query = sa.select(sa.func.max(slot.c.lag)).where(fresh)
        with self._database.reading() as connection:
            return float(connection.execute(query).scalar() or 0.0)


def _summed(amounts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for one in amounts:
        total.update(one)  # fractions too
    return dict(total)
