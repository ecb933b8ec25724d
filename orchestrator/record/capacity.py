"""What the cluster offers, what waits for it, and which quotas limit it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

import sqlalchemy as sa

from orchestrator.record.changes import note, tell_hindered
from orchestrator.record.columns import Seconds, UtcTime
from orchestrator.record.database import Access, FencedAccess, insertion, of_candidate
from orchestrator.record.queue import SlotRoom, busy_slots, evaluations_due, in_turn, not_barred, not_held
from orchestrator.record.schema import (
    account,
    attempt,
    candidate,
    cell,
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
from orchestrator.spec.axes import Slot
from orchestrator.views.accounts import OWNER, UNLIMITED, Quota, QuotaKind, QuotaLimits, QuotaUse, calling
from orchestrator.views.operations import Inspected, Node, PlannedContent, SlotReport, shape_of
from orchestrator.views.runs import ChangeKind, Labels
from orchestrator.views.states import SWEEP_GOING, TrialState
from workers.catalog import Finding, Need

_TEXT: Final = sa.cast(trial.c.slot, sa.Text)


@dataclass(frozen=True, slots=True)
class AskedSlot:
    """A slot that trials of a running or paused sweep ask for."""

    sweep: int
    text: str  # its JSON as the database holds it
    slot: Slot
    own: bool  # of some of its trials; else that of all others


class CapacityReader(Access):
    """Reads nodes and slots."""

    def nodes(self, *, present: bool = False) -> list[Node]:
        """Every node that was seen, whether it is there now or not; those that are there alone with `present`."""
        query = sa.select(node).where(node.c.alive) if present else sa.select(node)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(node.c.uid)).all()
        return [Node(row.uid, row.host, row.resources) for row in rows]

    def asked_slots(self) -> list[AskedSlot]:
        """Every different slot of each running or paused sweep; trials are looked through where their spec has some."""
        slots: list[AskedSlot] = []
        columns = (sweep.c.id, sweep.c.slot, sa.cast(sweep.c.slot, sa.Text).label("text"))
        query = sa.select(*columns, sweep.c.spec["slots"].label("rules")).where(sweep.c.state.in_(SWEEP_GOING))
        with self._database.reading() as connection:
            for row in connection.execute(query.order_by(sweep.c.id)).all():
                slots.append(AskedSlot(row.id, row.text, Slot.model_validate(row.slot), own=False))
                if not row.rules:
                    continue
                own = sa.select(_TEXT).distinct().where(trial.c.sweep_id == row.id, trial.c.slot.is_not(None))
                for text in sorted(connection.execute(own).scalars()):
                    slots.append(AskedSlot(row.id, text, Slot.model_validate_json(text), own=True))
        return slots

    def waiting_labels(self, asked: AskedSlot) -> Labels | None:
        """The labels of the first trial that waits for such a slot; none: no trial waits for it."""
        query = (
            sa.select(cell.c.labels.label("cell_labels"), candidate.c.labels.label("candidate_labels"))
            .select_from(trial)
            .join(cell, sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell))
            .join(candidate, of_candidate())
            .where(trial.c.sweep_id == asked.sweep, sa.or_(trial.c.state == TrialState.WAITING, evaluation_left()))
            .where(_TEXT.in_([asked.text]) if asked.own else trial.c.slot.is_(None))
            .order_by(trial.c.position)
            .limit(1)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else {**row.cell_labels, **row.candidate_labels}

    def waiting_slots(
        self, most: int, quota: int | None = None, held: Collection[str] = frozenset(), limits: QuotaLimits = UNLIMITED
    ) -> list[Slot]:
        """The slots of the next trainings in turn, at most `most`, of each owner as many as the quotas leave.

        Not of those whose need is one of `held`.
        """
        taken: list[Slot] = []
        counted: set[int] = set()  # trials of several sweeps may wait for one training
        with self._database.reading() as connection:
            busy, room = busy_slots(connection), SlotRoom(connection, limits)
            for row in in_turn(connection, busy):
                left = most - len(taken) if quota is None else min(most - len(taken), quota - busy.get(row.actor, 0))
                left = room.left(row.owner_id, row.project_id, left)
                if left <= 0:
                    continue
                spent = not_barred(row.text, tuple(limits.spent.get(row.id, ())))
                waiting = sa.select(trial.c.training_id.label("id"), trial.c.slot).where(*spent)
                waiting = waiting.where(trial.c.sweep_id == row.id, trial.c.state == TrialState.WAITING)
                if held:
                    waiting = waiting.join(training, training.c.id == trial.c.training_id).where(*not_held(held))
                due = evaluations_due(row.id).where(*not_held(held), *spent)
                trials = [*connection.execute(due.limit(left)).all()]
                trials += connection.execute(waiting.order_by(trial.c.position).limit(left - len(trials))).all()
                slots = {one.id: one.slot for one in reversed(trials) if one.id not in counted}
                taken += [Slot.model_validate(slot or row.slot) for slot in reversed(slots.values())]
                counted.update(slots)
                busy[row.actor] = busy.get(row.actor, 0) + len(slots)
                room.take(row.owner_id, row.project_id, len(slots))
        return taken


_ASKED = (  # made once: the conductor asks it every second
    sa.select(sweep_need.c.sweep_id, need.c.reads)
    .join(need, need.c.key == sweep_need.c.need)
    .join(sweep, sweep.c.id == sweep_need.c.sweep_id)
    .where(sweep.c.state.in_(SWEEP_GOING))
    .order_by(sweep_need.c.sweep_id, need.c.key)
)


@dataclass(frozen=True, slots=True)
class AskedNeed:
    """What trials of a running or paused sweep need."""

    sweep: int
    need: Need


class DataReader(Access):
    """Reads needs and findings."""

    def findings(self) -> list[Inspected]:
        """What every machine that was there at last was found to have, by machine and data set."""
        query = sa.select(finding, need.c.reads).join(need, need.c.key == finding.c.need)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(finding.c.host, finding.c.node, finding.c.need)).all()
        return [_read(row) for row in rows]

    def asked_looks(self, since: datetime) -> list[tuple[Need, datetime]]:
        """What clients have wanted looked for since then, and when."""
        query = sa.select(need.c.reads, need.c.asked).where(need.c.asked > since)
        with self._database.reading() as connection:
            return [(Need.model_validate(row.reads), row.asked) for row in connection.execute(query)]

    def planned_content(self, sweep_id: int) -> PlannedContent | None:
        """The content that a sweep is planned with; None where that is not decided, or none of its trainings reads."""
        query = sa.select(sweep.c.uid, sweep.c.content).where(sweep.c.id == sweep_id, sweep.c.content.is_not(None))
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else PlannedContent(str(row.uid), row.content)

    def asked_needs(self) -> list[AskedNeed]:
        """The needs of each running or paused sweep, whether a trial still waits for them or not."""
        with self._database.reading() as connection:
            return [AskedNeed(row.sweep_id, Need.model_validate(row.reads)) for row in connection.execute(_ASKED)]

    def waiting_for(self, sweep: int, key: str) -> bool:
        """Whether a trial of the sweep waits whose training has that need."""
        query = (
            sa.select(trial.c.id)
            .join(training, training.c.id == trial.c.training_id)
            .where(trial.c.sweep_id == sweep, training.c.need == key)
            .where(sa.or_(trial.c.state == TrialState.WAITING, evaluation_left()))
            .limit(1)
        )
        with self._database.reading() as connection:
            return connection.execute(query).first() is not None


def _read(row: sa.Row[Any]) -> Inspected:
    made = Finding(state=row.state, said=row.said, **(row.facts or {}))
    return Inspected(row.node, row.host, Need.model_validate(row.reads), made, row.looked)


Unit = Literal["GPU", "CPU"]
Hours = dict[int, dict[Unit, float]]
Counted = dict[tuple[QuotaKind, int | None], Hours]
"""Hours by kind and number, for each of the times in which they are counted."""
_HOUR: Final = 3600.0
_NONE: Final[dict[Unit, float]] = {"GPU": 0.0, "CPU": 0.0}


@dataclass(frozen=True, slots=True)
class Subject:
    """A user or a project, with its quota."""

    kind: QuotaKind
    id: int
    name: str
    quota: Quota

    def spent(self, hours: Hours) -> Iterator[tuple[Unit, str]]:
        """The kinds of hours of which it has used all, each with the sentence that says so."""
        limits: dict[Unit, float | None] = {"GPU": self.quota.gpu_hours, "CPU": self.quota.cpu_hours}
        for unit, most in limits.items():
            if most is not None and hours.get(self.id, _NONE)[unit] >= most:
                yield unit, f"the {self.kind} {self.name!r} has used its {most:g} {unit} hours{self.quota.within}"


@dataclass(frozen=True, slots=True)
class QuotaState:
    """What quotas keep from being begun."""

    limits: QuotaLimits
    reasons: dict[int, list[str]]
    """By sweep, which hours are used up; of all its trials of that kind."""
    counted: Counted
    """What was counted for it, or was known."""


class QuotaReader(Access):
    """Reads quotas; whoever asks, the whole is counted. What is shown to whom is its callers' business."""

    def uses(self) -> list[QuotaUse]:
        """Every user and every project with its quota and what is used of it."""
        return self._uses("user", "project", every=True)

    def of_projects(self) -> list[QuotaUse]:
        """The same of the projects that have a quota: where none has, no hours are counted."""
        return self._uses("project", every=False)

    def _uses(self, *kinds: QuotaKind, every: bool) -> list[QuotaUse]:
        with calling(OWNER), self._database.reading() as connection:
            subjects = [subject for kind in kinds for subject in _subjects(connection, kind, every=every)]
            hours, held = _hours_of(connection, subjects), SlotRoom(connection, UNLIMITED, every=True)
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

    def state(self, known: Counted | None = None) -> QuotaState:
        """What quotas keep from being begun now; where there are none that costs two queries.

        Hours that are `known` are not counted again, which goes through all attempts that there ever were.
        """
        with calling(OWNER):
            with self._database.reading() as connection:
                subjects = [*_subjects(connection, "user"), *_subjects(connection, "project")]
                bounded = [
                    subject
                    for subject in subjects
                    if (subject.quota.gpu_hours, subject.quota.cpu_hours) != (None, None)
                ]
                hours = _hours_of(connection, bounded, known)
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
        return QuotaState(QuotaLimits(slots["user"], slots["project"], out), reasons, hours)

    def _out(self, going: dict[int, dict[Unit, str]]) -> tuple[dict[int, frozenset[str]], dict[int, list[str]]]:
        """Which slots of which sweeps are of a kind whose hours are used up, and what is said of it."""
        if not going:
            return {}, {}
        capacity = CapacityReader(self._database)
        nodes = capacity.nodes(present=True)
        out: dict[int, set[str]] = {}
        reasons: dict[int, set[str]] = {}
        for asked in capacity.asked_slots():
            units = going.get(asked.sweep, {})
            said = units.get("GPU" if shape_of(asked.slot, nodes).gpus else "CPU")
            if said is not None:
                out.setdefault(asked.sweep, set()).add(asked.text)
                reasons.setdefault(asked.sweep, set()).add(said)
        return {key: frozenset(texts) for key, texts in out.items()}, {key: sorted(one) for key, one in reasons.items()}


def _subjects(connection: sa.Connection, kind: QuotaKind, *, every: bool = False) -> list[Subject]:
    """Users or projects that have a quota, or every one, by name."""
    table, key = (account, quota.c.account_id) if kind == "user" else (project, quota.c.project_id)
    limits = [quota.c[name] for name in Quota.model_fields]
    joined = table.join(quota, key == table.c.id, isouter=every)
    query = sa.select(table.c.id, table.c.name, *limits).select_from(joined).order_by(table.c.name)
    return [
        Subject(
            kind,
            row.id,
            row.name,
            Quota(slots=row.slots, gpu_hours=row.gpu_hours, cpu_hours=row.cpu_hours, days=row.days),
        )
        for row in connection.execute(query)
    ]


def _hours_of(connection: sa.Connection, subjects: Collection[Subject], known: Counted | None = None) -> Counted:
    wanted = sorted({(one.kind, one.quota.days) for one in subjects}, key=str)
    found: Counted = {} if known is None else {key: known[key] for key in wanted if key in known}
    return found | {(kind, days): _hours(connection, kind, days) for kind, days in wanted if (kind, days) not in found}


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
    """Seconds of GPUs, and of CPUs where no GPU was held, by owner or project; what is held now counts till now."""
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
"""Nodes that are remembered though they have left: an autoscaling cluster has new ones every day."""


class CapacityWriter(FencedAccess):
    """Writes nodes, slots and notices."""

    def note_nodes(self, alive: Sequence[Node]) -> None:
        """Write down which nodes are there; those that left are remembered, the latest ones.

        But not one whose machine is there as another node: it came back with what it has now.
        """
        now = datetime.now(UTC)
        with self._database.writing() as connection:
            connection.execute(
                sa.update(node)
                .where(node.c.alive, node.c.uid.not_in([alive_node.uid for alive_node in alive]))
                .values(alive=False)
            )
            for alive_node in alive:
                values = {"host": alive_node.host, "resources": dict(alive_node.resources), "alive": True, "seen": now}
                write = insertion(connection, node).values(uid=alive_node.uid, **values)
                connection.execute(write.on_conflict_do_update(index_elements=["uid"], set_=values))
            back = [alive_node.host for alive_node in alive if alive_node.host]
            kept = (
                sa.select(node.c.uid)
                .where(~node.c.alive, node.c.host.not_in(back))
                .order_by(node.c.seen.desc(), node.c.uid)
                .limit(MOST_AWAY)
            )
            connection.execute(sa.delete(node).where(~node.c.alive, node.c.uid.not_in(kept)))

    def note_slots(self, slots: Sequence[SlotReport]) -> None:
        """Write down which slots are there and what they do; all others are forgotten."""
        now = datetime.now(UTC)
        with self._database.writing() as connection:
            connection.execute(sa.delete(slot).where(slot.c.name.not_in([report.name for report in slots])))
            for report in slots:
                usage = None if report.usage is None else report.usage.model_dump(mode="json")
                values = {
                    "node": report.node, "host": report.host, "resources": dict(report.resources),
                    "attempt": report.attempt, "usage": usage, "lag": report.lag, "seen": now,
                }  # fmt: skip
                write = insertion(connection, slot).values(name=report.name, **values)
                connection.execute(write.on_conflict_do_update(index_elements=["name"], set_=values))

    def note_notices(self, notices: Mapping[int, str]) -> None:
        """Say of each sweep why it waits; those that are not named have nothing to wait for."""
        query = sa.select(sweep.c.id, sweep.c.notice).where(
            sa.or_(sweep.c.notice.is_not(None), sweep.c.id.in_(notices))
        )
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
                    tell_hindered(connection, number, notice)


class DataWriter(FencedAccess):
    """Writes findings, and with which content sweeps are planned."""

    def note_content(self, sweep_id: int, content: Mapping[str, Mapping[str, str]]) -> None:
        """Write down the content that a sweep is planned with, by the key of the need."""
        written = {key: dict(one) for key, one in content.items()}
        with self._database.writing() as connection:
            connection.execute(sa.update(sweep).where(sweep.c.id == sweep_id).values(content=written))

    def note_findings(self, found: Sequence[Inspected], there: Collection[str]) -> None:
        """Write down what was found, and forget the machines that are not there."""
        with self._database.writing() as connection:
            write_needs(connection, [one.need for one in found])
            connection.execute(sa.delete(finding).where(finding.c.node.not_in(there)))
            for one in found:
                values = {"host": one.host, "said": one.finding.said, "state": one.finding.state, "looked": one.looked}
                values |= {"facts": one.finding.model_dump(mode="json", include={"content", "counts"})}
                write = insertion(connection, finding).values(node=one.node, need=one.need.key, **values)
                connection.execute(write.on_conflict_do_update(index_elements=["node", "need"], set_=values))
