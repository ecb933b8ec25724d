"""Rows of trials: how they are inserted, found, sorted and evaluated again."""

import math
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.changes import mark_cell, mark_trials, note_trials
from orchestrator.record.columns import finite_or_none
from orchestrator.record.database import chunked, insertion
from orchestrator.record.schema import LABELS, NUMBERS, attempt, candidate, cell, training, trial, trial_column
from orchestrator.record.trainings import (
    EVALUATION_FAILED,
    Known,
    Shared,
    closed_to,
    evaluation_failed,
    project_of,
    reachable,
    row_of,
    wanted,
    wanted_by_active,
)
from orchestrator.views.runs import MeasuredTrial, PlannedTrial, origin_of
from orchestrator.views.states import TRIAL_STEPS, TrialState, before
from workers.catalog import Need
from workers.contract import Result

_CHUNK: Final = 500
_FIRST: Final = ("best/test/", "best/validation/", "last/test/", "last/validation/")
"""Of the metrics of a result: those that get their places first."""


class TrialPlaces:
    """The places of one sweep's keys; new keys get the next free ones, and none where all are taken."""

    def __init__(self, connection: sa.Connection, sweep: int) -> None:
        self._connection, self._sweep = connection, sweep
        query = sa.select(trial_column).where(trial_column.c.sweep_id == sweep)
        rows = connection.execute(query).all()
        self._roles = {row.key: row.role for row in rows}
        self._label = {row.key: row.label for row in rows}
        self._number = {row.key: row.number for row in rows}

    def of_labels(self, role: str, labels: Mapping[str, str]) -> dict[str, Any]:
        """The values of a trial's columns that stand for the labels of its axes of one role."""
        values: dict[str, Any] = {}
        for key, label in labels.items():
            value = number_of(label)
            self._have(key, role, labelled=True, numeric=value is not None)
            if self._roles[key] == role and self._label[key] is not None:
                values[f"label_{self._label[key]}"] = label
            if self._roles[key] == role and self._number[key] is not None:
                values[f"number_{self._number[key]}"] = value
        return values

    def of_metrics(self, metrics: Mapping[str, float | None]) -> dict[str, Any]:
        """The same of the metrics of a result."""
        values: dict[str, Any] = {}
        for key in sorted(metrics, key=_rank):
            self._have(key, "metric", labelled=False, numeric=True)
            if self._roles[key] == "metric" and self._number[key] is not None:
                values[f"number_{self._number[key]}"] = metrics[key]
        return values

    def _have(self, key: str, role: str, *, labelled: bool, numeric: bool) -> None:
        known = key in self._roles
        if known and not (numeric and self._roles[key] == role and self._number[key] is None):
            return
        number = _free(self._number, NUMBERS) if numeric else None
        if known:
            if number is not None:
                mine = (trial_column.c.sweep_id == self._sweep, trial_column.c.key == key)
                self._connection.execute(sa.update(trial_column).where(*mine).values(number=number))
        else:
            self._roles[key] = role
            self._label[key] = _free(self._label, LABELS) if labelled else None
            row = {"sweep_id": self._sweep, "key": key, "role": role, "label": self._label[key], "number": number}
            self._connection.execute(sa.insert(trial_column).values(row))
        self._number[key] = number


def number_of(label: str) -> float | None:
    """The finite number that a label is, if it is one."""
    try:
        value = float(label)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in label else None


def take_results(connection: sa.Connection, trials: Iterable[int]) -> None:
    """Write beside those of the trials that have finished the numbers of their trainings."""
    columns = (trial.c.id, trial.c.sweep_id, training.c.metrics, training.c.score, training.c.seconds)
    finished = sa.select(*columns).join(training, training.c.id == trial.c.training_id)
    finished = finished.where(trial.c.state == TrialState.FINISHED)
    for chunk in chunked(trials, _CHUNK):
        by_sweep: dict[int, list[Any]] = defaultdict(list)
        for row in connection.execute(finished.where(trial.c.id.in_(chunk))):
            by_sweep[row.sweep_id].append(row)
        for sweep, rows in by_sweep.items():
            places = TrialPlaces(connection, sweep)
            written = [
                {"its_id": row.id, "score": row.score, "seconds": row.seconds, **places.of_metrics(row.metrics or {})}
                for row in rows
            ]
            _write(connection, written)


def take_result(connection: sa.Connection, sweep: int, trials: Sequence[int], result: Mapping[str, Any]) -> None:
    """The same for trials of one sweep that share a result, as the training's columns have it."""
    values = TrialPlaces(connection, sweep).of_metrics(result["metrics"] or {})
    values |= {"score": result["score"], "seconds": result["seconds"]}
    connection.execute(sa.update(trial).where(trial.c.id.in_(trials)).values(values))


def labelled(
    connection: sa.Connection, places: TrialPlaces, sweep: int, where: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], dict[str, Any]]:
    """The values of the columns for the labels of some candidates and their cells, by (cell, candidate)."""
    wanted = set(where)
    cells = sorted({one for one, _ in wanted})
    of_cells = sa.select(cell.c.cell, cell.c.labels).where(cell.c.sweep_id == sweep, cell.c.cell.in_(cells))
    compared = {row.cell: places.of_labels("compare", row.labels) for row in connection.execute(of_cells)}
    query = sa.select(candidate.c.cell, candidate.c.candidate, candidate.c.labels)
    query = query.where(candidate.c.sweep_id == sweep, candidate.c.cell.in_(cells))
    numbers = sorted({one for _, one in wanted})
    query = query.where(candidate.c.candidate.between(numbers[0], numbers[-1]))
    tuned = {
        (row.cell, row.candidate): places.of_labels("tune", row.labels)
        for row in connection.execute(query)
        if (row.cell, row.candidate) in wanted
    }
    return {key: compared.get(key[0], {}) | tuned.get(key, {}) for key in wanted}


def even(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the same columns each, as one statement for all of them needs: null where a row has none."""
    columns = dict.fromkeys(column for row in rows for column in row)
    return [{column: row.get(column) for column in columns} for row in rows]


def _write(connection: sa.Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Rows of one sweep; one that lacks a number which others have says so."""
    level = even(rows)
    setting: dict[str, Any] = {column: sa.bindparam(column) for column in level[0] if column != "its_id"}
    connection.execute(sa.update(trial).where(trial.c.id == sa.bindparam("its_id")).values(setting), level)


def _free(taken: Mapping[str, int | None], most: int) -> int | None:
    used = {place for place in taken.values() if place is not None}
    return len(used) if len(used) < most else None


def _rank(key: str) -> tuple[int, str]:
    return next((at for at, prefix in enumerate(_FIRST) if key.startswith(prefix)), len(_FIRST)), key


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


_ROWS_CHUNK = 1_000
"""Trials a statement: far below the 32,766 parameters that SQLite takes."""


class TrialRows:
    """Writes trials in chunks and finds or makes their trainings."""

    def __init__(
        self,
        connection: sa.Connection,
        sweep: int,
        uid: uuid.UUID,
        fresh: bool,
        first: int = 0,
        *,
        whole: bool = False,
    ) -> None:
        """`whole`: the sweep itself is fresh, and not only what is added to it."""
        self._connection = connection
        self._sweep, self._uid, self._now = sweep, uid, datetime.now(UTC)
        self._trainings: dict[str, Known] = {}  # by fingerprint: those of the chunk that is written
        self._shared = Shared(connection, fresh, project_of(connection, sweep), sweep if whole else None)
        self._places = TrialPlaces(connection, sweep)
        self._position = first

    def write(self, trials: Iterable[PlannedTrial]) -> None:
        """Append the trials in their order."""
        for chunk in chunked(trials, _ROWS_CHUNK):
            write_needs(self._connection, [one.need for one in chunk if one.need], self._sweep)
            self._trainings = self._shared.find(chunk)
            first = self._position
            named = labelled(self._connection, self._places, self._sweep, ((one.cell, one.candidate) for one in chunk))
            rows = even([self._row(one) | named[one.cell, one.candidate] | self._repeated(one) for one in chunk])
            # Without RETURNING the driver prepares one statement; with it psycopg parses one of 12,000 parameters.
            self._connection.execute(sa.insert(schema.trial), rows)
            self._mark_begun(first)

    def _mark_begun(self, first: int) -> None:
        table = schema.trial
        written = table.c.position.between(first, self._position - 1)  # both ends: there are no statistics yet
        begun = sa.select(table.c.id).where(table.c.sweep_id == self._sweep, written)
        rows = self._connection.execute(begun.where(table.c.state != TrialState.WAITING)).all()
        mark_trials(self._connection, [(self._sweep, row.id) for row in rows])
        take_results(self._connection, [row.id for row in rows])

    def _repeated(self, trial: PlannedTrial) -> dict[str, Any]:
        return self._places.of_labels("repeat", trial.repeat_labels)

    def _row(self, trial: PlannedTrial) -> dict[str, Any]:
        position, self._position = self._position, self._position + 1
        training = self._trainings[trial.fingerprint]
        reused = training.state is TrialState.FINISHED
        return {
            "uid": str(uuid.uuid5(self._uid, str(position))), "sweep_id": self._sweep, "cell": trial.cell,
            "candidate": trial.candidate, "repeat": trial.repeat, "position": position,
            "repeat_labels": dict(trial.repeat_labels), "training_id": training.id, "state": training.state,
            "reused": reused, "diverged": reused and training.diverged,
            "started": None if training.state is TrialState.WAITING else self._now,
            "ended": self._now if reused else None,
            "slot": trial.slot.model_dump(mode="json") if trial.slot else None,
        }  # fmt: skip


def write_needs(connection: sa.Connection, needs: Iterable[Need], sweep: int | None = None) -> None:
    """Have a row for each need, and one that says that the sweep has it."""
    for key, one in {one.key: one for one in needs}.items():
        row = insertion(connection, schema.need).values(key=key, reads=one.model_dump(mode="json"))
        connection.execute(row.on_conflict_do_nothing())
        if sweep is not None:
            its = insertion(connection, schema.sweep_need).values(sweep_id=sweep, need=key)
            connection.execute(its.on_conflict_do_nothing())


def insert(connection: sa.Connection, table: sa.Table, rows: Iterable[dict[str, Any]]) -> None:
    """Insert rows, in chunks that every database takes."""
    for chunk in chunked(rows, _ROWS_CHUNK):
        connection.execute(sa.insert(table), chunk)
