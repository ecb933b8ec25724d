"""What the cluster page and the metrics endpoint show."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.capacity import CapacityReader, QuotaReader
from orchestrator.record.changes import DeliveryReader
from orchestrator.record.columns import DatabaseSeconds
from orchestrator.record.database import CONDUCTOR, Access, first_of_either, with_labels
from orchestrator.record.outbox import OutboxReader
from orchestrator.record.queue import FreeSlots, asks_for, busy_slots, reads
from orchestrator.record.schema import attempt, finding, lease, node, slot, sweep, training, trial
from orchestrator.record.trials import of_whole
from orchestrator.views.operations import (
    Gauges,
    NodeView,
    Occupant,
    SlotView,
    WaitingSweep,
    WaitReason,
    possible,
)
from orchestrator.views.states import SWEEP_GOING, TRIAL_ACTIVE, SweepState, TrialState

_FORGOTTEN: Final = timedelta(seconds=60)
"""The age at which a slot is not shown any more: its conductor is gone."""
_MOST_QUEUED: Final = 500
"""Sweeps of the queue that are shown."""
_ABSENT: Final = ("missing", "wrong")  # states of findings


class ClusterReader(Access):
    """Reads the nodes, the slots and the queue of waiting sweeps, for the cluster page."""

    def heartbeat(self) -> float | None:
        """Seconds since the conductor renewed its lease; `None` if there was no conductor yet."""
        age = (DatabaseSeconds() - (lease.c.until - lease.c.seconds)).label("age")
        row = self._row(sa.select(age, lease.c.until).where(lease.c.name == CONDUCTOR))
        return None if row is None or row.until <= 0 else max(0.0, float(row.age))

    def nodes(self) -> list[NodeView]:
        """The present and absent nodes, each with the resources that its slots use."""
        held: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(node).order_by(node.c.alive.desc(), node.c.host, node.c.uid)).all()
            for row in connection.execute(sa.select(slot.c.node, slot.c.resources).where(_fresh())):
                for name, amount in row.resources.items():
                    held[row.node][name] += amount

        def of_node(uid: str) -> dict[str, float]:  # slots know the first characters of their node's uid
            return next((dict(amounts) for short, amounts in held.items() if uid.startswith(short)), {})

        return [NodeView(**row._mapping, used=of_node(row.uid) if row.alive else {}) for row in rows]

    def slots(self) -> list[SlotView]:
        """The present slots by machine, each with the first trial of the training that it runs."""
        query = (
            sa.select(slot, attempt.c.training_id, attempt.c.started, training.c.step, training.c.total_steps)
            .outerjoin(attempt, sa.and_(attempt.c.uid == slot.c.attempt, attempt.c.state == "running"))
            .outerjoin(training, training.c.id == attempt.c.training_id)
            .where(_fresh())
            .order_by(slot.c.host, slot.c.node, slot.c.name)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            trials = _first_trials(connection, [row.training_id for row in rows if row.training_id is not None])
        return [_slot_view(row, trials.get(row.training_id)) for row in rows]

    def queue(self, quota: int | None) -> list[WaitingSweep]:
        """The sweeps with waiting trials in queue order, each with the number of trials by wait reason.

        `quota`: the limit of slots for each owner.
        """
        impossible_slots = self._impossible_slots()
        limits = QuotaReader(self._database).state().limits
        columns = (sweep.c.id, sweep.c.name, sweep.c.actor, sweep.c.state, sweep.c.priority, sweep.c.total)
        text = sa.cast(sweep.c.slot, sa.Text).label("text")
        whose = (sweep.c.owner_id, sweep.c.project_id)
        query = sa.select(*columns, *whose, sweep.c.notice, text).where(
            sweep.c.state.in_([SweepState.QUEUED, *SWEEP_GOING])
        )  # fmt: skip
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(sweep.c.priority.desc(), sweep.c.id).limit(_MOST_QUEUED)).all()
            waiting, due = (_counted(connection, query, [row.id for row in rows]) for query in (_WAITING, _DUE))
            missing_needs = _missing_needs(connection)
            busy, room = busy_slots(connection), FreeSlots(connection, limits)
            queue = []
            for row in rows:
                full = quota is not None and busy.get(row.actor, 0) >= quota
                full = full or room.left(row.owner_id, row.project_id, 1) < 1
                blocked = {
                    WaitReason.DATA: reads(missing_needs),
                    WaitReason.RESOURCES: asks_for(impossible_slots, row.text),
                    WaitReason.HOURS: asks_for(limits.spent.get(row.id, ()), row.text),
                }
                counts = _reasons(connection, row, waiting.get(row.id, 0), blocked, full)
                counts[WaitReason.EVALUATION] = due.get(row.id, 0)
                counts = {reason: count for reason, count in counts.items() if count}
                if counts:
                    queue.append(
                        WaitingSweep(
                            id=row.id, name=row.name, actor=row.actor, state=row.state, priority=row.priority,
                            waiting=counts, notice=row.notice,
                        )
                    )  # fmt: skip
        return queue

    def _impossible_slots(self) -> frozenset[str]:
        """The slots that no present node can hold, as JSON of the database."""
        capacity = CapacityReader(self._database)
        known, there = capacity.nodes(), capacity.nodes(present=True)
        if not known:  # the engine does not report its nodes
            return frozenset()
        return frozenset(
            requested.text for requested in capacity.requested_slots() if not possible(requested.slot, there)
        )


def _reasons(
    connection: sa.Connection,
    row: sa.Row[Any],
    waiting: int,
    blocked: Mapping[WaitReason, sa.ColumnElement[bool]],
    full: bool,
) -> dict[WaitReason, int]:
    """How many trials of a sweep wait for what; a trial counts for the first reason that applies."""
    if row.state == SweepState.QUEUED:
        return {WaitReason.EXPANSION: row.total}
    if row.state == SweepState.PAUSED:
        return {WaitReason.PAUSED: waiting}
    last = WaitReason.QUOTA if full else WaitReason.SLOT
    why = sa.case(*((condition, reason.value) for reason, condition in blocked.items()), else_=last.value)
    query = (
        sa.select(why.label("why"), sa.func.count().label("n"))
        .select_from(trial.join(training, training.c.id == trial.c.training_id))
        .where(trial.c.sweep_id == row.id, trial.c.state == TrialState.WAITING)
        .group_by("why")
    )
    return {WaitReason(found.why): found.n for found in connection.execute(query)} if waiting else {}


def _missing_needs(connection: sa.Connection) -> frozenset[str]:
    """The needs that machines have inspected and no machine has."""
    absent = sa.func.sum(sa.case((finding.c.state.in_(_ABSENT), 0), else_=1))
    query = sa.select(finding.c.need).group_by(finding.c.need).having(absent == 0)
    return frozenset(connection.scalars(query))


_EACH: Final = sa.select(trial.c.sweep_id, sa.func.count().label("n")).group_by(trial.c.sweep_id)
_WAITING: Final = _EACH.where(trial.c.state == TrialState.WAITING)
_DUE: Final = (  # finished trials that wait for their evaluation to begin
    _EACH.join(training, training.c.id == trial.c.evaluation_id)
    .where(trial.c.evaluation_id.is_not(None))
    .where(training.c.state == TrialState.WAITING)
)


def _counted(connection: sa.Connection, query: sa.Select[Any], sweeps: Iterable[int]) -> dict[int, int]:
    return {row.sweep_id: row.n for row in connection.execute(query.where(trial.c.sweep_id.in_(list(sweeps))))}


def _fresh() -> sa.ColumnElement[bool]:
    return slot.c.seen > datetime.now(UTC) - _FORGOTTEN


def _first_trials(connection: sa.Connection, trainings: Iterable[int]) -> dict[int, sa.Row[Any]]:
    """By training, the first trial that runs with it or will move to it, with its labels."""
    trials: dict[int, sa.Row[Any]] = {}
    for training_id in trainings:  # at most as many as there are slots
        runs = sa.and_(trial.c.training_id == training_id, trial.c.state.in_(TRIAL_ACTIVE))
        query: sa.Select[Any] = sa.select(trial.c.id, trial.c.sweep_id, trial.c.repeat_labels, sweep.c.name)
        query = with_labels(query.join(sweep, sweep.c.id == trial.c.sweep_id))
        first = trial.c.id == first_of_either(runs, trial.c.evaluation_id == training_id)
        row = connection.execute(query.where(first)).one_or_none()
        if row is not None:
            trials[training_id] = row
    return trials


def _slot_view(row: sa.Row[Any], its: sa.Row[Any] | None) -> SlotView:
    trains = its and Occupant(
        sweep=its.sweep_id, sweep_name=its.name, trial=its.id, step=row.step, total_steps=row.total_steps,
        labels={**its.cell_labels, **its.candidate_labels, **its.repeat_labels}, started=row.started,
    )  # fmt: skip
    return SlotView.model_validate({**row._mapping, "trains": trains})


class GaugeReader(Access):
    """Reads the values of the Prometheus gauges."""

    def read(self, quota: int | None) -> Gauges:
        """Read the present values of all gauges; `quota` is the limit of slots for each owner."""
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
            used=_summed(slot.resources for slot in slots if slot.trains is not None),
            backlog=OutboxReader(self._database).backlog(),
            deliveries=DeliveryReader(self._database).backlog(),
            report_lag=self._report_lag(),
            heartbeat=cluster.heartbeat(),
            quotas=[use for use in QuotaReader(self._database).uses(limited=True) if use.kind == "project"],
        )

    def _by(self, column: sa.Column[str]) -> dict[str, int]:
        query = sa.select(column.label("state"), sa.func.count().label("n")).group_by(column)
        with self._database.reading() as connection:
            if column.table is trial:
                query = query.where(*of_whole(connection))
            return {row.state: row.n for row in connection.execute(query)}

    def _attempts(self) -> dict[tuple[str, str], int]:
        columns = (attempt.c.state, attempt.c.cause)
        rows = self._rows(sa.select(*columns, sa.func.count().label("n")).group_by(*columns))
        return {(row.state, row.cause or ""): row.n for row in rows}

    def _report_lag(self) -> float:
        """Seconds that the oldest unrecorded message of any slot has waited."""
        return float(self._scalar(sa.select(sa.func.max(slot.c.lag)).where(_fresh())) or 0.0)


def _summed(amounts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for resources in amounts:
        total.update(resources)  # may be fractions
    return dict(total)
