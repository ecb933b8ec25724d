"""Replans trainings that an older release planned: their trials move to trainings with new fingerprints."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from orchestrator.record.changes import trials_changed
from orchestrator.record.columns import shortened
from orchestrator.record.database import FencedAccess
from orchestrator.record.schema import attempt, request, sweep, training, trial
from orchestrator.record.trainings import Known, Outdated, Shared, needed_as_evaluation, project_of_training
from orchestrator.record.trial_rows import forget, pointing_to, take_results, write_needs
from orchestrator.views.runs import PlannedTrial
from orchestrator.views.states import TRIAL_ACTIVE, TrialState

_RENEW: Final = "renew"
"""The kind of the request that records a renewal, which nobody requested."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """The new plan of a training that an older release planned, or the reason why it cannot be planned."""

    old: Outdated
    plan: PlannedTrial | None
    error: str = ""


@dataclass(slots=True)
class Tally:
    """The numbers of a sweep's trials that a renewal moved, failed or kept."""

    moved: int = 0
    begun: int = 0  # moved trials whose training had begun
    failed: int = 0  # trials that cannot be planned with today's versions
    unevaluated: int = 0  # finished trials whose evaluation was of older versions
    kept: int = 0  # finished trials with numbers of older versions
    stamps: set[str] = field(default_factory=set)


class TrainingWriter(FencedAccess):
    """Replaces waiting trainings that an older release planned, so that this release does not train them."""

    def renew(
        self, renewed: Sequence[Renewed], stamps: Collection[str], describe: Callable[[Tally], str]
    ) -> dict[int, str]:
        """Move the trials of outdated trainings to new ones; returns a description by sweep.

        `describe` makes the description, which is recorded as a request of the sweep. Idempotent, in one transaction.
        Running trainings are stopped by their engine, since no trial needs them.
        """
        with self._database.writing() as connection:
            tallies: defaultdict[int, Tally] = defaultdict(Tally)
            groups: defaultdict[tuple[bool, int], list[Renewed]] = defaultdict(list)
            for renewal in renewed:
                if renewal.plan is not None:
                    whose = project_of_training(connection, renewal.old.id)
                    groups[_fresh(connection, renewal.old.id), whose].append(renewal)
            for (fresh, whose), some in sorted(groups.items(), key=lambda group: group[0]):
                shared = Shared(connection, fresh, whose)
                trainings = shared.find([renewal.plan for renewal in some if renewal.plan])
                for renewal in some:
                    if renewal.plan is not None:
                        _move(connection, renewal, trainings[renewal.plan.fingerprint], tallies)
            for renewal in renewed:
                if renewal.plan is None:
                    _fail(connection, renewal, tallies)
            for sweep_id, tally in tallies.items():
                tally.kept = _kept(connection, sweep_id, stamps)
            descriptions = {sweep_id: describe(tally) for sweep_id, tally in tallies.items()}
            now = datetime.now(UTC)
            rows = [
                {"kind": _RENEW, "sweep_id": sweep_id, "created": now, "applied": now, "outcome": shortened(text)}
                for sweep_id, text in descriptions.items()
            ]
            if rows:
                connection.execute(sa.insert(request), rows)
            return descriptions


def _move(connection: sa.Connection, renewal: Renewed, heir: Known, tallies: defaultdict[int, Tally]) -> None:
    now = datetime.now(UTC)
    values = pointing_to(heir, now) | {"mlflow_run": None, "mlflow_point": 0}
    values["mlflow_left"] = sa.func.coalesce(trial.c.mlflow_run, trial.c.mlflow_left)
    if heir.state is not TrialState.WAITING:
        values["started"] = sa.func.coalesce(trial.c.started, now)
    moved = connection.execute(
        sa.update(trial)
        .where(trial.c.training_id == renewal.old.id, trial.c.state.in_(TRIAL_ACTIVE))
        .values(values)
        .returning(trial.c.sweep_id, trial.c.id)
    ).all()
    if not moved:
        return  # they moved before
    trials_changed(connection, [(row.sweep_id, row.id) for row in moved])
    take_results(connection, [row.id for row in moved])
    begun = connection.execute(sa.select(attempt.c.id).where(attempt.c.training_id == renewal.old.id)).first()
    for sweep_id, count in Counter(row.sweep_id for row in moved).items():
        tally = tallies[sweep_id]
        tally.moved += count
        tally.begun += count if begun else 0
        tally.stamps.add(renewal.old.stamp)
        if renewal.plan is not None and renewal.plan.need is not None:
            write_needs(connection, [renewal.plan.need], sweep_id)
    _leave(connection, renewal.old.id, heir.id)


def _fail(connection: sa.Connection, renewal: Renewed, tallies: defaultdict[int, Tally]) -> None:
    now, old = datetime.now(UTC), renewal.old
    rows = connection.execute(
        sa.update(trial)
        .where(trial.c.training_id == old.id, trial.c.state.in_(TRIAL_ACTIVE))
        .values(state=TrialState.FAILED, ended=now)
        .returning(trial.c.sweep_id, trial.c.id)
    ).all()
    mine = sa.update(training).where(training.c.id == old.id)
    connection.execute(mine.values(error=shortened(renewal.error)))  # a running training is stopped and ends later
    waits = training.c.state.in_(TRIAL_ACTIVE) if old.evaluated else training.c.state == TrialState.WAITING
    connection.execute(mine.where(waits).values(state=TrialState.FAILED, ended=now))
    if old.evaluated:
        query = sa.select(trial.c.sweep_id, trial.c.id).where(trial.c.evaluation_id == old.id)
        rows = connection.execute(query).all()
    trials_changed(connection, [(row.sweep_id, row.id) for row in rows])
    for row in rows:
        tally = tallies[row.sweep_id]
        tally.unevaluated += old.evaluated
        tally.failed += not old.evaluated
        tally.stamps.add(old.stamp)


def _fresh(connection: sa.Connection, training_id: int) -> bool:
    """Whether a fresh sweep, which reuses no training, wants the training."""
    query = (
        sa.select(sweep.c.spec["fresh"].as_boolean())
        .join(trial, trial.c.sweep_id == sweep.c.id)
        .where(trial.c.training_id == training_id, trial.c.state.in_(TRIAL_ACTIVE))
        .distinct()
    )
    return any(connection.scalars(query))


def _leave(connection: sa.Connection, old: int, heir: int) -> None:
    """End a training that is not needed, or delete it if it never began and no trial shows it."""
    mine = sa.update(training).where(training.c.id == old)
    connection.execute(mine.values(heir=heir))
    # An evaluation of finished trials is handled next, and fails with the reason.
    ending = mine.where(training.c.state == TrialState.WAITING, ~needed_as_evaluation(old))
    connection.execute(ending.values(state=TrialState.CANCELLED, ended=datetime.now(UTC)))
    forget(connection, {old: heir})


def _kept(connection: sa.Connection, sweep_id: int, stamps: Collection[str]) -> int:
    query = (
        sa.select(sa.func.count())
        .select_from(trial.join(training, training.c.id == trial.c.training_id))
        .where(trial.c.sweep_id == sweep_id, trial.c.state == TrialState.FINISHED)
        .where(training.c.stamp.in_(list(stamps)))
    )
    return int(connection.execute(query).scalar_one())
