"""Who wants a training: trials that wait for it or run with it, and finished ones that are to take its metrics."""

from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from orchestrator.record.schema import training, trial
from orchestrator.views.states import TRIAL_ACTIVE, TrialState

_WAITING, _MOVING, _NEW = trial.alias(), trial.alias(), training.alias()
"""Made once: an alias has a column for each of the table, and every report of a training asks who wants it."""
EVALUATION_FAILED: Final = (TrialState.FAILED, TrialState.CANCELLED)
"""Of a training that finished trials are to move to: nothing comes of it until somebody asks once more."""


def wanted(training_id: sa.ColumnElement[int] | int) -> sa.ColumnElement[bool]:
    """Whether anybody wants a training."""
    return sa.or_(wanted_by_active(training_id), wanted_as_evaluation(training_id))


def wanted_by_active(training_id: sa.ColumnElement[int] | int) -> sa.ColumnElement[bool]:
    """Whether a trial waits for a training or runs with it."""
    return sa.exists().where(_WAITING.c.training_id == training_id, _WAITING.c.state.in_(TRIAL_ACTIVE))


def wanted_as_evaluation(training_id: sa.ColumnElement[int] | int) -> sa.ColumnElement[bool]:
    """Whether a trial is to move to a training once that has finished."""
    return sa.exists().where(_MOVING.c.evaluation_id == training_id)


def evaluation_left() -> sa.ColumnElement[bool]:
    """Of a trial: whether it has finished and a further metric of it is still to be evaluated."""
    return _evaluation_is(TRIAL_ACTIVE)


def evaluation_failed() -> sa.ColumnElement[bool]:
    """Of a trial: whether the evaluation of a further metric of it failed, or was cancelled with another sweep's."""
    return _evaluation_is(EVALUATION_FAILED)


def _evaluation_is(states: Collection[TrialState]) -> sa.ColumnElement[bool]:
    its = sa.exists().where(_NEW.c.id == trial.c.evaluation_id, _NEW.c.state.in_(states))
    return sa.and_(trial.c.evaluation_id.is_not(None), trial.c.state == TrialState.FINISHED, its)
