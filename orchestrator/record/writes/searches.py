"""Adaptive searches: the candidates that are suggested, and what the search was told of them."""

import uuid
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import FencedAccess
from orchestrator.record.reads.searches import Suggested
from orchestrator.record.schema import candidate, cell, trial
from orchestrator.record.writes.dirty_flags import mark_sweep
from orchestrator.record.writes.trial_rows import TrialRows
from orchestrator.views.runs import Candidate, PlannedTrial


class SearchWriter(FencedAccess):
    """Writes searches."""

    def add_candidate(
        self,
        sweep: int,
        one: Candidate,
        values: Mapping[str, str | float],
        asked: int,
        trials: Sequence[PlannedTrial],
    ) -> None:
        """Write a suggested candidate with its trials; a training that is known is not run again."""
        with self._database.writing() as connection:
            connection.execute(
                sa.insert(candidate).values(
                    sweep_id=sweep, cell=one.cell, candidate=one.index, labels=dict(one.labels),
                    suggested=dict(values), asked=asked,
                )
            )  # fmt: skip
            self._append(connection, sweep, trials)

    def add_trials(self, sweep: int, trials: Sequence[PlannedTrial]) -> None:
        """Write further trials of candidates that exist."""
        with self._database.writing() as connection:
            self._append(connection, sweep, trials)

    def _append(self, connection: sa.Connection, sweep: int, trials: Sequence[PlannedTrial]) -> None:
        table = schema.sweep
        row = connection.execute(sa.select(table.c.uid, table.c.spec).where(table.c.id == sweep)).one()
        position = sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1).where(trial.c.sweep_id == sweep)
        rows = TrialRows(
            connection, sweep, uuid.UUID(row.uid), bool(row.spec.get("fresh")),
            first=connection.execute(position).scalar_one(),
        )  # fmt: skip
        rows.write(trials)
        mark_sweep(connection, sweep)

    def tell(self, sweep: int, cell: int, one: Suggested, told: int) -> None:
        """Note that the search was told what became of a candidate, as its event number `told`."""
        which = (candidate.c.sweep_id == sweep, candidate.c.cell == cell, candidate.c.candidate == one.index)
        values = {"told": told, "score": one.score, "pruned": one.pruned}
        with self._database.writing() as connection:
            connection.execute(sa.update(candidate).where(*which, candidate.c.told.is_(None)).values(**values))

    def close_cell(self, sweep: int, index: int) -> None:
        """Note that no candidate follows in a cell."""
        which = (cell.c.sweep_id == sweep, cell.c.cell == index)
        with self._database.writing() as connection:
            connection.execute(sa.update(cell).where(*which).values(open=False))
