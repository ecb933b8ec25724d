"""Evaluations: trials that keep their numbers until a training has these and further metrics, and then move to it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.database import chunked
from orchestrator.record.json_floats import finite_or_none
from orchestrator.record.reads.sources import closed_to, reachable
from orchestrator.record.reads.wanting import EVALUATION_FAILED, evaluation_failed, wanted, wanted_by_active
from orchestrator.record.schema import attempt, cell, training, trial
from orchestrator.record.writes.changes import note_trials
from orchestrator.record.writes.dirty_flags import mark_cell, mark_trials
from orchestrator.record.writes.sharing import Known, Shared, project_of, row_of
from orchestrator.record.writes.trial_places import take_results
from orchestrator.views.runs import MeasuredTrial, PlannedTrial, origin_of
from orchestrator.views.states import TRIAL_STEPS, TrialState, before
from workers.contract import Result

_CHUNK: Final = 500


def measure(connection: sa.Connection, sweep: int, fresh: bool, asked: Iterable[MeasuredTrial]) -> None:
    """Have trials of a sweep take further metrics.

    One that has not begun waits for the training that has them. Any other keeps what it has, and gets an evaluation,
    which is due once its own training has finished; one that diverged has nothing to evaluate.
    """
    project = project_of(connection, sweep)
    for chunk in chunked(asked, _CHUNK):
        rows = _rows(connection, [one.trial for one in chunk])
        unbegun = [one for one in chunk if _unbegun(rows[one.trial])]
        heirs = _move_unbegun(connection, unbegun, rows, Shared(connection, fresh, project))
        others = [one for one in chunk if not _unbegun(rows[one.trial]) and not rows[one.trial].diverged]
        _evaluate(connection, others, rows, fresh, closed_to(connection, project))
        end_unwanted(connection, [row.evaluation_id for row in rows.values() if row.evaluation_id is not None])
        _forget(connection, heirs)
        move(connection, [rows[one.trial].training_id for one in others])
        mark_trials(connection, [(sweep, one.trial) for one in chunk])
        note_trials(connection, [(sweep, one.trial) for one in chunk])


def _rows(connection: sa.Connection, trials: Sequence[int]) -> Mapping[int, sa.Row[Any]]:
    begun = sa.exists().where(attempt.c.training_id == training.c.id).label("begun")
    columns = (
        trial.c.id, trial.c.state, trial.c.training_id, trial.c.evaluation_id, trial.c.diverged, training.c.source,
        begun,
    )  # fmt: skip
    query = sa.select(*columns).join(training, training.c.id == trial.c.training_id).where(trial.c.id.in_(trials))
    return {row.id: row for row in connection.execute(query)}


def _unbegun(row: sa.Row[Any]) -> bool:
    return bool(row.state == TrialState.WAITING and not row.begun)


def _move_unbegun(
    connection: sa.Connection, asked: Sequence[MeasuredTrial], rows: Mapping[int, sa.Row[Any]], shared: Shared
) -> dict[int, int]:
    """Move trials to the trainings that have the metrics; gives these by the trainings that were left."""
    now = datetime.now(UTC)
    heirs: dict[int, int] = {}
    trainings = shared.find([measured.plan for measured in asked]) if asked else {}
    for measured in asked:
        new = trainings[measured.plan.fingerprint]
        heirs[rows[measured.trial].training_id] = new.id
        waits, done = new.state is TrialState.WAITING, new.state is TrialState.FINISHED
        connection.execute(
            sa.update(trial)
            .where(trial.c.id == measured.trial)
            .values(
                training_id=new.id, evaluation_id=None, state=new.state, reused=done, diverged=done and new.diverged,
                started=None if waits else now, ended=now if done else None,
            )
        )  # fmt: skip
    take_results(connection, [measured.trial for measured in asked])
    return heirs


def _evaluate(
    connection: sa.Connection,
    asked: Sequence[MeasuredTrial],
    rows: Mapping[int, sa.Row[Any]],
    fresh: bool,
    closed: Collection[int],
) -> None:
    """Find or make the trainings that trials are to move to, each of the kept weights of the trial's own."""
    known = _known(connection, [measured.plan for measured in asked], closed)
    made: dict[tuple[str, int], int] = {}
    for measured in asked:
        row = rows[measured.trial]
        source = row.source or row.training_id
        there = known.get(measured.plan.fingerprint)
        target = made.get((measured.plan.fingerprint, source))
        if target is None and there is not None and there.reachable and not fresh:
            _again(connection, there.id, source if row.state == TrialState.FINISHED else None)
            target = there.id
        if target is None:
            generation = there.generation + 1 if there else 1
            target = _made(connection, measured.plan, generation, source)
            known[measured.plan.fingerprint] = Known(target, TrialState.WAITING, False, generation)
        made[measured.plan.fingerprint, source] = target
        connection.execute(sa.update(trial).where(trial.c.id == measured.trial).values(evaluation_id=target))


def _known(connection: sa.Connection, planned: Sequence[PlannedTrial], closed: Collection[int]) -> dict[str, Known]:
    """By fingerprint the training to take, one that finished or else the latest, and the latest generation."""
    mine = sa.and_(sa.true(), *reachable(closed)).label("mine")
    columns = (training.c.fingerprint, training.c.id, training.c.state, training.c.diverged, training.c.generation)
    wanted_ones = training.c.fingerprint.in_([one.fingerprint for one in planned])
    by_fingerprint: dict[str, Known] = {}
    for row in connection.execute(sa.select(*columns, mine).where(wanted_ones).order_by(training.c.generation)):
        latest = Known(row.id, TrialState(row.state), row.diverged, row.generation, bool(row.mine))
        kept = by_fingerprint.get(row.fingerprint)
        if kept is None or not kept.reachable or (kept.state is not TrialState.FINISHED and latest.reachable):
            kept = latest
        by_fingerprint[row.fingerprint] = replace(kept, generation=row.generation)
    return by_fingerprint


def _made(connection: sa.Connection, one: PlannedTrial, generation: int, source: int) -> int:
    adding = sa.insert(training).values(row_of(one, generation, source)).returning(training.c.id)
    return int(connection.execute(adding).scalar_one())


def _again(connection: sa.Connection, training_id: int, source: int | None) -> None:
    """Have a training wait that ended without a result; it evaluates what its source, or else `source`, has kept."""
    ended = training.c.state.in_(before(TRIAL_STEPS, TrialState.WAITING) - {TrialState.RUNNING})
    again = sa.update(training).where(training.c.id == training_id, ended)
    source_of = sa.func.coalesce(training.c.source, source)
    connection.execute(again.values(state=TrialState.WAITING, error=None, trace=None, ended=None, source=source_of))


def end_unwanted(connection: sa.Connection, trainings: Sequence[int]) -> None:
    """End those that wait and that nobody wants any more."""
    ending = sa.update(training).where(training.c.state == TrialState.WAITING, ~wanted(training.c.id))
    for chunk in chunked(trainings, _CHUNK):
        mine = ending.where(training.c.id.in_(chunk))
        connection.execute(mine.values(state=TrialState.CANCELLED, ended=datetime.now(UTC)))


def _forget(connection: sa.Connection, heirs: Mapping[int, int]) -> None:
    """Remove those that never began and that no trial shows; what they had replaced is inherited."""
    other = training.alias()
    needed = sa.exists().where(other.c.source == training.c.id)
    shown = sa.exists().where(sa.or_(trial.c.training_id == training.c.id, trial.c.evaluation_id == training.c.id))
    for chunk in chunked(heirs, _CHUNK):
        doomed = (training.c.id.in_(chunk), ~shown, ~needed)
        for gone in connection.execute(sa.delete(training).where(*doomed).returning(training.c.id)).scalars().all():
            connection.execute(sa.update(training).where(training.c.heir == gone).values(heir=heirs[gone]))


def move(connection: sa.Connection, trainings: Sequence[int]) -> None:
    """Move the trials of such trainings, or that are to move to these, whose own and new training have finished.

    Their cells are summed up anew. Where the own one diverged there is nothing to take, and no evaluation is left.
    """
    new = training.alias()
    done = sa.exists().where(new.c.id == trial.c.evaluation_id, new.c.state == TrialState.FINISHED, ~new.c.diverged)
    for chunk in chunked(trainings, _CHUNK):
        mine = (
            sa.or_(trial.c.training_id.in_(chunk), trial.c.evaluation_id.in_(chunk)),
            trial.c.evaluation_id.is_not(None),
            trial.c.state == TrialState.FINISHED,
        )
        if connection.execute(sa.select(trial.c.id).where(*mine).limit(1)).first() is None:
            continue  # as nearly always
        _bequeath(connection, mine)
        lost = sa.select(trial.c.evaluation_id).where(*mine, trial.c.diverged)
        left = list(connection.execute(lost).scalars())
        connection.execute(sa.update(trial).where(*mine, trial.c.diverged).values(evaluation_id=None))
        end_unwanted(connection, left)
        moved = connection.execute(
            sa.update(trial)
            .where(*mine, done)
            .values(training_id=trial.c.evaluation_id, evaluation_id=None)
            .returning(trial.c.sweep_id, trial.c.cell, trial.c.id)
        ).all()
        mark_trials(connection, [(row.sweep_id, row.id) for row in moved])
        note_trials(connection, [(row.sweep_id, row.id) for row in moved])
        take_results(connection, [row.id for row in moved])
        for sweep, index in sorted({(row.sweep_id, row.cell) for row in moved}):
            its = (cell.c.sweep_id == sweep, cell.c.cell == index)
            connection.execute(sa.update(cell).where(*its).values(summary=None, settled=None))
            mark_cell(connection, sweep, index)


def _bequeath(connection: sa.Connection, moving: Sequence[sa.ColumnElement[bool]]) -> None:
    """Have the trainings that trials leave go when the new ones do, which may evaluate others or train themselves."""
    new = training.alias()
    ready = (new.c.state == TrialState.FINISHED, ~new.c.diverged, new.c.source.is_distinct_from(trial.c.training_id))
    left = sa.select(trial.c.training_id, new.c.id).join(new, new.c.id == trial.c.evaluation_id)
    for old, heir in connection.execute(left.where(*moving, *ready, ~trial.c.diverged)).all():
        connection.execute(sa.update(training).where(training.c.id == old).values(heir=heir))


def cancel(connection: sa.Connection, sweep: int, one: int | None = None, at: int | None = None) -> int:
    """Have trials of a sweep keep the numbers that they have; gives how many evaluations that ends."""
    which = [trial.c.sweep_id == sweep, trial.c.evaluation_id.is_not(None)]
    which += [trial.c.id == one] if one is not None else []
    which += [trial.c.cell == at] if at is not None else []
    left = list(connection.execute(sa.select(trial.c.evaluation_id).where(*which)).scalars())
    connection.execute(sa.update(trial).where(*which).values(evaluation_id=None))
    end_unwanted(connection, left)  # one that runs is stopped by its engine, which asks whether it is wanted
    return len(left)


def retry(connection: sa.Connection, sweep: int, one: int | None = None, at: int | None = None) -> int:
    """Have the evaluations of a sweep that failed wait again; gives how many."""
    which = [trial.c.sweep_id == sweep, evaluation_failed()]
    which += [trial.c.id == one] if one is not None else []
    which += [trial.c.cell == at] if at is not None else []
    rows = connection.execute(sa.select(trial.c.evaluation_id).where(*which)).scalars().all()
    for chunk in chunked(dict.fromkeys(rows), _CHUNK):
        again = sa.update(training).where(training.c.id.in_(chunk), training.c.state.in_(EVALUATION_FAILED))
        connection.execute(again.values(state=TrialState.WAITING, error=None, trace=None, ended=None))
    return len(rows)


def train_instead(connection: sa.Connection, training_id: int) -> bool:
    """Have a training train whose source cannot be evaluated, where trials wait for it; whether they do."""
    mine = sa.update(training).where(training.c.id == training_id, wanted_by_active(training_id))
    return connection.execute(mine.values(source=None)).rowcount == 1


def completed(connection: sa.Connection, source: int, evaluated: Result) -> dict[str, Any]:
    """What a training has of its source's result with the metrics that were evaluated."""
    known = connection.execute(sa.select(training).where(training.c.id == source)).one()
    result = known.result or {}
    facts = {
        "training": known.uid,
        "metrics": sorted(evaluated.metrics),
        "seconds": evaluated.seconds,
        **evaluated.provenance,
        **({"artifacts": evaluated.artifacts} if evaluated.artifacts else {}),
    }
    return {
        "diverged": False,
        "metrics": {
            **(known.metrics or {}),
            **{key: finite_or_none(value) for key, value in evaluated.metrics.items()},
        },
        "score": known.score,
        "best_step": known.best_step,
        "seconds": known.seconds,
        "result": {**result, "provenance": {**result.get("provenance", {}), "evaluated": facts}},
        "origin": origin_of(result.get("provenance", {})),
        "step": known.step,
        "total_steps": known.total_steps,
    }
