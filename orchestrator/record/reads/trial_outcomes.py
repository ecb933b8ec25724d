"""Rows of trials and their trainings as what tables are computed from."""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.json_floats import number
from orchestrator.record.schema import training, trial
from orchestrator.views.deadline import timely
from orchestrator.views.lifecycle import TRIAL_ACTIVE, TrialState
from orchestrator.views.outcomes import TrialOutcome

_NEW: Final = training.alias()  # to which a trial moves once it has further metrics


def _whole() -> sa.Select[Any]:
    return (
        sa.select(
            trial.c.id, trial.c.cell, trial.c.candidate, trial.c.repeat, trial.c.repeat_labels, trial.c.state,
            trial.c.diverged, trial.c.reused, trial.c.position, trial.c.seconds,
            sa.case((trial.c.state == TrialState.FINISHED, training.c.metrics)).label("metrics"),
            sa.case((trial.c.state == TrialState.FINISHED, training.c.stamp), else_="").label("stamp"),
            sa.case((trial.c.state == TrialState.FINISHED, training.c.origin), else_="").label("origin"),
            # of a trial that no evaluation waits for SQLite would write the text `null`, for each to be decoded
            sa.case((_NEW.c.id.is_not(None), _NEW.c.recipe["metrics"])).label("coming"),
        )
        .join(training, training.c.id == trial.c.training_id)
        .outerjoin(_NEW, sa.and_(_NEW.c.id == trial.c.evaluation_id, _NEW.c.state.in_(TRIAL_ACTIVE)))
        .where(trial.c.sweep_id == sa.bindparam("sweep"))
    )  # fmt: skip


_WHOLE: Final = _whole()
_OF_CELLS: Final = _WHOLE.where(trial.c.cell.in_(sa.bindparam("cells", expanding=True)))


def of_sweep(connection: sa.Connection, sweep: int, only: Collection[int] | None = None) -> Iterator[TrialOutcome]:
    """The trials of a sweep in the order of the plan; with `only`, of these cells alone."""
    if only is None:
        return _read(connection.execute(_WHOLE.order_by(trial.c.position), {"sweep": sweep}))
    # sorted here: SQLite would walk through the whole sweep to have them in order
    rows = connection.execute(_OF_CELLS, {"sweep": sweep, "cells": [*only]})
    return _read(sorted(rows, key=lambda row: row.position))


def _read(rows: Iterable[sa.Row[Any]]) -> Iterator[TrialOutcome]:
    for row in timely(rows):
        yield TrialOutcome(
            trial=row.id, cell=row.cell, candidate=row.candidate, repeat=row.repeat, repeat_labels=row.repeat_labels,
            state=TrialState(row.state), diverged=row.diverged, reused=row.reused, values=values_of(row.metrics),
            stamp=sys.intern(row.stamp), origin=sys.intern(row.origin),
            coming=tuple(row.coming or ()), position=row.position, seconds=row.seconds,
        )  # fmt: skip


def values_of(metrics: Mapping[str, Any] | None) -> Mapping[str, float]:
    """A result's metrics, what is not a number as NaN."""
    # Each row's JSON brings keys of its own; of a hundred thousand rows they would be half of the memory.
    return {sys.intern(key): number(value) for key, value in (metrics or {}).items()}
