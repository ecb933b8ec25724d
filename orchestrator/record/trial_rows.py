"""Inserts, finds and sorts the rows of trials, and gives them further metrics."""

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.changes import mark_cell, mark_trials, trials_changed
from orchestrator.record.columns import finite_or_none, number_in
from orchestrator.record.database import chunked, insert_missing, next_position
from orchestrator.record.schema import LABELS, NUMBERS, attempt, candidate, cell, training, trial, trial_column
from orchestrator.record.trainings import (
    EVALUATION_FAILED,
    KNOWN,
    WAITING_AGAIN,
    Known,
    Shared,
    closed_to,
    evaluation_failed,
    known_of,
    needed,
    needed_by_active,
    project_of,
    reachable,
    row_of,
)
from orchestrator.views.runs import MeasuredTrial, PlannedTrial, origin_of
from orchestrator.views.states import TRIAL_STEPS, TrialState, before
from workers.catalog import Need
from workers.contract import Result

_CHUNK: Final = 500
_FIRST: Final = ("best/test/", "best/validation/", "last/test/", "last/validation/")
"""The prefixes of metrics that get their columns first."""


class TrialPlaces:
    """Assigns the columns `label_n` and `number_n` of a sweep's trials to axes and metrics, while any are free."""

    def __init__(self, connection: sa.Connection, sweep: int) -> None:
        self._connection, self._sweep = connection, sweep
        rows = connection.execute(sa.select(trial_column).where(trial_column.c.sweep_id == sweep)).all()
        self._roles = {row.key: row.role for row in rows}
        self._label = {row.key: row.label for row in rows}
        self._number = {row.key: row.number for row in rows}

    def of_labels(self, role: str, labels: Mapping[str, str]) -> dict[str, Any]:
        """The values of the columns `label_n` and `number_n` for a trial's labels of axes with this role."""
        values: dict[str, Any] = {}
        for key, label in labels.items():
            value = number_in(label)
            self._have(key, role, labelled=True, numeric=value is not None)
            if self._roles[key] == role and self._label[key] is not None:
                values[f"label_{self._label[key]}"] = label
            if self._roles[key] == role and self._number[key] is not None:
                values[f"number_{self._number[key]}"] = value
        return values

    def of_metrics(self, metrics: Mapping[str, float | None]) -> dict[str, Any]:
        """The values of the columns `number_n` for the metrics of a result."""
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


def take_results(connection: sa.Connection, trials: Iterable[int]) -> None:
    """Copy the metrics, scores and durations of trainings to their finished trials."""
    columns = (trial.c.id, trial.c.sweep_id, training.c.metrics, training.c.score, training.c.seconds)
    finished = sa.select(*columns).join(training, training.c.id == trial.c.training_id)
    finished = finished.where(trial.c.state == TrialState.FINISHED)
    for chunk in chunked(trials, _CHUNK):
        by_sweep: dict[int, list[Any]] = defaultdict(list)
        for row in connection.execute(finished.where(trial.c.id.in_(chunk))):
            by_sweep[row.sweep_id].append(row)
        for sweep, rows in by_sweep.items():
            places = TrialPlaces(connection, sweep)
            own = ({"its_id": row.id, "score": row.score, "seconds": row.seconds} for row in rows)
            level = _even([its | places.of_metrics(row.metrics or {}) for its, row in zip(own, rows, strict=True)])
            setting: dict[str, Any] = {column: sa.bindparam(column) for column in level[0] if column != "its_id"}
            connection.execute(sa.update(trial).where(trial.c.id == sa.bindparam("its_id")).values(setting), level)


def _labelled(
    connection: sa.Connection, places: TrialPlaces, sweep: int, where: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], dict[str, Any]]:
    """The columns for the labels of candidates and their cells, by (cell, candidate)."""
    wanted = set(where)
    cells = sorted({index for index, _ in wanted})
    of_cells = sa.select(cell.c.cell, cell.c.labels).where(cell.c.sweep_id == sweep, cell.c.cell.in_(cells))
    compared = {row.cell: places.of_labels("compare", row.labels) for row in connection.execute(of_cells)}
    query = sa.select(candidate.c.cell, candidate.c.candidate, candidate.c.labels)
    query = query.where(candidate.c.sweep_id == sweep, candidate.c.cell.in_(cells))
    numbers = sorted({number for _, number in wanted})
    query = query.where(candidate.c.candidate.between(numbers[0], numbers[-1]))
    tuned = {
        (row.cell, row.candidate): places.of_labels("tune", row.labels)
        for row in connection.execute(query)
        if (row.cell, row.candidate) in wanted
    }
    return {key: compared.get(key[0], {}) | tuned.get(key, {}) for key in wanted}


def _even(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the same columns, as one statement needs them; missing values are null."""
    columns = dict.fromkeys(column for row in rows for column in row)
    return [{column: row.get(column) for column in columns} for row in rows]


def _free(taken: Mapping[str, int | None], most: int) -> int | None:
    used = {place for place in taken.values() if place is not None}
    return len(used) if len(used) < most else None


def _rank(key: str) -> tuple[int, str]:
    return next((at for at, prefix in enumerate(_FIRST) if key.startswith(prefix)), len(_FIRST)), key


def measure(connection: sa.Connection, sweep: int, fresh: bool, trials: Iterable[MeasuredTrial]) -> None:
    """Plan further metrics for trials of a sweep.

    A trial that has not begun moves to the training with these metrics. Any other keeps its training and gets an
    evaluation, which is due once its training has finished, unless it diverged.
    """
    project = project_of(connection, sweep)
    for chunk in chunked(trials, _CHUNK):
        rows = _rows(connection, [measured.trial for measured in chunk])
        unbegun, others = list[MeasuredTrial](), list[MeasuredTrial]()
        for measured in chunk:
            row = rows[measured.trial]
            if row.state == TrialState.WAITING and not row.begun:
                unbegun.append(measured)
            elif not row.diverged:
                others.append(measured)
        heirs = _move_unbegun(connection, unbegun, rows, Shared(connection, fresh, project))
        _evaluate(connection, others, rows, fresh, closed_to(connection, project))
        end_unneeded(connection, [row.evaluation_id for row in rows.values() if row.evaluation_id is not None])
        forget(connection, heirs)
        move(connection, [rows[measured.trial].training_id for measured in others])
        trials_changed(connection, [(sweep, measured.trial) for measured in chunk])


def _rows(connection: sa.Connection, trials: Sequence[int]) -> Mapping[int, sa.Row[Any]]:
    begun = sa.exists().where(attempt.c.training_id == training.c.id).label("begun")
    columns = (
        trial.c.id, trial.c.state, trial.c.training_id, trial.c.evaluation_id, trial.c.diverged, training.c.source,
        begun,
    )  # fmt: skip
    query = sa.select(*columns).join(training, training.c.id == trial.c.training_id).where(trial.c.id.in_(trials))
    return {row.id: row for row in connection.execute(query)}


def _move_unbegun(
    connection: sa.Connection, trials: Sequence[MeasuredTrial], rows: Mapping[int, sa.Row[Any]], shared: Shared
) -> dict[int, int]:
    """Move trials to the trainings with the metrics; returns the new training by the old one."""
    now = datetime.now(UTC)
    heirs: dict[int, int] = {}
    trainings = shared.find([measured.plan for measured in trials]) if trials else {}
    for measured in trials:
        new = trainings[measured.plan.fingerprint]
        heirs[rows[measured.trial].training_id] = new.id
        mine = sa.update(trial).where(trial.c.id == measured.trial)
        connection.execute(mine.values(pointing_to(new, now) | {"evaluation_id": None}))
    take_results(connection, [measured.trial for measured in trials])
    return heirs


def pointing_to(known: Known, now: datetime) -> dict[str, Any]:
    """The values of a trial that points to a stored training from now on, and has its state."""
    done = known.state is TrialState.FINISHED
    return {
        "training_id": known.id, "state": known.state, "reused": done, "diverged": done and known.diverged,
        "started": None if known.state is TrialState.WAITING else now, "ended": now if done else None,
    }  # fmt: skip


def _evaluate(
    connection: sa.Connection,
    trials: Sequence[MeasuredTrial],
    rows: Mapping[int, sa.Row[Any]],
    fresh: bool,
    closed: Collection[int],
) -> None:
    """Find or make the evaluations to which trials will move, each of the weights of the trial's training."""
    known = _known(connection, [measured.plan for measured in trials], closed)
    made: dict[tuple[str, int], int] = {}
    for measured in trials:
        row = rows[measured.trial]
        source = row.source or row.training_id
        there = known.get(measured.plan.fingerprint)
        target = made.get((measured.plan.fingerprint, source))
        if target is None and there is not None and there.reachable and not fresh:
            _again(connection, there.id, source if row.state == TrialState.FINISHED else None)
            target = there.id
        if target is None:
            generation = there.generation + 1 if there else 1
            adding = sa.insert(training).values(row_of(measured.plan, generation, source)).returning(training.c.id)
            target = int(connection.execute(adding).scalar_one())
            known[measured.plan.fingerprint] = Known(target, TrialState.WAITING, False, generation)
        made[measured.plan.fingerprint, source] = target
        connection.execute(sa.update(trial).where(trial.c.id == measured.trial).values(evaluation_id=target))


def _known(connection: sa.Connection, planned: Sequence[PlannedTrial], closed: Collection[int]) -> dict[str, Known]:
    """By fingerprint, the finished or else the latest training, with the latest generation."""
    mine = sa.and_(sa.true(), *reachable(closed)).label("mine")
    fingerprints = training.c.fingerprint.in_([plan.fingerprint for plan in planned])
    by_fingerprint: dict[str, Known] = {}
    for row in connection.execute(sa.select(*KNOWN, mine).where(fingerprints).order_by(training.c.generation)):
        latest = replace(known_of(row), reachable=bool(row.mine))
        kept = by_fingerprint.get(row.fingerprint)
        if kept is None or not kept.reachable or (kept.state is not TrialState.FINISHED and latest.reachable):
            kept = latest
        by_fingerprint[row.fingerprint] = replace(kept, generation=row.generation)
    return by_fingerprint


def _again(connection: sa.Connection, training_id: int, source: int | None) -> None:
    """Let a training wait that ended without a result; it evaluates its source, or else `source`."""
    ended = training.c.state.in_(before(TRIAL_STEPS, TrialState.WAITING) - {TrialState.RUNNING})
    again = sa.update(training).where(training.c.id == training_id, ended)
    connection.execute(again.values(**WAITING_AGAIN, source=sa.func.coalesce(training.c.source, source)))


def end_unneeded(connection: sa.Connection, trainings: Iterable[int], state: TrialState = TrialState.CANCELLED) -> None:
    """End the waiting trainings that no trial wants; a running training is stopped by its engine."""
    ending = sa.update(training).where(training.c.state == TrialState.WAITING, ~needed(training.c.id))
    for chunk in chunked(trainings, _CHUNK):
        mine = ending.where(training.c.id.in_(chunk))
        connection.execute(mine.values(state=state, ended=datetime.now(UTC)))


def unsettle(connection: sa.Connection, sweep: int, cells: Iterable[int]) -> None:
    """Delete the summaries of cells, so that they are computed again."""
    indices = sorted(set(cells))
    its = (cell.c.sweep_id == sweep, cell.c.cell.in_(indices))
    connection.execute(sa.update(cell).where(*its).values(summary=None, settled=None))
    for index in indices:
        mark_cell(connection, sweep, index)


def forget(connection: sa.Connection, heirs: Mapping[int, int]) -> None:
    """Delete trainings that never began and that no trial shows; the new trainings inherit what they had replaced.

    `heirs`: the new training by the old one.
    """
    other = training.alias()
    needed = sa.exists().where(other.c.source == training.c.id)
    shown = sa.exists().where(sa.or_(trial.c.training_id == training.c.id, trial.c.evaluation_id == training.c.id))
    begun = sa.exists().where(attempt.c.training_id == training.c.id)
    for chunk in chunked(heirs, _CHUNK):
        doomed = (training.c.id.in_(chunk), ~shown, ~needed, ~begun)
        for gone in connection.scalars(sa.delete(training).where(*doomed).returning(training.c.id)).all():
            connection.execute(sa.update(training).where(training.c.heir == gone).values(heir=heirs[gone]))


def move(connection: sa.Connection, trainings: Sequence[int]) -> None:
    """Move trials from or to these trainings to their evaluation, if both trainings have finished.

    Their cells are summarized again. If the own training diverged, the evaluation is dropped.
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
            continue  # the usual case
        _bequeath(connection, mine)
        lost = sa.select(trial.c.evaluation_id).where(*mine, trial.c.diverged)
        left = list(connection.scalars(lost))
        connection.execute(sa.update(trial).where(*mine, trial.c.diverged).values(evaluation_id=None))
        end_unneeded(connection, left)
        moved = connection.execute(
            sa.update(trial)
            .where(*mine, done)
            .values(training_id=trial.c.evaluation_id, evaluation_id=None)
            .returning(trial.c.sweep_id, trial.c.cell, trial.c.id)
        ).all()
        trials_changed(connection, [(row.sweep_id, row.id) for row in moved])
        take_results(connection, [row.id for row in moved])
        for sweep in sorted({row.sweep_id for row in moved}):
            unsettle(connection, sweep, (row.cell for row in moved if row.sweep_id == sweep))


def _bequeath(connection: sa.Connection, moving: Sequence[sa.ColumnElement[bool]]) -> None:
    """Make the new trainings heirs of those that trials leave, so that they are deleted together."""
    new = training.alias()
    ready = (new.c.state == TrialState.FINISHED, ~new.c.diverged, new.c.source.is_distinct_from(trial.c.training_id))
    left = sa.select(trial.c.training_id, new.c.id).join(new, new.c.id == trial.c.evaluation_id)
    for old, heir in connection.execute(left.where(*moving, *ready, ~trial.c.diverged)).all():
        connection.execute(sa.update(training).where(training.c.id == old).values(heir=heir))


def cancel(connection: sa.Connection, sweep: int, one: int | None = None, at: int | None = None) -> int:
    """Cancel the evaluations of further metrics of a sweep, a cell or a trial; returns how many.

    The trials keep the numbers that they have.
    """
    which = [*part_of(sweep, one, at), trial.c.evaluation_id.is_not(None)]
    left = list(connection.scalars(sa.select(trial.c.evaluation_id).where(*which)))
    connection.execute(sa.update(trial).where(*which).values(evaluation_id=None))
    end_unneeded(connection, left)
    return len(left)


def retry(connection: sa.Connection, sweep: int, one: int | None = None, at: int | None = None) -> int:
    """Let the failed evaluations of further metrics of a sweep, a cell or a trial wait again; returns how many."""
    failed = sa.select(trial.c.evaluation_id).where(*part_of(sweep, one, at), evaluation_failed())
    rows = connection.scalars(failed).all()
    for chunk in chunked(dict.fromkeys(rows), _CHUNK):
        again = sa.update(training).where(training.c.id.in_(chunk), training.c.state.in_(EVALUATION_FAILED))
        connection.execute(again.values(WAITING_AGAIN))
    return len(rows)


def part_of(sweep: int, one: int | None, at: int | None) -> list[sa.ColumnElement[bool]]:
    """The SQL conditions for the trials of a sweep, for the trial `one`, or for the cell `at`."""
    which = [trial.c.sweep_id == sweep]
    which += [trial.c.id == one] if one is not None else []
    return which + ([trial.c.cell == at] if at is not None else [])


def train_instead(connection: sa.Connection, training_id: int) -> bool:
    """Change an evaluation to a full training if its source cannot be evaluated; False if no trial waits for it."""
    mine = sa.update(training).where(training.c.id == training_id, needed_by_active(training_id))
    return connection.execute(mine.values(source=None)).rowcount == 1


def completed(connection: sa.Connection, source: int, evaluated: Result) -> dict[str, Any]:
    """The columns of a finished evaluation: the result of its source with the evaluated metrics added."""
    known = connection.execute(sa.select(training).where(training.c.id == source)).one()
    result = known.result or {}
    provenance = result.get("provenance", {})
    facts = {"training": known.uid, "metrics": sorted(evaluated.metrics), "seconds": evaluated.seconds}
    facts |= evaluated.provenance | ({"artifacts": evaluated.artifacts} if evaluated.artifacts else {})
    metrics = {key: finite_or_none(value) for key, value in evaluated.metrics.items()}
    same = ("score", "best_step", "seconds", "step", "total_steps")
    return {name: getattr(known, name) for name in same} | {
        "diverged": False,
        "metrics": (known.metrics or {}) | metrics,
        "result": {**result, "provenance": {**provenance, "evaluated": facts}},
        "origin": origin_of(provenance),
    }


_ROWS_CHUNK = 1_000
"""Trials a statement: far below the 32,766 parameters that SQLite takes."""


class TrialRows:
    """Appends trials to a sweep in chunks, and finds or creates their trainings."""

    def __init__(
        self, connection: sa.Connection, sweep: int, uid: uuid.UUID, fresh: bool, *, whole: bool = False
    ) -> None:
        """`whole`: the sweep itself is fresh, and not only what is added to it."""
        self._connection = connection
        self._sweep, self._uid, self._now = sweep, uid, datetime.now(UTC)
        self._trainings: dict[str, Known] = {}  # by fingerprint, of the present chunk
        self._shared = Shared(connection, fresh, project_of(connection, sweep), sweep if whole else None)
        self._places = TrialPlaces(connection, sweep)
        self.position = next_position(connection, sweep)
        """The position of the next trial."""

    def write(self, trials: Iterable[PlannedTrial]) -> None:
        """Append the trials of a plan to the sweep, in their order."""
        for chunk in chunked(trials, _ROWS_CHUNK):
            write_needs(self._connection, [one.need for one in chunk if one.need], self._sweep)
            self._trainings = self._shared.find(chunk)
            first = self.position
            named = _labelled(self._connection, self._places, self._sweep, ((one.cell, one.candidate) for one in chunk))
            rows = _even([self._row(planned) | named[planned.cell, planned.candidate] for planned in chunk])
            # Without RETURNING: psycopg would parse a statement with 12,000 parameters.
            self._connection.execute(sa.insert(trial), rows)
            self._mark_begun(first)

    def _mark_begun(self, first: int) -> None:
        written = trial.c.position.between(first, self.position - 1)  # both ends: there are no statistics yet
        begun = sa.select(trial.c.id).where(trial.c.sweep_id == self._sweep, written)
        ids = list(self._connection.scalars(begun.where(trial.c.state != TrialState.WAITING)))
        mark_trials(self._connection, [(self._sweep, number) for number in ids])
        take_results(self._connection, ids)

    def _row(self, trial: PlannedTrial) -> dict[str, Any]:
        position, self.position = self.position, self.position + 1
        return {
            "uid": str(uuid.uuid5(self._uid, str(position))), "sweep_id": self._sweep, "cell": trial.cell,
            "candidate": trial.candidate, "repeat": trial.repeat, "position": position,
            "repeat_labels": dict(trial.repeat_labels), **pointing_to(self._trainings[trial.fingerprint], self._now),
            "slot": trial.slot.model_dump(mode="json") if trial.slot else None,
            **self._places.of_labels("repeat", trial.repeat_labels),
        }  # fmt: skip


def write_needs(connection: sa.Connection, needs: Iterable[Need], sweep: int | None = None) -> None:
    """Store the data sets that trainings read, and that `sweep` needs them."""
    for key, need in {need.key: need for need in needs}.items():
        insert_missing(connection, schema.need, {"key": key, "reads": need.model_dump(mode="json")})
        if sweep is not None:
            insert_missing(connection, schema.sweep_need, {"sweep_id": sweep, "need": key})


def insert(connection: sa.Connection, table: sa.Table, rows: Iterable[dict[str, Any]]) -> None:
    """Insert rows into a table, in chunks that every database accepts."""
    for chunk in chunked(rows, _ROWS_CHUNK):
        connection.execute(sa.insert(table), chunk)
