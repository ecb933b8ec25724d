"""How much may wait for the conductor: requests of one sweep, and trials of one owner. All of it is stored."""

from collections.abc import Mapping
from typing import Final

import sqlalchemy as sa

from orchestrator.record.schema import request, sweep, trial
from orchestrator.views.errors import ConflictError
from orchestrator.views.states import SWEEP_GOING, SweepState, TrialState

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
