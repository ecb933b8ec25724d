"""The curves of trainings: the result's, or what was reported so far."""

from collections.abc import Collection, Iterable

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access, chunked
from orchestrator.record.reads.sources import with_source
from orchestrator.record.reads.trials import training_of
from orchestrator.record.schema import attempt, metric, training
from orchestrator.views.trials import Curve

Points = list[tuple[int, float | None]]
"""(step, value) of a curve; none where the value is not a number."""


class CurveReader(Access):
    """Reads curves."""

    def of(self, trial: int) -> list[Curve]:
        """The curves of a trial's training: the result's, or what was reported so far; raises NotFoundError."""
        with self._database.reading() as connection:
            merged = _curves(connection, training_of(connection, trial))
        return [Curve(key=key, points=points) for key, points in sorted(merged.items())]

    def of_trials(self, trials: Iterable[int], keys: Collection[str]) -> dict[int, dict[str, Points]]:
        """Those curves of several trials that have one of the keys, by trial; a trial that does not exist has none."""
        table = schema.trial
        found: dict[int, dict[str, Points]] = {}
        with self._database.reading() as connection:
            for chunk in chunked(dict.fromkeys(trials), 500):
                query = sa.select(table.c.id, table.c.training_id).where(table.c.id.in_(chunk))
                for row in connection.execute(query).all():
                    # One training at a time: with everything that its result holds it may be a mebibyte.
                    curves = _curves(connection, row.training_id, keys)
                    found[row.id] = {key: points for key, points in curves.items() if key in keys}
        return found


def _curves(connection: sa.Connection, training_id: int, keys: Collection[str] | None = None) -> dict[str, Points]:
    """All curves of a training, or at least those with one of the keys."""
    result = connection.execute(sa.select(training.c.result).where(training.c.id == training_id)).scalar()
    curves = (result or {}).get("curves") or {}
    found = {key: [(int(step), value) for step, value in points] for key, points in curves.items()}
    if keys is not None and found.keys() >= set(keys):
        return found
    # A key that only the result or only the reports have is shown from where it is.
    return _reported(connection, training_id, keys) | found


def _reported(connection: sa.Connection, training_id: int, keys: Collection[str] | None) -> dict[str, Points]:
    """Points by key; where two attempts passed the same step, the later one's."""
    query = (
        sa.select(metric.c.key, metric.c.step, metric.c.value)
        .join(attempt, attempt.c.id == metric.c.attempt_id)
        .where(attempt.c.training_id.in_(with_source(connection, training_id)))
        .order_by(attempt.c.training_id, attempt.c.number)
    )
    if keys is not None:
        query = query.where(metric.c.key.in_(keys))
    points: dict[str, dict[int, float | None]] = {}
    for row in connection.execute(query):
        points.setdefault(row.key, {})[row.step] = row.value
    return {key: sorted(by_step.items()) for key, by_step in points.items()}
