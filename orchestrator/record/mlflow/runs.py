"""The tracker's ids of experiments and runs, from which links are made."""

from collections.abc import Iterable
from typing import Any, Final, Literal

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access, chunked

RunKind = Literal["trial", "cell", "summary"]


_EXPERIMENT: Final = sa.select(schema.sweep.c.mlflow_experiment).where(schema.sweep.c.id == sa.bindparam("sweep"))


class RunReader(Access):
    """Reads what the tracker calls things."""

    def experiment(self, sweep: int) -> str | None:
        """The tracker's id of a sweep's experiment, once it is made."""
        with self._database.reading() as connection:
            return connection.execute(_EXPERIMENT, {"sweep": sweep}).scalar_one_or_none()

    def by_key(self, sweep: int, keys: Iterable[str]) -> dict[str, str]:
        """The tracker's ids of runs of a sweep by their keys; without those that have none."""
        trial, cell, own = schema.trial, schema.cell, schema.sweep
        of_trials = sa.select(trial.c.uid, trial.c.mlflow_run).where(trial.c.sweep_id == sweep)
        found: dict[str, str] = {}
        with self._database.reading() as connection:
            head = connection.execute(sa.select(own.c.uid, own.c.mlflow_run).where(own.c.id == sweep)).one()
            for chunk in chunked([key for key in keys if "/" not in key], 500):
                rows = connection.execute(of_trials.where(trial.c.uid.in_(chunk)))
                found |= {row.uid: row.mlflow_run for row in rows if row.mlflow_run is not None}
            cells = connection.execute(sa.select(cell.c.cell, cell.c.mlflow_run).where(cell.c.sweep_id == sweep))
            found |= {f"{head.uid}/cell/{row.cell}": row.mlflow_run for row in cells if row.mlflow_run is not None}
        return found | ({f"{head.uid}/summary": head.mlflow_run} if head.mlflow_run is not None else {})

    def run(self, kind: RunKind, sweep: int, entity: int) -> str | None:
        """The tracker's id of the run of a trial (by id), a cell (by index) or a sweep's summary, once it is made."""
        if kind == "trial":
            query: sa.Select[Any] = sa.select(schema.trial.c.mlflow_run).where(schema.trial.c.id == entity)
        elif kind == "cell":
            its = (schema.cell.c.sweep_id == sweep, schema.cell.c.cell == entity)
            query = sa.select(schema.cell.c.mlflow_run).where(*its)
        else:
            query = sa.select(schema.sweep.c.mlflow_run).where(schema.sweep.c.id == sweep)
        with self._database.reading() as connection:
            return connection.execute(query).scalar_one_or_none()

    def of_cells(self, sweep: int) -> dict[int, str]:
        """The tracker's ids of a sweep's cell runs by the cell's index, in one query."""
        table = schema.cell
        query = sa.select(table.c.cell, table.c.mlflow_run).where(table.c.sweep_id == sweep)
        with self._database.reading() as connection:
            return {row.cell: row.mlflow_run for row in connection.execute(query) if row.mlflow_run is not None}
