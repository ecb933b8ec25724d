"""What lists find and sort trials by, written beside the trials: the labels of axes, the numbers of results."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.database import chunked
from orchestrator.record.schema import LABELS, NUMBERS, candidate, cell, training, trial, trial_column
from orchestrator.views.states import TrialState

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
