"""Trainings: which are known, which were planned under older versions, and how long those of a shape took."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.cost.estimate import Duration, named, shape_of
from orchestrator.cost.workload import units
from orchestrator.record.database import Access, chunked
from orchestrator.record.reads.sources import closed_to, out_of_reach, reachable, sources
from orchestrator.record.reads.wanting import wanted, wanted_by_active
from orchestrator.record.schema import training
from orchestrator.views.lifecycle import TRIAL_ACTIVE, TrialState
from orchestrator.views.planned import PlannedTrial

AT_ONCE: Final = 500
"""Trainings that one transaction plans anew."""
MOST_READ: Final = 2_000
"""Recipes that are looked at, the latest first: with more, older trainings go unseen."""
MOST_MEASURED: Final = 20
"""Trainings of one shape whose length is taken."""


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
            latest = {row.id: (one, row) for one, rows in _of_shapes(connection, shapes).items() for row in rows}
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
        finished = training.c.state == TrialState.FINISHED
        with self._database.reading() as connection:
            within = reachable(closed_to(connection, project))
            for chunk in chunked(dict.fromkeys(fingerprints), 1_000):
                query = sa.select(training.c.fingerprint).where(training.c.fingerprint.in_(chunk), finished, *within)
                found.update(connection.execute(query).scalars())
        return found

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

    def outdated(self, stamps: Collection[str]) -> list[Outdated]:
        """A few of the trainings with such a stamp that wait or run for some trial, oldest first."""
        if not stamps:
            return []
        columns = (training.c.id, training.c.stamp, training.c.recipe)
        query = (
            sa.select(*columns, (~wanted_by_active(training.c.id)).label("evaluated"))
            .where(training.c.state.in_(TRIAL_ACTIVE), training.c.stamp.in_(list(stamps)), wanted(training.c.id))
            .order_by(training.c.id)
            .limit(AT_ONCE)
        )
        with self._database.reading() as connection:
            return [Outdated(row.id, row.stamp, row.recipe, row.evaluated) for row in connection.execute(query)]


def _trained(row: sa.Row[Any]) -> float:
    """The iterations or epochs that a training did, which its patience may have ended early."""
    share = row.step / row.total_steps if 0 < row.step <= row.total_steps else 1.0
    return units(row.recipe) * share


def _of_shapes(connection: sa.Connection, shapes: Collection[str]) -> dict[str, list[Any]]:
    """By shape, the latest trainings, the latest first."""
    table = training.c
    wanted = set(shapes)
    parts = ((name, {named(shape, name) for shape in wanted}) for name in ("dataset", "backbone"))
    columns = (table.id, table.recipe, table.seconds, table.step, table.total_steps)
    query = sa.select(*columns).where(
        table.state == TrialState.FINISHED, table.diverged.is_(False), table.seconds.is_not(None),
        table.source.is_(None),
        *(sa.func.coalesce(table.recipe[name]["name"].as_string(), "").in_(names) for name, names in parts),
    )  # fmt: skip
    by_shape: dict[str, list[Any]] = {}
    for row in connection.execute(query.order_by(table.id.desc()).limit(MOST_READ)):
        shape = shape_of(row.recipe)
        if shape in wanted and len(by_shape.setdefault(shape, [])) < MOST_MEASURED:
            by_shape[shape].append(row)
    return by_shape


def _devices(connection: sa.Connection, ids: Collection[int]) -> dict[int, tuple[str | None, str | None]]:
    """The kind and the name of the device that each training names."""
    facts = training.c.result["provenance"]
    columns = (facts[key].as_string().label(key) for key in ("device", "device_name"))
    query = sa.select(training.c.id, *columns)
    rows = (row for chunk in chunked(ids, 200) for row in connection.execute(query.where(training.c.id.in_(chunk))))
    return {row.id: (row.device, row.device_name) for row in rows}
