"""Trainings of older versions that are planned anew: their trials move to the training of today's fingerprint."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from orchestrator.record.changes import mark_trials, note_trials
from orchestrator.record.columns import MAX_MESSAGE, storable
from orchestrator.record.database import FencedAccess
from orchestrator.record.schema import attempt, request, sweep, training, trial
from orchestrator.record.trainings import Known, Outdated, Shared, project_of_training, wanted_as_evaluation
from orchestrator.record.trial_rows import take_results, write_needs
from orchestrator.views.runs import PlannedTrial
from orchestrator.views.states import TRIAL_ACTIVE, TrialState

RENEW: Final = "renew"
"""The kind under which a sweep's requests tell of it; nobody asked for it."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """What takes the place of an outdated training: a plan of today, or the reason why there is none."""

    old: Outdated
    plan: PlannedTrial | None
    error: str = ""


@dataclass(slots=True)
class Tally:
    """What became of the trials of one sweep."""

    moved: int = 0
    begun: int = 0  # of these, trials of trainings that had begun
    failed: int = 0  # trials that cannot be planned under today's versions
    unevaluated: int = 0  # finished ones that were to have further metrics, under older versions
    kept: int = 0  # finished ones, whose numbers are of older versions
    stamps: set[str] = field(default_factory=set)


Words = Callable[[Tally], str]


class TrainingWriter(FencedAccess):
    """Keeps what an older release planned from being trained by this one under its old name."""

    def plan_anew(self, renewed: Sequence[Renewed], stamps: Collection[str], say: Words) -> dict[int, str]:
        """Move the trials of outdated trainings, and note it for each sweep as `say` has it; gives that by sweep.

        All in one transaction: done a second time it finds nothing more to do. What runs is stopped by its engine,
        since no trial wants it any more.
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
            said = {sweep_id: say(tally) for sweep_id, tally in tallies.items()}
            _note(connection, said)
            return said


def _move(connection: sa.Connection, one: Renewed, heir: Known, tallies: defaultdict[int, Tally]) -> None:
    now = datetime.now(UTC)
    waits, done = heir.state is TrialState.WAITING, heir.state is TrialState.FINISHED
    left = sa.func.coalesce(trial.c.mlflow_run, trial.c.mlflow_left)
    moved = connection.execute(
        sa.update(trial)
        .where(trial.c.training_id == one.old.id, trial.c.state.in_(TRIAL_ACTIVE))
        .values(
            training_id=heir.id, state=heir.state, reused=done, diverged=done and heir.diverged,
            started=None if waits else sa.func.coalesce(trial.c.started, now), ended=now if done else None,
            mlflow_left=left, mlflow_run=None, mlflow_point=0,
        )
        .returning(trial.c.sweep_id, trial.c.id)
    ).all()  # fmt: skip
    if not moved:
        return  # they moved before
    mark_trials(connection, [(row.sweep_id, row.id) for row in moved])
    note_trials(connection, [(row.sweep_id, row.id) for row in moved])
    take_results(connection, [row.id for row in moved])
    begun = connection.execute(sa.select(attempt.c.id).where(attempt.c.training_id == one.old.id)).first()
    for sweep_id, count in Counter(row.sweep_id for row in moved).items():
        tally = tallies[sweep_id]
        tally.moved += count
        tally.begun += count if begun else 0
        tally.stamps.add(one.old.stamp)
        if one.plan is not None and one.plan.need is not None:
            write_needs(connection, [one.plan.need], sweep_id)
    _leave(connection, one.old.id, heir.id, begun is not None)


def _fail(connection: sa.Connection, one: Renewed, tallies: defaultdict[int, Tally]) -> None:
    now, message = datetime.now(UTC), storable(one.error)[:MAX_MESSAGE]
    rows = connection.execute(
        sa.update(trial)
        .where(trial.c.training_id == one.old.id, trial.c.state.in_(TRIAL_ACTIVE))
        .values(state=TrialState.FAILED, ended=now)
        .returning(trial.c.sweep_id, trial.c.id)
    ).all()
    mine = sa.update(training).where(training.c.id == one.old.id)
    connection.execute(mine.values(error=message))  # one that runs is stopped, and ends then
    waits = training.c.state.in_(TRIAL_ACTIVE) if one.old.evaluated else training.c.state == TrialState.WAITING
    connection.execute(mine.where(waits).values(state=TrialState.FAILED, ended=now))
    if one.old.evaluated:
        query = sa.select(trial.c.sweep_id, trial.c.id).where(trial.c.evaluation_id == one.old.id)
        rows = connection.execute(query).all()
    mark_trials(connection, [(row.sweep_id, row.id) for row in rows])
    note_trials(connection, [(row.sweep_id, row.id) for row in rows])
    for row in rows:
        tally = tallies[row.sweep_id]
        tally.unevaluated += one.old.evaluated
        tally.failed += not one.old.evaluated
        tally.stamps.add(one.old.stamp)


def _fresh(connection: sa.Connection, training_id: int) -> bool:
    """Whether a sweep wants the training that takes nothing which was known before."""
    query = (
        sa.select(sweep.c.spec["fresh"].as_boolean())
        .join(trial, trial.c.sweep_id == sweep.c.id)
        .where(trial.c.training_id == training_id, trial.c.state.in_(TRIAL_ACTIVE))
        .distinct()
    )
    return any(connection.execute(query).scalars())


def _leave(connection: sa.Connection, old: int, heir: int, begun: bool) -> None:
    """What nobody wants any more ends; a training that never began and that no trial shows goes altogether."""
    points = sa.or_(trial.c.training_id == old, trial.c.evaluation_id == old)
    shown = connection.execute(sa.select(trial.c.id).where(points).limit(1)).first()
    if not begun and shown is None:
        connection.execute(sa.update(training).where(training.c.heir == old).values(heir=heir))
        connection.execute(sa.delete(training).where(training.c.id == old))
        return
    mine = sa.update(training).where(training.c.id == old)
    connection.execute(mine.values(heir=heir))
    # One that finished trials are to move to as well is looked at next, and fails with the reason.
    ending = mine.where(training.c.state == TrialState.WAITING, ~wanted_as_evaluation(old))
    connection.execute(ending.values(state=TrialState.CANCELLED, ended=datetime.now(UTC)))


def _kept(connection: sa.Connection, sweep_id: int, stamps: Collection[str]) -> int:
    query = (
        sa.select(sa.func.count())
        .select_from(trial.join(training, training.c.id == trial.c.training_id))
        .where(trial.c.sweep_id == sweep_id, trial.c.state == TrialState.FINISHED)
        .where(training.c.stamp.in_(list(stamps)))
    )
    return int(connection.execute(query).scalar_one())


def _note(connection: sa.Connection, said: Mapping[int, str]) -> None:
    now = datetime.now(UTC)
    rows = [
        {"kind": RENEW, "sweep_id": sweep_id, "created": now, "applied": now, "outcome": storable(text)[:MAX_MESSAGE]}
        for sweep_id, text in said.items()
    ]
    if rows:
        connection.execute(sa.insert(request), rows)
