"""The tracker's ids of experiments and runs, from which links are made."""

from typing import Any, Literal

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access

RunKind = Literal["trial", "cell", "summary"]


class RunReader(Access):
    """Reads what the tracker calls things."""

    def experiment(self, sweep: int) -> str | None:
        """The tracker's id of a sweep's experiment, once it is made."""
        table = schema.sweep
        with self._database.reading() as connection:
            query = sa.select(table.c.mlflow_experiment).where(table.c.id == sweep)
            return connection.execute(query).scalar_one_or_none()

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
