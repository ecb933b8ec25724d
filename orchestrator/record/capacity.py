"""What the cluster offers, which trials wait for slots or data, and how quotas limit them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

import sqlalchemy as sa

from orchestrator.record.changes import note, queue_delivery_blocked
from orchestrator.record.columns import Seconds, UtcTime
from orchestrator.record.database import Access, FencedAccess, upsert, with_labels
from orchestrator.record.queue import FreeSlots, asks_for, busy_slots, evaluations_due, in_turn, reads, trainings_due
from orchestrator.record.schema import (
    account,
    attempt,
    finding,
    need,
    node,
    past_attempt,
    project,
    quota,
    slot,
    sweep,
    sweep_need,
    training,
    trial,
)
from orchestrator.record.trainings import evaluation_left
from orchestrator.record.trial_rows import write_needs
from orchestrator.spec.spec import Slot
from orchestrator.views.accounts import OWNER, UNLIMITED, Quota, QuotaKind, QuotaLimits, QuotaUse, calling
from orchestrator.views.operations import Inspected, Node, PlannedContent, SlotReport, shape_of
from orchestrator.views.runs import ChangeKind, Labels
from orchestrator.views.states import SWEEP_GOING, TrialState
from workers.catalog import Finding, Need

_TEXT: Final = sa.cast(trial.c.slot, sa.Text)


@dataclass(frozen=True, slots=True)
class RequestedSlot:
    """A slot size that trials of a running or paused sweep ask for."""

    sweep: int
    text: str  # its JSON in the database
    slot: Slot
    own: bool  # of some trials only, as `slots` of the spec says


class CapacityReader(Access):
    """Reads the nodes of the cluster and the slots that waiting trials ask for."""

    def nodes(self, *, present: bool = False) -> list[Node]:
        """The nodes of the cluster; `present` leaves out those that are absent now."""
        query = sa.select(node).where(node.c.alive) if present else sa.select(node)
        return [Node(row.uid, row.host, row.resources) for row in self._rows(query.order_by(node.c.uid))]

    def requested_slots(self) -> list[RequestedSlot]:
        """The distinct slot sizes that each running or paused sweep asks for."""
        slots: list[RequestedSlot] = []
        columns = (sweep.c.id, sweep.c.slot, sa.cast(sweep.c.slot, sa.Text).label("text"))
        query = sa.select(*columns, sweep.c.spec["slots"].label("rules")).where(sweep.c.state.in_(SWEEP_GOING))
        with self._database.reading() as connection:
            for row in connection.execute(query.order_by(sweep.c.id)).all():
                slots.append(RequestedSlot(row.id, row.text, Slot.model_validate(row.slot), own=False))
                if not row.rules:
                    continue
                own = sa.select(_TEXT).distinct().where(trial.c.sweep_id == row.id, trial.c.slot.is_not(None))
                for text in sorted(connection.scalars(own)):
                    slots.append(RequestedSlot(row.id, text, Slot.model_validate_json(text), own=True))
        return slots

    def waiting_labels(self, requested: RequestedSlot) -> Labels | None:
        """The labels of the first trial that waits for a slot of this size; `None` if no trial waits."""
        query = (
            with_labels(sa.select(trial.c.id))
            .where(trial.c.sweep_id == requested.sweep, sa.or_(trial.c.state == TrialState.WAITING, evaluation_left()))
            .where(_TEXT.in_([requested.text]) if requested.own else trial.c.slot.is_(None))
            .order_by(trial.c.position)
            .limit(1)
        )
        row = self._row(query)
        return None if row is None else {**row.cell_labels, **row.candidate_labels}

    def waiting_slots(
        self,
        most: int,
        quota: int | None = None,
        missing_needs: Collection[str] = frozenset(),
        limits: QuotaLimits = UNLIMITED,
    ) -> list[Slot]:
        """The slot sizes of the next `most` waiting trainings, for scaling the cluster.

        `quota` and `limits` bound the slots of owners and projects; trainings with one of `missing_needs` are left out.
        """
        taken: list[Slot] = []
        counted: set[int] = set()  # trials of several sweeps may wait for one training
        with self._database.reading() as connection:
            busy, room = busy_slots(connection), FreeSlots(connection, limits)
            for row in in_turn(connection, busy):
                left = most - len(taken) if quota is None else min(most - len(taken), quota - busy.get(row.actor, 0))
                left = room.left(row.owner_id, row.project_id, left)
                if left <= 0:
                    continue
                free = (~asks_for(limits.spent.get(row.id, ()), row.text), ~reads(missing_needs))
                due, waiting = evaluations_due(row.id).where(*free), trainings_due(row.id).where(*free)
                trials = [*connection.execute(due.limit(left)).all()]
                trials += connection.execute(waiting.limit(left - len(trials))).all()
                slots = {one.id: one.slot for one in reversed(trials) if one.id not in counted}
                taken += [Slot.model_validate(slot or row.slot) for slot in reversed(slots.values())]
                counted.update(slots)
                busy[row.actor] = busy.get(row.actor, 0) + len(slots)
                room.take(row.owner_id, row.project_id, len(slots))
        return taken


class DataReader(Access):
    """Reads which data sets sweeps need, and what the inspections of machines found."""

    def findings(self) -> list[Inspected]:
        """The latest results of data inspections, sorted by machine and data set."""
        query = sa.select(finding, need.c.reads).join(need, need.c.key == finding.c.need)
        rows = self._rows(query.order_by(finding.c.host, finding.c.node, finding.c.need))
        return [_read(row) for row in rows]

    def requested_inspections(self, since: datetime) -> list[tuple[Need, datetime]]:
        """The data sets that clients asked to have inspected after `since`, with the time of each request."""
        rows = self._rows(sa.select(need.c.reads, need.c.requested).where(need.c.requested > since))
        return [(Need.model_validate(row.reads), row.requested) for row in rows]

    def planned_content(self, sweep_id: int) -> PlannedContent | None:
        """The hashes of the data that a sweep is planned with; `None` if undecided or if it reads no data."""
        row = self._row(
            sa.select(sweep.c.uid, sweep.c.content).where(sweep.c.id == sweep_id, sweep.c.content.is_not(None))
        )
        return None if row is None else PlannedContent(str(row.uid), row.content)

    def requested_needs(self) -> list[tuple[int, Need]]:
        """Each running or paused sweep with each data set that it reads, even if no trial waits for it any more."""
        query = (
            sa.select(sweep_need.c.sweep_id, need.c.reads)
            .join(need, need.c.key == sweep_need.c.need)
            .join(sweep, sweep.c.id == sweep_need.c.sweep_id)
            .where(sweep.c.state.in_(SWEEP_GOING))
            .order_by(sweep_need.c.sweep_id, need.c.key)
        )
        return [(row.sweep_id, Need.model_validate(row.reads)) for row in self._rows(query)]

    def waiting_for(self, sweep: int, key: str) -> bool:
        """Whether a trial of the sweep waits whose training reads the data set with this key."""
        query = (
            sa.select(trial.c.id)
            .join(training, training.c.id == trial.c.training_id)
            .where(trial.c.sweep_id == sweep, training.c.need == key)
            .where(sa.or_(trial.c.state == TrialState.WAITING, evaluation_left()))
        )
        return self._exists(query)


def _read(row: sa.Row[Any]) -> Inspected:
    made = Finding(state=row.state, message=row.message, **(row.facts or {}))
    return Inspected(row.node, row.host, Need.model_validate(row.reads), made, row.inspected)


Unit = Literal["GPU", "CPU"]
Hours = dict[int, dict[Unit, float]]
_HOUR: Final = 3600.0
_NONE: Final[dict[Unit, float]] = {"GPU": 0.0, "CPU": 0.0}


@dataclass(frozen=True, slots=True)
class Subject:
    """A user or a project, with its quota of slots and of GPU and CPU hours."""

    kind: QuotaKind
    id: int
    name: str
    quota: Quota

    def spent(self, hours: Hours) -> Iterator[tuple[Unit, str]]:
        """The units (GPU, CPU) whose quota of hours is used up, each with a message for people."""
        limits: dict[Unit, float | None] = {"GPU": self.quota.gpu_hours, "CPU": self.quota.cpu_hours}
        for unit, most in limits.items():
            if most is not None and hours.get(self.id, _NONE)[unit] >= most:
                yield unit, f"the {self.kind} {self.name!r} has used its {most:g} {unit} hours{self.quota.within}"


@dataclass(frozen=True, slots=True)
class QuotaState:
    """The limits that quotas set on starting trainings now, and the reasons."""

    limits: QuotaLimits
    reasons: dict[int, list[str]]
    """By sweep, which hours are used up."""


class QuotaReader(Access):
    """Reads the quotas of all users and projects with their use. Callers decide what to show."""

    def uses(self, *, limited: bool = False) -> list[QuotaUse]:
        """All users and projects, or only those with a quota (`limited`), with their used slots and hours."""
        with calling(OWNER), self._database.reading() as connection:
            subjects = [one for one in _subjects(connection) if not limited or one.quota != Quota()]
            hours, held = _hours_of(connection, subjects), FreeSlots(connection, UNLIMITED)
        uses = []
        for subject in subjects:
            used = hours[subject.kind, subject.quota.days].get(subject.id, _NONE)
            slots = held.users if subject.kind == "user" else held.projects
            uses.append(
                QuotaUse(
                    **subject.quota.model_dump(), kind=subject.kind, name=subject.name, used_slots=slots[subject.id],
                    used_gpu_hours=used["GPU"], used_cpu_hours=used["CPU"],
                )
            )  # fmt: skip
        return uses

    def state(self) -> QuotaState:
        """The limits that quotas set on starting trainings now."""
        with calling(OWNER):
            with self._database.reading() as connection:
                subjects = _subjects(connection)
                bounded = [one for one in subjects if (one.quota.gpu_hours, one.quota.cpu_hours) != (None, None)]
                hours = _hours_of(connection, bounded)
                spent = {
                    (subject.kind, subject.id): dict(subject.spent(hours[subject.kind, subject.quota.days]))
                    for subject in bounded
                }
                spent = {key: units for key, units in spent.items() if units}
                going = _going(connection, spent) if spent else {}
            slots: dict[QuotaKind, dict[int, int]] = {"user": {}, "project": {}}
            for subject in subjects:
                if subject.quota.slots is not None:
                    slots[subject.kind][subject.id] = subject.quota.slots
            out, reasons = self._out(going)
        return QuotaState(QuotaLimits(slots["user"], slots["project"], out), reasons)

    def _out(self, going: dict[int, dict[Unit, str]]) -> tuple[dict[int, frozenset[str]], dict[int, list[str]]]:
        """By sweep, the slots whose hours are used up, and the messages."""
        if not going:
            return {}, {}
        capacity = CapacityReader(self._database)
        nodes = capacity.nodes(present=True)
        out: dict[int, set[str]] = {}
        reasons: dict[int, set[str]] = {}
        for requested in capacity.requested_slots():
            units = going.get(requested.sweep, {})
            reason = units.get("GPU" if shape_of(requested.slot, nodes).gpus else "CPU")
            if reason is not None:
                out.setdefault(requested.sweep, set()).add(requested.text)
                reasons.setdefault(requested.sweep, set()).add(reason)
        return {key: frozenset(texts) for key, texts in out.items()}, {key: sorted(one) for key, one in reasons.items()}


def _subjects(connection: sa.Connection) -> list[Subject]:
    """All users, then all projects, by name."""
    subjects: list[Subject] = []
    tables: tuple[tuple[QuotaKind, sa.Table], ...] = (("user", account), ("project", project))
    for kind, table in tables:
        limits = [quota.c[name] for name in Quota.model_fields]
        query = sa.select(*limits, table.c.id, table.c.name).outerjoin_from(table, quota).order_by(table.c.name)
        for row in connection.execute(query):
            subjects.append(Subject(kind, row.id, row.name, Quota.model_validate(row, from_attributes=True)))
    return subjects


def _hours_of(connection: sa.Connection, subjects: Collection[Subject]) -> dict[tuple[QuotaKind, int | None], Hours]:
    """The hours of all users or projects, for each number of days over which a subject's quota counts them."""
    wanted = {(one.kind, one.quota.days) for one in subjects}
    return {(kind, days): _hours(connection, kind, days) for kind, days in wanted}


def _hours(connection: sa.Connection, kind: QuotaKind, days: int | None) -> Hours:
    now = datetime.now(UTC)
    since = None if days is None else now - timedelta(days=days)
    hours: Hours = {}
    for table in (attempt, past_attempt):
        for row in connection.execute(_summed(table, "owner_id" if kind == "user" else "project_id", since, now)):
            found = hours.setdefault(row.id, dict(_NONE))
            found["GPU"] += row.gpus / _HOUR
            found["CPU"] += row.cpus / _HOUR
    return hours


def _summed(table: sa.Table, key: str, since: datetime | None, now: datetime) -> sa.Select[Any]:
    """GPU seconds, and CPU seconds of attempts without a GPU, by owner or project, until now."""
    begun, ended = Seconds(table.c.begun), Seconds(sa.func.coalesce(table.c.ended, sa.bindparam("now", now, UtcTime)))
    first = None if since is None else since.timestamp()
    seconds = ended - (begun if first is None else sa.case((begun < first, first), else_=begun))
    columns = (
        sa.func.sum(seconds * table.c.gpus).label("gpus"),
        sa.func.sum(sa.case((table.c.gpus > 0, 0.0), else_=seconds * table.c.cpus)).label("cpus"),
    )
    query = sa.select(table.c[key].label("id"), *columns).where(table.c[key].is_not(None), table.c.begun.is_not(None))
    if since is not None:
        query = query.where(sa.or_(table.c.ended.is_(None), table.c.ended > since))
    return query.group_by(table.c[key])


def _going(
    connection: sa.Connection, spent: dict[tuple[QuotaKind, int], dict[Unit, str]]
) -> dict[int, dict[Unit, str]]:
    """By running sweep, the hours that its owner or its project has used up."""
    query = sa.select(sweep.c.id, sweep.c.owner_id, sweep.c.project_id).where(sweep.c.state == "running")
    going = {}
    for row in connection.execute(query):
        units = {**spent.get(("project", row.project_id), {}), **spent.get(("user", row.owner_id), {})}
        if units:
            going[row.id] = units
    return going


MOST_AWAY: Final = 64
"""Absent nodes that are kept: an autoscaling cluster has new nodes every day."""


class CapacityWriter(FencedAccess):
    """Records the nodes and slots of the cluster, and why sweeps wait."""

    def note_nodes(self, alive: Sequence[Node]) -> None:
        """Record the nodes that are present now; the latest absent nodes are kept.

        An absent node is not kept if its machine has come back as another node.
        """
        now = datetime.now(UTC)
        with self._database.writing() as connection:
            left = node.c.uid.not_in([alive_node.uid for alive_node in alive])
            connection.execute(sa.update(node).where(node.c.alive, left).values(alive=False))
            for alive_node in alive:
                values = {"host": alive_node.host, "resources": dict(alive_node.resources), "alive": True, "seen": now}
                upsert(connection, node, {"uid": alive_node.uid}, values)
            back = [alive_node.host for alive_node in alive if alive_node.host]
            kept = (
                sa.select(node.c.uid)
                .where(~node.c.alive, node.c.host.not_in(back))
                .order_by(node.c.seen.desc(), node.c.uid)
                .limit(MOST_AWAY)
            )
            connection.execute(sa.delete(node).where(~node.c.alive, node.c.uid.not_in(kept)))

    def note_slots(self, slots: Sequence[SlotReport]) -> None:
        """Replace the recorded slots and what each trains."""
        now = datetime.now(UTC)
        with self._database.writing() as connection:
            connection.execute(sa.delete(slot).where(slot.c.name.not_in([report.name for report in slots])))
            for report in slots:
                usage = None if report.usage is None else report.usage.model_dump(mode="json")
                values = {
                    "node": report.node, "host": report.host, "resources": dict(report.resources),
                    "attempt": report.attempt, "usage": usage, "lag": report.lag, "seen": now,
                }  # fmt: skip
                upsert(connection, slot, {"name": report.name}, values)

    def note_notices(self, notices: Mapping[int, str]) -> None:
        """Record by sweep the message why its trials wait; other sweeps do not wait.

        A new message also queues a webhook message.
        """
        noted = sa.or_(sweep.c.notice.is_not(None), sweep.c.id.in_(notices))
        query = sa.select(sweep.c.id, sweep.c.notice).where(noted)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        changed = {row.id: notices.get(row.id) for row in rows if row.notice != notices.get(row.id)}
        before = {row.id: row.notice for row in rows}
        if not changed:
            return
        with self._database.writing() as connection:
            for number, notice in changed.items():
                connection.execute(sa.update(sweep).where(sweep.c.id == number).values(notice=notice))
                note(connection, ChangeKind.NOTICE, number, number)
                if notice and not before[number]:
                    queue_delivery_blocked(connection, number, notice)


class DataWriter(FencedAccess):
    """Records results of data inspections, and the data hashes that sweeps are planned with."""

    def note_content(self, sweep_id: int, content: Mapping[str, Mapping[str, str]]) -> None:
        """Record the hashes of the data that a sweep is planned with, by the key of the data set."""
        written = {key: dict(hashes) for key, hashes in content.items()}
        with self._database.writing() as connection:
            connection.execute(sa.update(sweep).where(sweep.c.id == sweep_id).values(content=written))

    def note_findings(self, found: Sequence[Inspected], there: Collection[str]) -> None:
        """Record the results of data inspections; those of nodes that are not `there` are deleted."""
        with self._database.writing() as connection:
            write_needs(connection, [inspected.need for inspected in found])
            connection.execute(sa.delete(finding).where(finding.c.node.not_in(there)))
            for inspected in found:
                made = inspected.finding
                values = {
                    "host": inspected.host, "message": made.message, "state": made.state,
                    "inspected": inspected.inspected_at,
                    "facts": made.model_dump(mode="json", include={"content", "counts"}),
                }  # fmt: skip
                upsert(connection, finding, {"node": inspected.node, "need": inspected.need.key}, values)
