"""What clients append, sweeps and requests, and what became of the requests. No client changes a row that exists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from orchestrator.record import schema
from orchestrator.record.database import Access, FencedAccess, insertion
from orchestrator.record.existence import DELETE, require_lasting, require_sweep
from orchestrator.record.steering import chosen_project, require_steered
from orchestrator.record.writes.audit import tell
from orchestrator.record.writes.backlog import ADDED, require_owner_room, require_room
from orchestrator.record.writes.changes import alone, note
from orchestrator.record.writes.looks import forget_spec
from orchestrator.record.writes.text import MAX_MESSAGE, storable
from orchestrator.views.accounts import caller
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.runs import ChangeKind
from orchestrator.views.states import SweepState
from orchestrator.views.sweeps import Submitted
from workers.catalog import Need

RequestKind = Literal[
    "cancel", "retry", "pause", "resume", "priority", "extend", "delete", "collect", "mirror", "resolve", "halt"
]


@dataclass(frozen=True, slots=True)
class NewSweep:
    """A checked spec on its way into the database."""

    name: str
    uid: str
    text: str  # as it was posted
    spec: dict[str, Any]  # normalized
    total: int  # trials planned
    actor: str | None
    idempotency_key: str | None
    body_hash: str
    priority: int = 0
    project: str | None = None  # by name; none: the caller's usual one
    most_waiting: int | None = None  # trials of one owner that may wait at once; None: as many as there are


class Submissions(Access):
    """The client's side of the store."""

    def add_sweep(self, new: NewSweep) -> Submitted:
        """Queue a sweep, once per idempotency key of a caller.

        Raises ConflictError when the key came with another body or too many trials of the owner would wait,
        NotFoundError and NotAllowedError of the project.
        """
        who = caller()
        if new.idempotency_key is not None and who.user is not None:  # another's key is nobody's business
            new = replace(new, idempotency_key=f"user {who.user} {new.idempotency_key}")
        known = self._known(new)
        if known is not None:
            return known
        values = {
            "uid": new.uid, "name": new.name, "text": new.text, "spec": new.spec, "total": new.total,
            "actor": new.actor, "idempotency_key": new.idempotency_key, "body_hash": new.body_hash,
            "owner_id": who.user, "created": datetime.now(UTC), "state": SweepState.QUEUED, "priority": new.priority,
        }  # fmt: skip
        try:
            with self._database.writing() as connection:
                alone(connection)
                values["project_id"] = chosen_project(connection, new.project)
                require_owner_room(connection, who.user, new.total, new.most_waiting)
                added = connection.execute(
                    sa.insert(schema.sweep).values(values).returning(schema.sweep.c.id)
                ).scalar_one()
                note(connection, ChangeKind.SWEEP, added, added, SweepState.QUEUED)
                tell(connection, "submit", f"sweep {added}", new.name, actor=new.actor)
        except IntegrityError:
            known = self._known(new)  # another submit with this key was quicker
            if known is None:
                raise
            return known
        return Submitted(id=added, uid=new.uid, created=True)

    def ask_look(self, needs: Sequence[Need]) -> datetime:
        """Have every node look for these needs; findings that are not older than what is given are of that look."""
        now = datetime.now(UTC)
        with self._database.writing() as connection:
            for one in needs:
                row = insertion(connection, schema.need).values(
                    key=one.key, reads=one.model_dump(mode="json"), asked=now
                )
                connection.execute(row.on_conflict_do_update(index_elements=["key"], set_={"asked": now}))
        return now

    def _known(self, new: NewSweep) -> Submitted | None:
        if new.idempotency_key is None:
            return None
        query = sa.select(schema.sweep.c.id, schema.sweep.c.uid, schema.sweep.c.body_hash)
        with self._database.reading() as connection:
            row = connection.execute(query.where(schema.sweep.c.idempotency_key == new.idempotency_key)).one_or_none()
        if row is None:
            return None
        if row.body_hash != new.body_hash:
            key = new.idempotency_key.rpartition(" ")[2]
            raise ConflictError(f"the idempotency key {key!r} belongs to sweep {row.id}, which was another spec")
        return Submitted(id=row.id, uid=row.uid, created=False)

    def add_request(
        self,
        kind: RequestKind,
        sweep: int,
        trial: int | None,
        actor: str | None,
        arguments: Mapping[str, Any] | None = None,
        most_waiting: int | None = None,
    ) -> int:
        """Ask the conductor for something and return the request's id.

        `most_waiting`: so many trials of the sweep's owner may wait, with those that an extension adds. Raises
        NotFoundError, and ConflictError once the sweep's deletion was asked for or too much waits for it.
        """
        trials, requests = schema.trial, schema.request
        with self._database.writing() as connection:
            alone(connection)
            if caller().user is None:
                require_sweep(connection, sweep)  # it says when and for whom one was deleted
            project = require_steered(connection, sweep, owned=kind == DELETE)
            require_lasting(connection, sweep)
            require_room(connection, sweep, kind)
            if added_trials := int((arguments or {}).get(ADDED, 0)):
                owner = sa.select(schema.sweep.c.owner_id).where(schema.sweep.c.id == sweep)
                require_owner_room(connection, connection.execute(owner).scalar_one(), added_trials, most_waiting)
            its_sweep = sa.select(trials.c.sweep_id).where(trials.c.id == trial)
            if trial is not None and connection.execute(its_sweep).scalar_one_or_none() != sweep:
                raise NotFoundError(f"no trial {trial} in sweep {sweep}")
            values = {
                "kind": kind, "sweep_id": sweep, "trial_id": trial, "actor": actor, "created": datetime.now(UTC),
                "arguments": dict(arguments) if arguments else None, "project_id": project,
            }  # fmt: skip
            adding = sa.insert(requests).values(values).returning(requests.c.id)
            added = int(connection.execute(adding).scalar_one())
            note(connection, ChangeKind.REQUEST, sweep, added)
            target = f"sweep {sweep}" if trial is None else f"sweep {sweep}, trial {trial}"
            tell(connection, kind, target, f"request {added}", actor=actor)
            return added


class RequestWriter(FencedAccess):
    """Answers requests."""

    def applied(self, request_id: int, outcome: str) -> None:
        """Note what became of a request; raises FencedError. The spec that it carried goes: its sweep has it now."""
        done = sa.update(schema.request).where(schema.request.c.id == request_id, schema.request.c.applied.is_(None))
        said = storable(outcome)[:MAX_MESSAGE]
        with self._database.writing() as connection:
            forget_spec(connection, request_id)
            answered = done.values(applied=datetime.now(UTC), outcome=said).returning(schema.request.c.sweep_id)
            for sweep in connection.execute(answered).scalars().all():
                note(connection, ChangeKind.REQUEST, sweep, request_id)
