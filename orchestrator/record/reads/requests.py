"""What clients asked for, and what became of it; it outlives the sweeps that were deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.existence import REFUSED, asked_by, require_lasting, require_sweep
from orchestrator.record.reads.cursors import decode, encode
from orchestrator.record.reads.wanting import evaluation_left
from orchestrator.record.schema import cell, request, resolution, trial
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.pages import Page
from orchestrator.views.runs import SweepLook
from orchestrator.views.states import SWEEP_ENDED, TRIAL_ACTIVE, TRIAL_ENDED, SweepState
from orchestrator.views.sweeps import RequestView

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
