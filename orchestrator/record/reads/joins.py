"""How a trial is joined with its candidate."""

import sqlalchemy as sa

from orchestrator.record.schema import candidate, trial


def of_candidate() -> sa.ColumnElement[bool]:
    """The join of a trial with its candidate."""
    return sa.and_(
        candidate.c.sweep_id == trial.c.sweep_id,
        candidate.c.cell == trial.c.cell,
        candidate.c.candidate == trial.c.candidate,
    )
