"""Requests of clients, submissions and looks, from posting to application."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from orchestrator.record import schema
from orchestrator.record.accounts import chosen_project, require_steered, tell
from orchestrator.record.changes import alone, note
from orchestrator.record.columns import MAX_MESSAGE, storable
from orchestrator.record.database import (
    DELETE,
    REFUSED,
    Access,
    FencedAccess,
    asked_by,
    decode,
    encode,
    insertion,
    require_lasting,
    require_sweep,
)
from orchestrator.record.schema import cell, request, resolution, sweep, trial
from orchestrator.record.trainings import evaluation_left
from orchestrator.views.accounts import caller
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.pages import Page
from orchestrator.views.runs import ChangeKind, SweepLook
from orchestrator.views.states import SWEEP_ENDED, SWEEP_GOING, TRIAL_ACTIVE, TRIAL_ENDED, SweepState, TrialState
from orchestrator.views.sweeps import RequestView, Submitted
from workers.catalog import Need

PAUSED: Final = "paused"
MOST_SHOWN: Final = 10
"""The latest requests that a sweep's view holds."""
_PENDING: Final = sa.select(request).where(request.c.applied.is_(None)).order_by(request.c.id)
_ITS: Final = request.c.sweep_id == sa.bindparam("sweep")
_LATEST: Final = sa.select(request).where(_ITS).order_by(request.c.id.desc()).limit(MOST_SHOWN)
_EXTENSIONS: Final = (
    sa.select(request.c.applied, request.c.arguments, request.c.outcome)
    .where(_ITS, request.c.kind == "extend", request.c.applied.is_not(None))
    .order_by(request.c.id)
)


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """What somebody asked for and nobody did yet."""

    id: int
    kind: str  # one of submissions.RequestKind
    sweep: int
    trial: int | None
    actor: str | None
    arguments: Mapping[str, Any] = field(default_factory=dict)


class RequestReader(Access):
    """Reads requests, and whether one may be made."""

    def get(self, number: int) -> RequestView:
        """One request; raises NotFoundError."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(request).where(request.c.id == number)).one_or_none()
        if row is None:
            raise NotFoundError(f"no request {number}")
        return _view(row)

    def page(self, sweep: int, cursor: str | None = None, limit: int = 50) -> Page[RequestView]:
        """What was asked of a sweep, newest first, also of a deleted one; raises NotFoundError where there is none."""
        query = sa.select(request).where(request.c.sweep_id == sweep).order_by(request.c.id.desc()).limit(limit + 1)
        if cursor is not None:
            query = query.where(request.c.id < decode(cursor))
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            if not rows and cursor is None:
                require_sweep(connection, sweep)
        more = encode(rows[limit - 1].id) if len(rows) > limit else None
        return Page[RequestView](items=[_view(row) for row in rows[:limit]], next_cursor=more)

    def pending(self) -> list[PendingRequest]:
        """Requests not applied yet, in the order in which they came."""
        with self._database.reading() as connection:
            return [
                PendingRequest(row.id, row.kind, row.sweep_id, row.trial_id, row.actor, row.arguments or {})
                for row in connection.execute(_PENDING)
            ]

    def looks(self, sweep: int) -> tuple[SweepLook, ...]:
        """The extensions that gave a sweep trials, in order; none of one that was deleted."""
        with self._database.reading() as connection:
            rows = connection.execute(_EXTENSIONS, {"sweep": sweep}).all()
        return tuple(
            SweepLook(row.applied, row.arguments["position"], row.arguments["finished"])
            for row in rows
            if not (row.outcome or "").startswith((REFUSED, "0 trials"))
        )

    def cancellation(self, sweep: int, after: int) -> int | None:
        """The first request after another one that the whole sweep be cancelled; none where nobody asked for it."""
        with self._database.reading() as connection:
            return next((row.id for row in _cancellations(connection, sweep, after)), None)

    def require_not_overtaken(self, asked: PendingRequest) -> None:
        """Raise ConflictError where the whole sweep was asked to be cancelled after this, and is so already."""
        with self._database.reading() as connection:
            for row in _cancellations(connection, asked.sweep, asked.id):
                if row.applied is not None and not (row.outcome or "").startswith(REFUSED):
                    said = f"sweep {asked.sweep} was cancelled meanwhile{asked_by(row)}"
                    raise ConflictError(f"{said}; ask again for what is still wanted")

    def require_standing(self, asked: PendingRequest) -> SweepState:
        """The state of a request's sweep.

        Raises NotFoundError where it is gone, ConflictError where an earlier request deletes it.
        """
        head = sa.select(schema.sweep.c.state).where(schema.sweep.c.id == asked.sweep)
        with self._database.reading() as connection:
            require_sweep(connection, asked.sweep)
            require_lasting(connection, asked.sweep, before=asked.id)
            return SweepState(connection.execute(head).scalar_one())

    def require_going(self, sweep: int, what: str, trial_id: int | None = None, cell_index: int | None = None) -> None:
        """Raise ConflictError where a sweep, a cell or a trial of it has ended and nothing that waits may revive it.

        `what` could be done to it else, in words; NotFoundError where there is no such sweep.
        """
        head = sa.select(schema.sweep.c.state).where(schema.sweep.c.id == sweep)
        goes_on = sa.or_(trial.c.state.in_(TRIAL_ACTIVE), evaluation_left())
        active = sa.select(trial.c.id).where(trial.c.sweep_id == sweep, goes_on).limit(1)
        with self._database.reading() as connection:
            require_sweep(connection, sweep)
            if connection.execute(_revivals(sweep)).first() is not None:
                return
            state = connection.execute(head).scalar_one()
            resolved = state in SWEEP_ENDED and connection.execute(_resolved(sweep)).first() is not None
            if resolved and what == PAUSED:
                return  # it holds the next round
            ended = f"sweep {sweep} is {state}" if state in SWEEP_ENDED else None
            if ended is None and trial_id is not None:
                its = connection.execute(sa.select(trial.c.state).where(trial.c.id == trial_id)).scalar_one_or_none()
                evaluated = connection.execute(active.where(trial.c.id == trial_id)).first() is not None
                ended = f"trial {trial_id} is {its}" if its in TRIAL_ENDED and not evaluated else None
            elif ended is None and cell_index is not None:
                searched = sa.select(cell.c.open).where(cell.c.sweep_id == sweep, cell.c.cell == cell_index)
                going = connection.execute(active.where(trial.c.cell == cell_index)).first()
                if going is None and not connection.execute(searched).scalar_one_or_none():
                    ended = f"all trials of cell {cell_index} of sweep {sweep} have ended"
        if resolved:
            raise ConflictError(
                f"sweep {sweep} is between two rounds of its resolution, and nothing trains; `resolution {sweep} "
                "--halt` ends that"
            )
        if ended is not None:
            raise ConflictError(f"{ended}; only what goes on can be {what}")


def latest_requests(connection: sa.Connection, sweep: int) -> Sequence[RequestView]:
    """The last things that were asked of a sweep, newest first."""
    return [_view(row) for row in connection.execute(_LATEST, {"sweep": sweep})]


def _view(row: sa.Row[Any]) -> RequestView:
    state: Literal["waiting", "done", "refused"] = "waiting"
    if row.applied is not None:
        state = "refused" if (row.outcome or "").startswith(REFUSED) else "done"
    arguments = row.arguments if isinstance(row.arguments, dict) else {}
    return RequestView(
        id=row.id, kind=row.kind, sweep=row.sweep_id, trial=row.trial_id, cell=arguments.get("cell"), actor=row.actor,
        created=row.created, state=state, applied=row.applied,
        outcome=(row.outcome or "").removeprefix(REFUSED) or None,
    )  # fmt: skip


def _cancellations(connection: sa.Connection, sweep: int, after: int) -> list[sa.Row[Any]]:
    """Requests after another one that the whole sweep be cancelled, in order."""
    whole = (request.c.sweep_id == sweep, request.c.kind == "cancel", request.c.trial_id.is_(None))
    rows = connection.execute(sa.select(request).where(*whole, request.c.id > after).order_by(request.c.id))
    return [row for row in rows if (row.arguments or {}).get("cell") is None]


def _revivals(sweep: int) -> sa.Select[tuple[int]]:
    """Requests that wait, after which trials of an ended sweep may go on."""
    waiting = (request.c.sweep_id == sweep, request.c.applied.is_(None))
    return sa.select(request.c.id).where(*waiting, request.c.kind.in_(["retry", "extend"])).limit(1)


def _resolved(sweep: int) -> sa.Select[tuple[int]]:
    """The resolution of a sweep that goes on."""
    return sa.select(resolution.c.id).where(resolution.c.sweep_id == sweep, resolution.c.ended.is_(None)).limit(1)


MOST_WAITING: Final = 1_000
"""Requests of one kind for one sweep: people cancel trials one by one, and the conductor may be away meanwhile."""
MOST_WAITING_OF: Final[Mapping[str, int]] = {"extend": 4}
"""Those of kinds that carry much: an extension holds a whole spec."""
ADDED: Final = "added"
"""The argument of an extension that says how many trials it adds."""


def require_room(connection: sa.Connection, number: int, kind: str) -> None:
    """Raise ConflictError where as many requests of this kind wait for the sweep as are taken."""
    most = MOST_WAITING_OF.get(kind, MOST_WAITING)
    waiting = sa.select(request.c.id).where(
        request.c.sweep_id == number, request.c.kind == kind, request.c.applied.is_(None)
    )
    if len(connection.execute(waiting.limit(most)).all()) == most:
        raise ConflictError(
            f"{most:,} requests of the kind '{kind}' wait for sweep {number} already, and no more are taken; "
            "ask again when the conductor has carried them out"
        )


def require_owner_room(connection: sa.Connection, owner: int | None, added: int, most: int | None) -> None:
    """Raise ConflictError where more than `most` trials of an owner would wait with those that are added.

    `owner`: the number of a user; `None` is everybody who holds a token of the server.
    """
    if most is None:
        return
    waiting = _waiting(connection, owner)
    if waiting + added > most:
        raise ConflictError(
            f"{waiting:,} trials of this owner wait already and the spec adds {added:,}, but no more than {most:,} may "
            "wait at once (METRICSWEEP_OWNER_TRIALS); submit again when fewer wait, cancel some, or make the spec "
            "smaller"
        )


def _waiting(connection: sa.Connection, owner: int | None) -> int:
    """The trials of an owner that wait: in running and paused sweeps, in queued ones, and in asked-for extensions."""
    own = sweep.c.owner_id.is_(None) if owner is None else sweep.c.owner_id == owner
    queued = sa.select(sa.func.coalesce(sa.func.sum(sweep.c.total), 0)).where(own, sweep.c.state == SweepState.QUEUED)
    rows = (
        sa.select(sa.func.count())
        .select_from(trial)
        .join(sweep, sweep.c.id == trial.c.sweep_id)
        .where(own, sweep.c.state.in_(SWEEP_GOING), trial.c.state == TrialState.WAITING)
    )
    asked = (
        sa.select(request.c.arguments)
        .join(sweep, sweep.c.id == request.c.sweep_id)
        .where(own, request.c.kind == "extend", request.c.applied.is_(None))
    )
    extensions = sum(int((arguments or {}).get(ADDED, 0)) for arguments in connection.execute(asked).scalars())
    return int(connection.execute(queued).scalar_one()) + int(connection.execute(rows).scalar_one()) + extensions


KEPT: Final = ("position", "finished")
"""Of the arguments of an extension; the spec that it carried goes, since its sweep has it."""


def note_look(connection: sa.Connection, sweep: int, asked: int, position: int) -> None:
    """Keep in a request where its trials begin and how many had finished, in the transaction that adds them."""
    ended = sa.select(sa.func.count()).where(trial.c.sweep_id == sweep, trial.c.state == TrialState.FINISHED)
    its = request.c.id == asked
    arguments = connection.execute(sa.select(request.c.arguments).where(its)).scalar_one_or_none() or {}
    look = {"position": position, "finished": connection.execute(ended).scalar_one()}
    connection.execute(sa.update(request).where(its).values(arguments={**arguments, **look}))


def forget_spec(connection: sa.Connection, asked: int) -> None:
    """Take away the spec of an extension that was carried out or refused."""
    its = (request.c.id == asked, request.c.applied.is_(None), request.c.kind == "extend")
    row: Any = connection.execute(sa.select(request.c.arguments).where(*its)).first()
    if row is not None:
        look = {name: row.arguments[name] for name in KEPT if name in (row.arguments or {})}
        connection.execute(sa.update(request).where(*its).values(arguments=look or None))


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
