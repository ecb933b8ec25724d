"""Trainings: which are known, which were planned under older versions, and how long those of a shape took."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.cost.estimate import Duration, shape_key, units
from orchestrator.record.database import Access, chunked
from orchestrator.record.reads.sources import closed_to, out_of_reach, reachable, sources
from orchestrator.record.reads.wanting import wanted, wanted_by_active
from orchestrator.record.schema import training
from orchestrator.views.runs import PlannedTrial
from orchestrator.views.states import TRIAL_ACTIVE, TrialState

AT_ONCE: Final = 500
"""Trainings that one transaction plans anew."""
MOST_MEASURED: Final = 20
"""Trainings of one shape whose length is taken."""


_OF_SHAPE: Final = (
    sa.select(training.c.id, training.c.recipe, training.c.seconds, training.c.step, training.c.total_steps)
    .where(training.c.shape == sa.bindparam("key"), training.c.seconds.is_not(None))
    .order_by(training.c.id.desc())
)


@dataclass(frozen=True, slots=True)
class Outdated:
    """A training that waits or runs and was planned under older versions."""

    id: int
    stamp: str
    recipe: Mapping[str, Any]
    evaluated: bool = False  # no trial waits for it: finished ones are to take its metrics


class TrainingReader(Access):
    """Reads which trainings there are, and how long they took."""

    def durations(self, shapes: Collection[str]) -> dict[str, list[Duration]]:
        """By shape, how long the latest trainings took that finished ok; a shape that never did is absent."""
        if not shapes:
            return {}
        with self._database.reading() as connection:
            latest = {row.id: (one, row) for one in shapes for row in _of_shape(connection, one)}
            devices = _devices(connection, latest)
        found: dict[str, list[Duration]] = {}
        for id_, (one, row) in latest.items():
            device, name = devices[id_]
            if device is not None:
                found.setdefault(one, []).append(Duration(row.seconds, _trained(row), device, name or ""))
        return found

    def known(self, fingerprints: Iterable[str], project: int) -> set[str]:
        """Those of the fingerprints whose training has finished, and is for sweeps of a project."""
        found: set[str] = set()
        with self._database.reading() as connection:
            within = reachable(closed_to(connection, project))
            for chunk in chunked(dict.fromkeys(fingerprints), 1_000):
                query = sa.select(training.c.fingerprint, training.c.state)
                rows = connection.execute(query.where(training.c.fingerprint.in_(chunk), *within))
                # Not asked of the database: SQLite would begin by the state, with a year of finished trainings.
                found.update(row.fingerprint for row in rows if row.state == TrialState.FINISHED)
        return found

    def trained(self, fingerprints: Collection[str], project: int) -> tuple[datetime, datetime] | None:
        """When the first and the last of these trainings ended that are for sweeps of a project."""
        times: list[datetime] = []
        with self._database.reading() as connection:
            within = reachable(closed_to(connection, project))
            for chunk in chunked(fingerprints, 1_000):
                query = sa.select(training.c.state, training.c.ended)
                rows = connection.execute(query.where(training.c.fingerprint.in_(chunk), *within))
                # As in `known`, SQLite would begin by the state.
                times += [row.ended for row in rows if row.state == TrialState.FINISHED and row.ended is not None]
        return (min(times), max(times)) if times else None

    def evaluable(self, planned: Collection[PlannedTrial], project: int) -> tuple[set[str], list[str]]:
        """The fingerprints of those that kept weights can stand for, and the keys for which others are trained.

        For sweeps of a project: what only other closed ones have is passed over.
        """
        with self._database.reading() as connection:
            closed = closed_to(connection, project)
            found = set(sources(connection, planned, closed))
            left = [one for one in planned if one.fingerprint not in found]
            return found, out_of_reach(connection, left, closed)

    def stamps(self) -> list[str]:
        """The stamps that trainings have."""
        with self._database.reading() as connection:
            return list(connection.execute(sa.select(training.c.stamp).distinct()).scalars())

    def outdated(self, stamps: Collection[str], waiting_only: Collection[str] = ()) -> list[Outdated]:
        """A few of the trainings with such a stamp that wait or run for some trial, oldest first.

        Those with one of the stamps `waiting_only` only while they wait.
        """
        if not stamps:
            return []
        columns = (training.c.id, training.c.stamp, training.c.recipe)
        query = (
            sa.select(*columns, (~wanted_by_active(training.c.id)).label("evaluated"))
            .where(training.c.state.in_(TRIAL_ACTIVE), training.c.stamp.in_(list(stamps)), wanted(training.c.id))
            .where(sa.or_(training.c.state == TrialState.WAITING, training.c.stamp.not_in(list(waiting_only))))
            .order_by(training.c.id)
            .limit(AT_ONCE)
        )
        with self._database.reading() as connection:
            return [Outdated(row.id, row.stamp, row.recipe, row.evaluated) for row in connection.execute(query)]


def _trained(row: sa.Row[Any]) -> float:
    """The iterations or epochs that a training did, which its patience may have ended early."""
    share = row.step / row.total_steps if 0 < row.step <= row.total_steps else 1.0
    return units(row.recipe) * share


def _of_shape(connection: sa.Connection, shape: str) -> Sequence[Any]:
    """The latest trainings of a shape, the latest first."""
    return connection.execute(_OF_SHAPE.limit(MOST_MEASURED), {"key": shape_key(shape)}).all()


def _devices(connection: sa.Connection, ids: Collection[int]) -> dict[int, tuple[str | None, str | None]]:
    """The kind and the name of the device that each training names."""
    facts = training.c.result["provenance"]
    columns = (facts[key].as_string().label(key) for key in ("device", "device_name"))
    query = sa.select(training.c.id, *columns)
    rows = (row for chunk in chunked(ids, 200) for row in connection.execute(query.where(training.c.id.in_(chunk))))
    return {row.id: (row.device, row.device_name) for row in rows}
