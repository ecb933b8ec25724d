"""What is kept of an extension once it is carried out: what could be looked at before it."""

from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.schema import request, trial
from orchestrator.views.states import TrialState

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
