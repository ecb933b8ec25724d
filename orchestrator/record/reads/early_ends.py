"""How much of their steps the trainings of a sweep with early stopping come to, as far as can be told so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from orchestrator.record.schema import training, trial
from orchestrator.views.lifecycle import TrialState

PRIOR_SHARE: Final = 0.5
PRIOR_SPREAD: Final = 0.35
"""What is thought of a candidate before any was judged: something between the first look and the end. It counts as one
candidate beside those that were."""


@dataclass(frozen=True, slots=True)
class ExpectedShare:
    """The share that trainings come to on the average, and its relative deviation."""

    mean: float
    doubt: float


def expected_share(shares: Sequence[float], waiting: int) -> ExpectedShare:
    """By the shares that judged candidates came to, for so many candidates that wait."""
    number = len(shares) + 1
    mean = (math.fsum(shares) + PRIOR_SHARE) / number
    off = math.fsum((one - mean) ** 2 for one in shares) + (PRIOR_SHARE - mean) ** 2 + PRIOR_SPREAD**2
    # What is not known of the mean, and what those that wait differ from it by chance.
    return ExpectedShare(mean, math.sqrt(off / number * (1 / number + 1 / max(1, waiting))) / mean)


def early_ends(connection: sa.Connection, sweep: int, unborn: int) -> ExpectedShare:
    """That of a sweep of which so many trials have no row yet.

    The first candidate of a cell is left out: nothing was there to be worse than, so that it came to its end, and it
    says nothing of those behind it.
    """
    ended = trial.c.state.in_((TrialState.FINISHED, TrialState.PRUNED))
    trained = sa.case((training.c.step < training.c.total_steps, training.c.step), else_=training.c.total_steps)
    columns = (
        trial.c.cell,
        trial.c.candidate,
        sa.func.count().label("n"),
        sa.func.sum(sa.case((ended, 1), else_=0)).label("ended"),
        sa.func.sum(sa.case((trial.c.state == TrialState.WAITING, 1), else_=0)).label("waiting"),
        sa.func.sum(sa.case((ended, trained), else_=0)).label("trained"),
        sa.func.sum(sa.case((ended, training.c.total_steps), else_=0)).label("planned"),
    )
    query = (
        sa.select(*columns)
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id == sweep, ~trial.c.reused)
        .group_by(trial.c.cell, trial.c.candidate)
        .order_by(trial.c.cell, sa.func.min(trial.c.position))
    )
    shares, waits, last, repeats = list[float](), 0, -1, 1
    for row in connection.execute(query):
        repeats = max(repeats, row.n)
        waits += row.waiting > 0
        if row.ended and row.planned and row.cell == last:
            shares.append(row.trained / row.planned)
        last = row.cell
    return expected_share(shares, waits + math.ceil(unborn / repeats))
