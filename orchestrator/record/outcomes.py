"""What a sweep's tables are computed from, and which trainings are known."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.errors import NotFoundError
from orchestrator.lifecycle import TrialState
from orchestrator.record import schema
from orchestrator.record.database import Access, chunked
from orchestrator.record.numbers import number
from orchestrator.record.schema import candidate, cell, training, trial
from orchestrator.trial import Candidate, Cell, SweepOutcomes, TrialOutcome

_MOST_NAMED: Final = 1_000
"""Cells that a query names; beyond it, reading every cell is no slower."""


class Outcomes(Access):
    """Reads what trainings gave."""

    def outcomes(self, sweep: int, only: Collection[int] | None = None) -> SweepOutcomes:
        """Every trial of a sweep with its result's metrics, a metric that is not a number as NaN; raises NotFoundError.

        With `only`, at least the trials of these cells: settling one need not read a hundred thousand.
        """
        table = schema.sweep
        with self._database.reading() as connection:
            head = connection.execute(sa.select(table.c.name, table.c.state, table.c.spec).where(table.c.id == sweep))
            row = head.one_or_none()
            if row is None:
                raise NotFoundError(f"no sweep {sweep}")
            cells = sa.select(cell.c.cell, cell.c.labels).where(cell.c.sweep_id == sweep).order_by(cell.c.cell)
            found = sa.select(candidate).where(candidate.c.sweep_id == sweep)
            found = found.order_by(candidate.c.cell, candidate.c.candidate)
            return SweepOutcomes(
                sweep=sweep, name=row.name, state=row.state, spec=row.spec,
                cells=tuple(Cell(one.cell, one.labels) for one in connection.execute(cells)),
                candidates=tuple(Candidate(c.cell, c.candidate, c.labels) for c in connection.execute(found)),
                trials=tuple(_trials(connection, sweep, only)),
            )  # fmt: skip

    def known(self, fingerprints: Iterable[str]) -> set[str]:
        """Those of the fingerprints whose training has finished."""
        found: set[str] = set()
        finished = training.c.state == TrialState.FINISHED
        with self._database.reading() as connection:
            for chunk in chunked(dict.fromkeys(fingerprints), 1_000):
                query = sa.select(training.c.fingerprint).where(training.c.fingerprint.in_(chunk), finished)
                found.update(connection.execute(query).scalars())
        return found


def _trials(connection: sa.Connection, sweep: int, only: Collection[int] | None) -> Iterable[TrialOutcome]:
    query = (
        sa.select(
            trial.c.id, trial.c.cell, trial.c.candidate, trial.c.repeat, trial.c.repeat_labels, trial.c.state,
            trial.c.diverged, trial.c.reused,
            sa.case((trial.c.state == TrialState.FINISHED, training.c.metrics)).label("metrics"),
        )
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id == sweep)
        .order_by(trial.c.position)
    )  # fmt: skip
    if only is not None and len(only) <= _MOST_NAMED:
        query = query.where(trial.c.cell.in_(only))
    for row in connection.execute(query):
        yield TrialOutcome(
            trial=row.id, cell=row.cell, candidate=row.candidate, repeat=row.repeat, repeat_labels=row.repeat_labels,
            state=TrialState(row.state), diverged=row.diverged, reused=row.reused, values=_values(row.metrics),
        )  # fmt: skip


def _values(metrics: Mapping[str, Any] | None) -> Mapping[str, float]:
    return {key: number(value) for key, value in (metrics or {}).items()}
