"""How many trials of sweeps are in each state, came of results that were known, or are still to be evaluated."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from orchestrator.record.reads.wanting import evaluation_failed, evaluation_left
from orchestrator.record.schema import trial
from orchestrator.views.sweeps import Counts

# Made once: pages ask them every few seconds.
_THEIRS: Final = trial.c.sweep_id.in_(sa.bindparam("sweeps", expanding=True))
_GROUPED: Final = (trial.c.sweep_id, trial.c.state, trial.c.reused, trial.c.diverged)
_COUNTS: Final = sa.select(*_GROUPED, sa.func.count().label("n")).where(_THEIRS).group_by(*_GROUPED)
_EACH: Final = sa.select(trial.c.sweep_id, sa.func.count().label("n")).where(_THEIRS).group_by(trial.c.sweep_id)
_EVALUATED: Final = {
    "evaluations": _EACH.where(evaluation_left()),
    "evaluations_failed": _EACH.where(evaluation_failed()),
}


def counts_of(connection: sa.Connection, sweeps: Sequence[int]) -> dict[int, Counts]:
    """Those of each of the sweeps."""
    by_sweep = {number: Counts() for number in sweeps}
    for row in connection.execute(_COUNTS, {"sweeps": sweeps}):
        counts = by_sweep[row.sweep_id]
        setattr(counts, row.state, getattr(counts, row.state) + row.n)
        counts.reused += row.n if row.reused else 0
        counts.diverged += row.n if row.diverged else 0
    for name, query in _EVALUATED.items():
        for row in connection.execute(query, {"sweeps": sweeps}):
            setattr(by_sweep[row.sweep_id], name, row.n)
    return by_sweep
