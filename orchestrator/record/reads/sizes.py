"""What the database holds and how much of the storage belongs to whom."""

from collections.abc import Mapping
from pathlib import Path

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.schema import attempt, training, trial


class SizeReader(Access):
    """Reads sizes; those of the storage are the storage's to tell."""

    def database(self) -> int | None:
        """The bytes of the database; none where it does not tell."""
        engine = self._database.engine
        if self._database.sqlite:
            path = Path(engine.url.database or "")
            files = [path, path.with_name(f"{path.name}-wal")]
            return sum(file.stat().st_size for file in files if file.is_file())
        query = sa.select(sa.func.pg_database_size(sa.func.current_database()))
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def sweeps(self) -> dict[int, str]:
        """The names of all sweeps."""
        query = sa.select(schema.sweep.c.id, schema.sweep.c.name)
        with self._database.reading() as connection:
            return {row.id: row.name for row in connection.execute(query)}

    def folders(self, sweep: int | None = None) -> Mapping[str, set[int]]:
        """By the folder of each attempt, the sweeps whose trials its training stands behind."""
        source = training.alias("source")
        query = (
            sa.select(trial.c.sweep_id, sa.func.coalesce(source.c.uid, training.c.uid).label("uid"), attempt.c.number)
            .select_from(trial)
            .join(training, training.c.id == trial.c.training_id)
            .outerjoin(source, source.c.id == training.c.source)
            .join(attempt, attempt.c.training_id == sa.func.coalesce(source.c.id, training.c.id))
        )
        if sweep is not None:
            query = query.where(trial.c.sweep_id == sweep)
        folders: dict[str, set[int]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(query):
                folders.setdefault(f"{row.uid}/{row.number}", set()).add(row.sweep_id)
        return folders

    def logs(self, sweep: int | None = None) -> dict[int, int]:
        """By sweep, the bytes of its trainings' logs; what several share counts for each. With `sweep`, of it alone."""
        query = (
            sa.select(trial.c.sweep_id, sa.func.sum(attempt.c.log_bytes).label("size"))
            .join(attempt, attempt.c.training_id == trial.c.training_id)
            .group_by(trial.c.sweep_id)
        )
        if sweep is not None:
            query = query.where(trial.c.sweep_id == sweep)
        with self._database.reading() as connection:
            return {row.sweep_id: int(row.size or 0) for row in connection.execute(query)}
