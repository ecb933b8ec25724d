"""What went wrong in a sweep: trials that failed, diverged or could not be evaluated, and where their logs are."""

from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.reads.joins import of_candidate
from orchestrator.record.reads.wanting import evaluation_failed
from orchestrator.record.schema import candidate, cell, training, trial
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.sweeps import TrialProblem

MAX_PROBLEMS: Final = 100
"""Failed and diverged trials that a sweep's page names."""


def _told() -> sa.Select[Any]:
    """Troubled trials with what their problems are told from."""
    new = training.alias()
    return (
        sa.select(
            trial.c.id, trial.c.state, trial.c.repeat_labels, trial.c.diverged, training.c.error,
            cell.c.labels.label("cell_labels"), candidate.c.labels.label("candidate_labels"),
            trial.c.evaluation_id, new.c.error.label("evaluation_error"), new.c.recipe["metrics"].label("metrics"),
        )
        .join(training, training.c.id == trial.c.training_id)
        .outerjoin(new, new.c.id == trial.c.evaluation_id)
        .join(cell, sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell))
        .join(candidate, of_candidate())
        .where(trial.c.id.in_(sa.bindparam("trials", expanding=True)))
        .order_by(trial.c.position)
        .limit(MAX_PROBLEMS)
    )  # fmt: skip


def _troubled() -> tuple[sa.Select[tuple[int]], ...]:
    """The first trials that failed, and the first that diverged: each by an index, however many others there are."""
    columns = sa.select(trial.c.id).where(trial.c.sweep_id == sa.bindparam("sweep")).limit(MAX_PROBLEMS)
    failed = columns.where(trial.c.state == TrialState.FAILED).order_by(trial.c.position)
    finished, in_order = trial.c.state == TrialState.FINISHED, trial.c.id
    diverged = [columns.where(finished, trial.c.reused == reused, trial.c.diverged) for reused in (False, True)]
    return failed, *(query.order_by(in_order) for query in (columns.where(evaluation_failed()), *diverged))


# Made once: pages ask them every few seconds.
_TOLD: Final = _told()
_TROUBLED: Final = _troubled()


def problems(connection: sa.Connection, sweep: int) -> list[TrialProblem]:
    """Those of one sweep, in the order of the plan, and so many at most."""
    troubled = [id_ for query in _TROUBLED for id_ in connection.execute(query, {"sweep": sweep}).scalars()]
    return [
        TrialProblem(
            trial=row.id,
            labels={**row.cell_labels, **row.candidate_labels, **row.repeat_labels},
            state=row.state,
            message=_trouble(row),
            log=f"/v1/trials/{row.id}/logs",
        )
        for row in (connection.execute(_TOLD, {"trials": troubled}) if troubled else ())
    ]


def _trouble(row: Any) -> str:
    if row.state == TrialState.FINISHED and not row.diverged:
        why = row.evaluation_error or "it was cancelled"
        return f"keeps its numbers, but {', '.join(row.metrics or ())} could not be evaluated: {why}"
    return "diverged: the loss became NaN" if row.diverged else row.error or "failed"
