"""How a trial is joined with its candidate, and with what points to it."""

import sqlalchemy as sa

from orchestrator.record.schema import candidate, trial


def of_candidate() -> sa.ColumnElement[bool]:
    """The join of a trial with its candidate."""
    return sa.and_(
        candidate.c.sweep_id == trial.c.sweep_id,
        candidate.c.cell == trial.c.cell,
        candidate.c.candidate == trial.c.candidate,
    )


def first_of_either(*either: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    """The id of the first trial for which one of the conditions holds, each of which has an index.

    Of `a OR b ORDER BY id LIMIT 1` SQLite goes through all trials from the first on, a year of ended ones.
    """
    found = sa.union_all(*(sa.select(trial.c.id).where(one) for one in either)).subquery()
    return sa.select(sa.func.min(found.c.id)).scalar_subquery()
