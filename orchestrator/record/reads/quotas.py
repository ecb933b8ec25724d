"""Quotas, and what is used of them: the time that attempts held CPUs and GPUs, those of deleted sweeps too."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

import sqlalchemy as sa

from orchestrator.record.clock import Seconds, UtcTime
from orchestrator.record.database import Access
from orchestrator.record.reads.capacity import CapacityReader
from orchestrator.record.reads.slot_room import SlotRoom
from orchestrator.record.schema import account, attempt, past_attempt, project, quota, sweep
from orchestrator.views.accounts import OWNER, UNLIMITED, Quota, QuotaKind, QuotaLimits, QuotaUse, calling
from orchestrator.views.operations import shape_of

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
