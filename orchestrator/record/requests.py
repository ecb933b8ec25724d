"""Requests of clients, from posting to application: submissions, extensions, retries, cancellations, deletions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from orchestrator.record import schema
from orchestrator.record.accounts import audit_event, chosen_project, require_steered
from orchestrator.record.changes import lock_changes, note
from orchestrator.record.columns import shortened
from orchestrator.record.database import (
    DELETE,
    REFUSED,
    Access,
    FencedAccess,
    by_request,
    next_cursor,
    page_after,
    require_lasting,
    require_sweep,
    upsert,
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
_MOST_SHOWN: Final = 10
"""The latest requests in a sweep's view."""
MOST_WAITING: Final = 1_000
"""Waiting requests of one kind for one sweep: trials may be cancelled one by one while the conductor is away."""
MOST_WAITING_OF: Final[Mapping[str, int]] = {"extend": 4}
"""The limit for kinds with large arguments: an extension holds a whole spec."""
ADDED: Final = "added"
"""The argument of an extension with the number of added trials."""
KEPT: Final = ("position", "finished")
"""The arguments of an extension that are kept; its spec is deleted, since the sweep has it."""

RequestKind = Literal[
    "cancel", "retry", "pause", "resume", "priority", "extend", "delete", "collect", "mirror", "resolve", "halt"
]


@dataclass(frozen=True, slots=True)
class NewSweep:
    """A checked spec that is to be stored as a queued sweep."""

    name: str
    uid: str
    text: str  # as it was posted
    spec: dict[str, Any]  # normalized
    total: int  # trials planned
    actor: str | None
    idempotency_key: str | None
    body_hash: str
    priority: int = 0
    project: str | None = None  # by name; `None` for the caller's default project
    most_waiting: int | None = None  # the limit of waiting trials of one owner


class Submissions(Access):
    """Stores the sweeps and requests that clients post."""

    def add_sweep(self, new: NewSweep) -> Submitted:
        """Store a queued sweep, once per idempotency key of a caller.

        Raises ConflictError if the key came with another body or too many trials of the owner would wait, NotFoundError
        and NotAllowedError for the project.
        """
        who = caller()
        if new.idempotency_key is not None and not who.is_owner:  # users do not share keys
            new = replace(new, idempotency_key=f"user {who.user} {new.idempotency_key}")
        known = self._known(new)
        if known is not None:
            return known
        names = ("uid", "name", "text", "spec", "total", "actor", "idempotency_key", "body_hash", "priority")
        values = {name: getattr(new, name) for name in names}
        values |= {"owner_id": who.user, "created": datetime.now(UTC), "state": SweepState.QUEUED}
        try:
            with self._database.writing() as connection:
                lock_changes(connection)
                values["project_id"] = chosen_project(connection, new.project)
                _require_owner_room(connection, who.user, new.total, new.most_waiting)
                added = connection.execute(
                    sa.insert(schema.sweep).values(values).returning(schema.sweep.c.id)
                ).scalar_one()
                note(connection, ChangeKind.SWEEP, added, added, SweepState.QUEUED)
                audit_event(connection, "submit", f"sweep {added}", new.name, actor=new.actor)
        except IntegrityError:
            known = self._known(new)  # another submission with this key came first
            if known is None:
                raise
            return known
        return Submitted(id=added, uid=new.uid, created=True)

    def request_inspection(self, needs: Sequence[Need]) -> datetime:
        """Ask every node to inspect data sets; returns the time after which findings are of this inspection."""
        now = datetime.now(UTC)
        with self._database.writing() as connection:
            for need in needs:
                values = {"reads": need.model_dump(mode="json"), "requested": now}
                upsert(connection, schema.need, {"key": need.key}, values)
        return now

    def _known(self, new: NewSweep) -> Submitted | None:
        if new.idempotency_key is None:
            return None
        query = sa.select(schema.sweep.c.id, schema.sweep.c.uid, schema.sweep.c.body_hash)
        row = self._row(query.where(schema.sweep.c.idempotency_key == new.idempotency_key))
        if row is None:
            return None
        if row.body_hash != new.body_hash:
            key = new.idempotency_key.rpartition(" ")[2]
            raise ConflictError(
                f"the idempotency key {key!r} belongs to sweep {row.id}, which has another spec; use another key"
            )
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
        """Store a request that the conductor carries out, and return its id.

        `most_waiting`: the limit of the owner's waiting trials, including those of an extension. Raises NotFoundError,
        and ConflictError if the sweep's deletion was requested or too many requests wait for it.
        """
        trials, requests = schema.trial, schema.request
        with self._database.writing() as connection:
            lock_changes(connection)
            if caller().is_owner:
                require_sweep(connection, sweep)  # its message says when and by whom a sweep was deleted
            project = require_steered(connection, sweep, owned=kind == DELETE)
            require_lasting(connection, sweep)
            _require_room(connection, sweep, kind)
            if added_trials := int((arguments or {}).get(ADDED, 0)):
                owner = sa.select(schema.sweep.c.owner_id).where(schema.sweep.c.id == sweep)
                _require_owner_room(connection, connection.execute(owner).scalar_one(), added_trials, most_waiting)
            its_sweep = sa.select(trials.c.sweep_id).where(trials.c.id == trial)
            if trial is not None and connection.scalar(its_sweep) != sweep:
                raise NotFoundError(f"no trial {trial} in sweep {sweep}")
            values = {
                "kind": kind, "sweep_id": sweep, "trial_id": trial, "actor": actor, "created": datetime.now(UTC),
                "arguments": dict(arguments) if arguments else None, "project_id": project,
            }  # fmt: skip
            adding = sa.insert(requests).values(values).returning(requests.c.id)
            added = int(connection.execute(adding).scalar_one())
            note(connection, ChangeKind.REQUEST, sweep, added)
            target = f"sweep {sweep}" if trial is None else f"sweep {sweep}, trial {trial}"
            audit_event(connection, kind, target, f"request {added}", actor=actor)
            return added


def _require_owner_room(connection: sa.Connection, owner: int | None, added: int, most: int | None) -> None:
    """Raise ConflictError if more than `most` trials of an owner would wait, with those that are added.

    `owner`: a user's id, or `None` for everybody with the server's own token. Counts the waiting trials of running and
    paused sweeps, those of queued sweeps, and those of requested extensions.
    """
    if most is None:
        return
    own = sweep.c.owner_id.is_(None) if owner is None else sweep.c.owner_id == owner
    queued = sa.select(sa.func.coalesce(sa.func.sum(sweep.c.total), 0)).where(own, sweep.c.state == SweepState.QUEUED)
    rows = (
        sa.select(sa.func.count())
        .select_from(trial)
        .join(sweep, sweep.c.id == trial.c.sweep_id)
        .where(own, sweep.c.state.in_(SWEEP_GOING), trial.c.state == TrialState.WAITING)
    )
    query = (
        sa.select(request.c.arguments)
        .join(sweep, sweep.c.id == request.c.sweep_id)
        .where(own, request.c.kind == "extend", request.c.applied.is_(None))
    )
    waiting = sum(int((arguments or {}).get(ADDED, 0)) for arguments in connection.scalars(query))
    waiting += int(connection.execute(queued).scalar_one()) + int(connection.execute(rows).scalar_one())
    if waiting + added > most:
        raise ConflictError(
            f"{waiting:,} trials of this owner wait already and the spec adds {added:,}, but no more than {most:,} may "
            "wait at once (METRICSWEEP_OWNER_TRIALS); submit again when fewer wait, cancel some, or make the spec "
            "smaller"
        )


def _require_room(connection: sa.Connection, number: int, kind: str) -> None:
    """Raise ConflictError if the most requests of this kind wait for the sweep."""
    most = MOST_WAITING_OF.get(kind, MOST_WAITING)
    waiting = sa.select(request.c.id).where(_waits_for(number), request.c.kind == kind)
    if len(connection.execute(waiting.limit(most)).all()) == most:
        raise ConflictError(
            f"{most:,} requests of the kind '{kind}' wait for sweep {number}, which is the limit; "
            "try again when the conductor has carried them out"
        )


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request that the conductor has not carried out yet."""

    id: int
    kind: str  # a RequestKind
    sweep: int
    trial: int | None
    actor: str | None
    arguments: Mapping[str, Any] = field(default_factory=dict)


class RequestReader(Access):
    """Reads requests, and checks whether a request is allowed."""

    def get(self, number: int) -> RequestView:
        """The request with a number; raises NotFoundError."""
        row = self._row(sa.select(request).where(request.c.id == number))
        if row is None:
            raise NotFoundError(f"no request {number}")
        return _view(row)

    def page(self, sweep: int, cursor: str | None = None, limit: int = 50) -> Page[RequestView]:
        """A page of the requests of a sweep, also of a deleted sweep, newest first; raises NotFoundError."""
        its = sa.select(request).where(request.c.sweep_id == sweep)
        with self._database.reading() as connection:
            rows = connection.execute(page_after(its, request.c.id, cursor, limit, newest=True)).all()
            if not rows and cursor is None:
                require_sweep(connection, sweep)
        return Page(items=[_view(row) for row in rows[:limit]], next_cursor=next_cursor(rows, limit))

    def pending(self) -> list[PendingRequest]:
        """The requests that are not carried out yet, oldest first."""
        query = sa.select(request).where(request.c.applied.is_(None)).order_by(request.c.id)
        return [
            PendingRequest(row.id, row.kind, row.sweep_id, row.trial_id, row.actor, row.arguments or {})
            for row in self._rows(query)
        ]

    def looks(self, sweep: int) -> tuple[SweepLook, ...]:
        """The extensions that added trials to a sweep, in order, each a look at the results in sequential tests."""
        done = (request.c.sweep_id == sweep, request.c.kind == "extend", request.c.applied.is_not(None))
        return tuple(
            SweepLook(row.applied, row.arguments["position"], row.arguments["finished"])
            for row in self._rows(sa.select(request).where(*done).order_by(request.c.id))
            if not (row.outcome or "").startswith((REFUSED, "0 trials"))
        )

    def cancellation(self, sweep: int, after: int) -> int | None:
        """The first request, later than the request `after`, that cancels the whole sweep; or `None`."""
        with self._database.reading() as connection:
            return next((row.id for row in _cancellations(connection, sweep, after)), None)

    def require_not_overtaken(self, pending: PendingRequest) -> None:
        """Raise ConflictError if a later request has already cancelled the whole sweep."""
        with self._database.reading() as connection:
            for row in _cancellations(connection, pending.sweep, pending.id):
                if row.applied is not None and not (row.outcome or "").startswith(REFUSED):
                    cancelled = f"sweep {pending.sweep} was cancelled meanwhile{by_request(row)}"
                    raise ConflictError(f"{cancelled}; repeat the request if it is still wanted")

    def require_valid(self, pending: PendingRequest) -> SweepState:
        """The state of a request's sweep; raises NotFoundError, or ConflictError if an earlier request deletes it."""
        with self._database.reading() as connection:
            state = require_sweep(connection, pending.sweep)
            require_lasting(connection, pending.sweep, before=pending.id)
            return state

    def require_going(self, sweep: int, what: str, trial_id: int | None = None, cell_index: int | None = None) -> None:
        """Raise ConflictError if a sweep, cell or trial has ended and no waiting request may restart it.

        `what`: the refused action, for the message. Raises NotFoundError if there is no such sweep.
        """
        goes_on = sa.or_(trial.c.state.in_(TRIAL_ACTIVE), evaluation_left())
        active = sa.select(trial.c.id).where(trial.c.sweep_id == sweep, goes_on).limit(1)
        with self._database.reading() as connection:
            state = require_sweep(connection, sweep)
            if revival_waits(connection, sweep):
                return
            going_on = sa.select(resolution.c.id).where(resolution.c.sweep_id == sweep, resolution.c.ended.is_(None))
            resolved = state in SWEEP_ENDED and connection.execute(going_on.limit(1)).first() is not None
            if resolved and what == PAUSED:
                return  # it applies to the next round
            ended = f"sweep {sweep} is {state}" if state in SWEEP_ENDED else None
            if ended is None and trial_id is not None:
                its = connection.scalar(sa.select(trial.c.state).where(trial.c.id == trial_id))
                evaluated = connection.execute(active.where(trial.c.id == trial_id)).first() is not None
                ended = f"trial {trial_id} is {its}" if its in TRIAL_ENDED and not evaluated else None
            elif ended is None and cell_index is not None:
                searched = sa.select(cell.c.open).where(cell.c.sweep_id == sweep, cell.c.cell == cell_index)
                going = connection.execute(active.where(trial.c.cell == cell_index)).first()
                if going is None and not connection.scalar(searched):
                    ended = f"all trials of cell {cell_index} of sweep {sweep} have ended"
        if resolved:
            raise ConflictError(
                f"sweep {sweep} is between two rounds of its resolution, so nothing trains; "
                f"`resolution {sweep} --halt` ends it"
            )
        if ended is not None:
            raise ConflictError(f"{ended}; only an active one can be {what}")


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
    """The requests, later than the request `after`, to cancel the whole sweep, in order."""
    whole = (request.c.sweep_id == sweep, request.c.kind == "cancel", request.c.trial_id.is_(None))
    rows = connection.execute(sa.select(request).where(*whole, request.c.id > after).order_by(request.c.id))
    return [row for row in rows if (row.arguments or {}).get("cell") is None]


def _waits_for(sweep: int) -> sa.ColumnElement[bool]:
    return sa.and_(request.c.sweep_id == sweep, request.c.applied.is_(None))


def revival_waits(connection: sa.Connection, sweep: int) -> bool:
    """Whether a waiting request, an extension or a retry, may restart an ended sweep."""
    waiting = sa.select(request.c.id).where(_waits_for(sweep), request.c.kind.in_(["retry", "extend"]))
    return connection.execute(waiting.limit(1)).first() is not None


def latest_requests(connection: sa.Connection, sweep: int) -> Sequence[RequestView]:
    """The latest requests of a sweep, newest first, for its page."""
    query = sa.select(request).where(request.c.sweep_id == sweep).order_by(request.c.id.desc()).limit(_MOST_SHOWN)
    return [_view(row) for row in connection.execute(query)]


def note_look(connection: sa.Connection, sweep: int, request_id: int, position: int) -> None:
    """Record in an extension the position of its first trial, and how many trials had finished before it."""
    ended = sa.select(sa.func.count()).where(trial.c.sweep_id == sweep, trial.c.state == TrialState.FINISHED)
    its = request.c.id == request_id
    arguments = connection.scalar(sa.select(request.c.arguments).where(its)) or {}
    look = {"position": position, "finished": connection.execute(ended).scalar_one()}
    connection.execute(sa.update(request).where(its).values(arguments={**arguments, **look}))


class RequestWriter(FencedAccess):
    """Records what became of requests."""

    def applied(self, request_id: int, outcome: str) -> None:
        """Record the outcome of a request that was carried out or refused; raises FencedError.

        The spec of an extension is deleted.
        """
        done = sa.update(request).where(request.c.id == request_id, request.c.applied.is_(None))
        with self._database.writing() as connection:
            its = (request.c.id == request_id, request.c.applied.is_(None), request.c.kind == "extend")
            row: Any = connection.execute(sa.select(request.c.arguments).where(*its)).first()
            if row is not None:
                look = {name: row.arguments[name] for name in KEPT if name in (row.arguments or {})}
                connection.execute(sa.update(request).where(*its).values(arguments=look or None))
            answered = done.values(applied=datetime.now(UTC), outcome=shortened(outcome))
            for sweep in connection.scalars(answered.returning(request.c.sweep_id)).all():
                note(connection, ChangeKind.REQUEST, sweep, request_id)
