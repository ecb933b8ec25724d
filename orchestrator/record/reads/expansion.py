"""How far a sweep is expanded: before all of its rows are written it is queued, and nobody is shown a part of them."""

from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.schema import candidate, cell, sweep, trial
from orchestrator.views.runs import Labels
from orchestrator.views.states import SweepState

_STATES: Final = (SweepState.QUEUED, SweepState.FAILED, SweepState.CANCELLED)
UNEXPANDED: Final = sa.and_(sweep.c.started.is_(None), sweep.c.state.in_(_STATES))
"""Of a sweep: whether it is queued, or ended before its last trial was written."""
_UNEXPANDED: Final = sa.select(sweep.c.id).where(sweep.c.id == sa.bindparam("sweep"), UNEXPANDED)
_IN_PART: Final = sa.select(sweep.c.id).where(UNEXPANDED, sa.exists().where(trial.c.sweep_id == sweep.c.id))
WRITTEN: Final = (
    sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1)
    .where(trial.c.sweep_id == sweep.c.id)
    .scalar_subquery()
)
"""Of a sweep: how many of its trials have a row."""


class TrialPlace(NamedTuple):
    """Where a trial stands."""

    cell: int
    candidate: int
    repeat: int


def is_expanded(row: Any) -> bool:
    """Whether all rows of a sweep are written, of which `row` has `started` and `state`."""
    return row.started is not None or row.state not in _STATES


def unexpanded(connection: sa.Connection, number: int) -> bool:
    """Whether there is such a sweep and some of its rows are not written yet."""
    return connection.execute(_UNEXPANDED, {"sweep": number}).first() is not None


def of_whole(connection: sa.Connection, among: Collection[int] | None = None) -> list[sa.ColumnElement[bool]]:
    """The conditions on trials that leave out those of sweeps that are written in part; `among`: of these sweeps.

    There are none where no such sweep is: what goes through all trials is then answered by the indexes that it was.
    """
    query = _IN_PART if among is None else _IN_PART.where(sweep.c.id.in_(sorted(among)))
    parts = connection.execute(query).scalars().all()
    return [trial.c.sweep_id.not_in(parts)] if parts else []


class ExpansionReader(Access):
    """Reads what is written of a sweep, for whoever goes on with it."""

    def cells(self, number: int) -> Iterator[Labels]:
        """The labels of its cells, in order."""
        query = sa.select(cell.c.labels).where(cell.c.sweep_id == number).order_by(cell.c.cell)
        return self._labels(query)

    def candidates(self, number: int) -> Iterator[Labels]:
        """The labels of its candidates, in order."""
        query = sa.select(candidate.c.labels).where(candidate.c.sweep_id == number)
        return self._labels(query.order_by(candidate.c.cell, candidate.c.candidate))

    def last_place(self, number: int) -> TrialPlace | None:
        """That of its last trial; none where it has none."""
        query = sa.select(trial.c.cell, trial.c.candidate, trial.c.repeat).where(trial.c.sweep_id == number)
        with self._database.reading() as connection:
            row = connection.execute(query.order_by(trial.c.position.desc()).limit(1)).first()
        return None if row is None else TrialPlace(*row)

    def _labels(self, query: sa.Select[tuple[Any]]) -> Iterator[Labels]:
        with self._database.reading() as connection:
            yield from connection.execute(query).scalars()
