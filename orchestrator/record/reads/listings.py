"""Listings: a page of the trials or candidates that a filter holds for, sorted by any column, wherever they are."""

import base64
import binascii
import json
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.clock import UtcTime
from orchestrator.record.database import Access
from orchestrator.record.existence import require_sweep
from orchestrator.record.reads.joins import of_candidate
from orchestrator.record.reads.listed_rows import ListedRows, Sought
from orchestrator.record.reads.trial_columns import TrialColumns
from orchestrator.record.schema import candidate, cell, note, tag, trial
from orchestrator.views.errors import InvalidFilterError, NotFoundError
from orchestrator.views.states import TrialState
from orchestrator.views.trials import ListedColumn, ListedRow, Listing
from workers.catalog import meant


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """By a column of the rows, what lacks it last, and by the number where several have the same."""

    by: sa.ColumnElement[Any]
    number: sa.ColumnElement[int]
    down: bool
    by_number: bool
    """Whether the column is the number: each row has one of its own, and a page of the newest is read from the end."""

    @property
    def terms(self) -> list[sa.ColumnElement[Any]]:
        """What the rows are ordered by."""
        by = self.by.desc() if self.down else self.by
        return [by] if self.by_number else [self.by.is_(None), by, self.number]

    def after(self, cursor: str) -> sa.ColumnElement[bool]:
        """What holds of the rows behind the last one of a page."""
        value, last = _decode(cursor, self.by)
        if value is None:
            return sa.and_(self.by.is_(None), self.number > last)
        beyond: sa.ColumnElement[bool] = self.by < value if self.down else self.by > value
        if self.by_number:
            return beyond
        return sa.or_(beyond, sa.and_(self.by == value, self.number > last), self.by.is_(None))


def encode(value: Any, last: int) -> str:
    """The cursor behind a row, by the value that it is sorted by and its number."""
    kept = value.isoformat() if isinstance(value, datetime) else value
    written = json.dumps([kept, last], ensure_ascii=False)
    return base64.urlsafe_b64encode(written.encode()).decode().rstrip("=")


def _decode(cursor: str, by: sa.ColumnElement[Any]) -> tuple[Any, int]:
    """The last row of the page before; raises NotFoundError for what is not a cursor of this listing."""
    try:
        value, last = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if value is not None:
            numeric = isinstance(by.type, sa.Integer | sa.Float)
            if isinstance(by.type, UtcTime):
                value = datetime.fromisoformat(value)
                if value.tzinfo is None:
                    raise ValueError("a moment has a zone")
            elif not isinstance(value, (int, float) if numeric else str) or isinstance(value, bool):
                raise ValueError("another column's")
        if not isinstance(last, int) or not 0 <= last < 2**31 or (isinstance(value, int) and abs(value) >= 2**53):
            raise ValueError("no row has this number")
        return value, last
    except (binascii.Error, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise NotFoundError(f"no page at cursor {cursor!r}: pass `next_cursor` of the page before") from error


MOST_METRICS: Final = 24
"""That one listing shows."""
_SELECTED: Final = ("score", "seconds")
_Place = tuple[str, int, int]
"""Kind, sweep and number of what people say something of."""


class ListingReader(Access):
    """Reads listings."""

    def columns(self, sweep: int | None) -> list[ListedColumn]:
        """The columns of a sweep's trials, or of all trials; raises NotFoundError."""
        with self._database.reading() as connection:
            if sweep is not None:
                require_sweep(connection, sweep)
            return TrialColumns(connection, None if sweep is None else {sweep}).listed()

    def tables(self, sweep: int) -> list[dict[str, Any]]:
        """The tables of a sweep's spec; none where there is no such sweep."""
        query = sa.select(schema.sweep.c.spec).where(schema.sweep.c.id == sweep)
        with self._database.reading() as connection:
            spec = connection.execute(query).scalar_one_or_none() or {}
        return list((spec.get("tables") or {}).values())

    def page(
        self, sought: Sought, sort: str, metrics: Sequence[str], cursor: str | None, limit: int, *, count: bool
    ) -> Listing:
        """A page; `sort` is a column, with a `-` before it downwards. Raises InvalidFilterError, NotFoundError."""
        if len(metrics) > MOST_METRICS:
            raise InvalidFilterError(f"{len(metrics)} columns; at most {MOST_METRICS} are shown", 0, "columns")
        name, down = sort.removeprefix("-"), sort.startswith("-")
        with self._database.reading() as connection:
            if sought.sweep is not None:
                require_sweep(connection, sought.sweep)
            sought.names = (name,)
            listed = ListedRows(connection, sought)
            by = listed.sorting(name)
            query = sa.select(listed.rows.c.id, by.label("by")).where(listed.condition)
            # Rows that are dear to find are found once, to be counted and sorted: candidates are made of their trials,
            # and Postgres reads every trial that a filter asks. SQLite asks them again in less than it takes to keep
            # them, and without a filter both count by an index.
            dear = sought.kind == "candidates" or (connection.dialect.name != "sqlite" and sought.filters)
            matching = query.cte("matching") if count and dear else query.subquery("matching")
            by, number = matching.c.by, matching.c.id
            order = ListedOrder(by, number, down, by_number=name == "trial")
            ordered = sa.select(number, by).order_by(*order.terms).limit(limit + 1)
            if cursor is not None:
                ordered = ordered.where(order.after(cursor))
            counting = sa.select(sa.func.count()).select_from(matching)
            if count and dear:
                ordered = ordered.add_columns(counting.scalar_subquery().label("total"))
            numbered = connection.execute(ordered).all()
            total = None
            if count:
                total = int(numbered[0].total if dear and numbered else connection.execute(counting).scalar_one())
            rows = _Filled(connection, sought, metrics, listed.columns).rows([row.id for row in numbered[:limit]])
        following = encode(numbered[limit - 1].by, numbered[limit - 1].id) if len(numbered) > limit else None
        return Listing(items=rows, next_cursor=following, total=total, metrics=list(metrics))


class _Filled:
    """Rows with all that is shown of them, read for those of one page alone."""

    def __init__(
        self, connection: sa.Connection, sought: Sought, metrics: Sequence[str], columns: TrialColumns
    ) -> None:
        self._connection, self._of_candidates = connection, sought.kind == "candidates"
        self._metrics: dict[str, sa.ColumnElement[Any]] = {}
        for name in metrics:
            column = columns.resolve(name, 0, "columns")
            number = column.number if column.role == "metric" else None
            if number is None:
                known = [one.name for one in columns.listed() if one.role == "metric"]
                said = f"`{name[:80]}` is no metric, and every row shows the rest anyhow; {meant(name, known)}"
                raise InvalidFilterError(said, 0, "columns")
            self._metrics[name] = number

    def rows(self, ids: Sequence[int]) -> list[ListedRow]:
        """The rows of trials, or of the candidates of these, in this order."""
        if not ids:
            return []
        trials: dict[tuple[int, int, int] | int, list[sa.Row[Any]]] = defaultdict(list)
        for row in self._connection.execute(self._query(ids)):
            trials[(row.sweep_id, row.cell, row.candidate) if self._of_candidates else row.id].append(row)
        by_id = {rows[0].id: rows for rows in trials.values()}
        said = _said(self._connection, [row for rows in by_id.values() for row in rows])
        return [self._row(by_id[number], said) for number in ids if number in by_id]

    def _query(self, ids: Sequence[int]) -> sa.Select[Any]:
        table = trial.c
        query = (
            sa.select(
                table.id, table.sweep_id, table.cell, table.candidate, table.repeat, table.repeat_labels, table.state,
                table.diverged, table.reused, table.score, table.seconds, table.started, table.ended,
                cell.c.labels.label("cell_labels"), candidate.c.labels.label("candidate_labels"),
                schema.sweep.c.name.label("sweep_name"),
                *(number.label(f"metric_{at}") for at, number in enumerate(self._metrics.values())),
            )
            .select_from(trial)
            .join(cell, sa.and_(cell.c.sweep_id == table.sweep_id, cell.c.cell == table.cell))
            .join(candidate, of_candidate())
            .join(schema.sweep, schema.sweep.c.id == table.sweep_id)
            .order_by(table.id)
        )  # fmt: skip
        if not self._of_candidates:
            return query.where(table.id.in_(ids))
        first = trial.alias()
        same = (
            first.c.sweep_id == table.sweep_id, first.c.cell == table.cell, first.c.candidate == table.candidate,
        )  # fmt: skip
        return query.join(first, sa.and_(*same)).where(first.c.id.in_(ids))

    def _row(self, trials: Sequence[sa.Row[Any]], said: Mapping[_Place, tuple[list[str], str]]) -> ListedRow:
        first = trials[0]
        numbers = {name: [getattr(row, name) for row in trials] for name in _SELECTED}
        numbers |= {name: [getattr(row, f"metric_{at}") for row in trials] for at, name in enumerate(self._metrics)}
        means = {name: _mean(values) for name, values in numbers.items()}
        states = [str(row.state) for row in trials]
        several = self._of_candidates
        labels = first.cell_labels | first.candidate_labels | ({} if several else first.repeat_labels)
        return ListedRow(
            sweep=first.sweep_id, sweep_name=first.sweep_name, cell=first.cell, candidate=first.candidate,
            trial=first.id, repeat=None if several else first.repeat, labels=labels, state=_together(states),
            diverged=any(row.diverged for row in trials), reused=all(row.reused for row in trials),
            trials=len(trials), finished=states.count(TrialState.FINISHED), score=means["score"],
            seconds=means["seconds"], started=_extreme(min, [row.started for row in trials]),
            ended=_extreme(max, [row.ended for row in trials]), values={name: means[name] for name in self._metrics},
            deviations=_deviations(numbers) if several else {},
            tags=sorted({tag for row in trials for place in _places(row) for tag in said.get(place, ([], ""))[0]}),
            note=next(filter(None, (said.get(_places(row)[0], ([], ""))[1] for row in trials)), ""),
        )  # fmt: skip


def _places(row: sa.Row[Any]) -> list[_Place]:
    """Where a trial's own tags are, its cell's and its sweep's."""
    sweep = row.sweep_id
    return [("trial", sweep, row.id), ("cell", sweep, row.cell), ("sweep", sweep, sweep)]


def _said(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> dict[_Place, tuple[list[str], str]]:
    """The tags and the note of each place of some rows where there are any."""
    entities = sorted({place[2] for row in rows for place in _places(row)})
    sweeps = sorted({row.sweep_id for row in rows})
    said: dict[_Place, tuple[list[str], str]] = {}
    for table in (tag, note):
        mine = (table.c.sweep_id.in_(sweeps), table.c.entity.in_(entities))
        for row in connection.execute(sa.select(table).where(*mine)):
            tags, text = said.get((row.kind, row.sweep_id, row.entity), ([], ""))
            place = (row.kind, row.sweep_id, row.entity)
            said[place] = ([*tags, row.tag], text) if table is tag else (tags, row.text)
    return said


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _deviations(numbers: Mapping[str, Sequence[float | None]]) -> dict[str, float]:
    known = {name: [value for value in values if value is not None] for name, values in numbers.items()}
    return {name: statistics.stdev(values) for name, values in known.items() if len(values) > 1}


def _together(states: Sequence[str]) -> str:
    order = [TrialState.RUNNING, TrialState.WAITING, TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED]
    return next((state.value for state in order if state in states), TrialState.FINISHED.value)


def _extreme(which: Any, moments: Sequence[datetime | None]) -> datetime | None:
    known = [moment for moment in moments if moment is not None]
    return which(known) if known else None
