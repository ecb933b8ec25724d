"""Changes after a point, each once with how what it is about is now: one reader tells them to any number of streams."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.existence import require_sweep
from orchestrator.record.schema import cell, change, request, sweep, training, trial
from orchestrator.views.runs import ChangeKind, ChangeSpan, ChangeView, Told

_OF_SWEEP = frozenset({ChangeKind.SWEEP, ChangeKind.NOTICE, ChangeKind.TRIALS})
_OF_TRIAL = frozenset({ChangeKind.TRIAL, ChangeKind.PROGRESS, ChangeKind.STALLED})


class ChangeReader(Access):
    """Reads changes."""

    def newest(self) -> int:
        """The id of the latest change; 0: there was none yet."""
        with self._database.reading() as connection:
            return _bound(connection, sa.func.max)

    def after(self, position: int, most: int) -> ChangeSpan:
        """The changes after an id, the latest `most` of them; of several of one thing the last."""
        with self._database.reading() as connection:
            newest = _bound(connection, sa.func.max)
            if newest == position:
                return ChangeSpan(position, newest, [])
            since = max(0, _bound(connection, sa.func.min) - 1, newest - most)
            if position <= newest:
                since = max(position, since)
            query = sa.select(change).where(change.c.id > since, change.c.id <= newest).order_by(change.c.id)
            latest = {(row.kind, row.sweep_id, row.entity): row for row in connection.execute(query)}
            rows = sorted(latest.values(), key=lambda row: row.id)
            return ChangeSpan(since, newest, _told(connection, rows))

    def seen(self, sweeps: Collection[int]) -> frozenset[int]:
        """Those of the sweeps that the caller sees, also of those that were deleted."""
        ids = list(sweeps)
        there = sa.select(sweep.c.id).where(sweep.c.id.in_(ids))
        query = there.union(sa.select(request.c.sweep_id).where(request.c.sweep_id.in_(ids)))
        with self._database.reading() as connection:
            return frozenset(connection.execute(query).scalars()) if ids else frozenset()

    def require(self, number: int) -> None:
        """Raise NotFoundError unless there is such a sweep."""
        with self._database.reading() as connection:
            require_sweep(connection, number)


def _bound(connection: sa.Connection, which: Any) -> int:
    return int(connection.execute(sa.select(which(change.c.id))).scalar() or 0)


def _told(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> list[Told]:
    by_kind: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        by_kind[row.kind].add(row.entity)
    sweeps = _sweeps(connection, set[int]().union(*(by_kind[kind] for kind in _OF_SWEEP)))
    trials = _trials(connection, set[int]().union(*(by_kind[kind] for kind in _OF_TRIAL)))
    settled = _settled(connection, {row.sweep_id for row in rows if row.kind == ChangeKind.CELL})
    told = []
    for row in rows:
        said: dict[str, Any] = {"type": row.kind, "sweep": row.sweep_id}
        if row.kind in _OF_SWEEP:
            said |= {"url": f"/v1/sweeps/{row.sweep_id}", **sweeps.get(row.entity, {})}
        elif row.kind in _OF_TRIAL:
            said |= {"trial": row.entity, "url": f"/v1/trials/{row.entity}", **trials.get(row.entity, {})}
        elif row.kind == ChangeKind.CELL:
            url = f"/v1/sweeps/{row.sweep_id}/cells/{row.entity}"
            said |= {"cell": row.entity, "url": url, "settled": (row.sweep_id, row.entity) in settled}
        else:
            said |= {"request": row.entity, "url": f"/v1/requests/{row.entity}"}
        told.append(Told(row.id, ChangeView(**said)))
    return told


def _sweeps(connection: sa.Connection, wanted: Collection[int]) -> dict[int, dict[str, Any]]:
    columns = (sweep.c.id, sweep.c.name, sweep.c.state, sweep.c.notice, sweep.c.error)
    rows = connection.execute(sa.select(*columns).where(sweep.c.id.in_(wanted))) if wanted else ()
    return {row.id: {"name": row.name, "state": row.state, "notice": row.notice, "error": row.error} for row in rows}


def _trials(connection: sa.Connection, wanted: Collection[int]) -> dict[int, dict[str, Any]]:
    columns = (
        trial.c.id, trial.c.cell, trial.c.state, trial.c.diverged, training.c.step, training.c.total_steps,
        training.c.score,
    )  # fmt: skip
    query = sa.select(*columns).join(training, training.c.id == trial.c.training_id).where(trial.c.id.in_(wanted))
    rows = connection.execute(query) if wanted else ()
    keys = [column.name for column in columns if column is not trial.c.id]
    return {row.id: {key: getattr(row, key) for key in keys} for row in rows}


def _settled(connection: sa.Connection, sweeps: Collection[int]) -> set[tuple[int, int]]:
    query = sa.select(cell.c.sweep_id, cell.c.cell).where(cell.c.sweep_id.in_(sweeps), cell.c.settled.is_not(None))
    return {(row.sweep_id, row.cell) for row in connection.execute(query)} if sweeps else set()
