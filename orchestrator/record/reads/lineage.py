"""Every trial of a sweep with what stands behind its numbers, read a few at a time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.existence import require_sweep
from orchestrator.record.json_floats import number
from orchestrator.record.schema import training, trial
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.outcomes import TrialOutcome
from orchestrator.views.provenance import TrialProvenance
from workers.catalog import stamp

_AT_ONCE: Final = 500


class Lineage(Access):
    """Reads recipes, results and provenance."""

    def evidence(self, sweep: int, cell: int | None = None) -> Iterator[TrialProvenance]:
        """A sweep's trials, or those of one cell, in the order of the plan; raises NotFoundError.

        A sweep may have a hundred thousand with kilobytes each: no more than a few hundred are held at once.
        """
        after = -1
        while rows := self._rows(sweep, cell, after):
            for row in rows:
                yield _evidence(row)
            after = rows[-1].position

    def _rows(self, sweep: int, cell: int | None, after: int) -> Sequence[Any]:
        query = (
            sa.select(
                trial.c.id, trial.c.uid, trial.c.cell, trial.c.candidate, trial.c.repeat, trial.c.repeat_labels,
                trial.c.state, trial.c.diverged, trial.c.reused, trial.c.reason, trial.c.position, trial.c.mlflow_run,
                training.c.uid.label("training"), training.c.fingerprint, training.c.recipe, training.c.metrics,
                training.c.best_step, training.c.seconds, training.c.score, training.c.error,
                training.c.result["provenance"].label("provenance"),
            )
            .join(training, training.c.id == trial.c.training_id)
            .where(trial.c.sweep_id == sweep, trial.c.position > after)
            .order_by(trial.c.position)
            .limit(_AT_ONCE)
        )  # fmt: skip
        if cell is not None:
            query = query.where(trial.c.cell == cell)
        with self._database.reading() as connection:
            require_sweep(connection, sweep)
            return connection.execute(query).all()


def _evidence(row: Any) -> TrialProvenance:
    state = TrialState(row.state)
    finished = state is TrialState.FINISHED
    outcome = TrialOutcome(
        trial=row.id, cell=row.cell, candidate=row.candidate, repeat=row.repeat, repeat_labels=row.repeat_labels,
        state=state, diverged=row.diverged, reused=row.reused, values=_values(row.metrics) if finished else {},
        stamp=stamp(row.recipe) if finished else "",
    )  # fmt: skip
    return TrialProvenance(
        outcome=outcome, uid=row.uid, training=row.training, fingerprint=row.fingerprint, recipe=row.recipe,
        provenance=(row.provenance or {}) if finished else {}, best_step=row.best_step if finished else None,
        seconds=row.seconds if finished else None, score=row.score if finished else None,
        error=row.error if state is TrialState.FAILED else None, run=row.mlflow_run,
        reason=row.reason if state is TrialState.PRUNED else None,
    )  # fmt: skip


def _values(metrics: Mapping[str, Any] | None) -> dict[str, float]:
    return {key: number(value) for key, value in (metrics or {}).items()}
