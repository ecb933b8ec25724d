"""How long trainings of given shapes took: the base of what a sweep's would cost."""

from collections.abc import Collection
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.cost.estimate import Duration, named, shape_of
from orchestrator.cost.workload import units
from orchestrator.record.database import Access, chunked
from orchestrator.record.schema import training
from orchestrator.views.lifecycle import TrialState

MOST_READ: Final = 2_000
"""Recipes that are looked at, the latest first: with more, older trainings go unseen."""
MOST_MEASURED: Final = 20
"""Trainings of one shape whose length is taken."""


class Durations(Access):
    """Reads how long finished trainings took."""

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


def _trained(row: sa.Row[Any]) -> float:
    """The iterations or epochs that a training did, which its patience may have ended early."""
    share = row.step / row.total_steps if 0 < row.step <= row.total_steps else 1.0
    return units(row.recipe) * share


def _of_shapes(connection: sa.Connection, shapes: Collection[str]) -> dict[str, list[Any]]:
    """By shape, the latest trainings, the latest first."""
    table = training.c
    wanted = set(shapes)
    parts = ((name, {named(one, name) for one in wanted}) for name in ("dataset", "backbone"))
    columns = (table.id, table.recipe, table.seconds, table.step, table.total_steps)
    query = sa.select(*columns).where(
        table.state == TrialState.FINISHED, table.diverged.is_(False), table.seconds.is_not(None),
        *(table.recipe[name]["name"].as_string().in_(names) for name, names in parts),
    )  # fmt: skip
    found: dict[str, list[Any]] = {}
    for row in connection.execute(query.order_by(table.id.desc()).limit(MOST_READ)):
        one = shape_of(row.recipe)
        if one in wanted and len(found.setdefault(one, [])) < MOST_MEASURED:
            found[one].append(row)
    return found


def _devices(connection: sa.Connection, ids: Collection[int]) -> dict[int, tuple[str | None, str | None]]:
    """The kind and the name of the device that each training names."""
    facts = training.c.result["provenance"]
    columns = (facts[key].as_string().label(key) for key in ("device", "device_name"))
    query = sa.select(training.c.id, *columns)
    rows = (row for chunk in chunked(ids, 200) for row in connection.execute(query.where(training.c.id.in_(chunk))))
    return {row.id: (row.device, row.device_name) for row in rows}
