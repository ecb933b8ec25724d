"""Listings of trials and candidates over any sweeps, their plots, and the notes of people."""

import base64
import binascii
import json
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import changes, schema
from orchestrator.record.accounts import require_steered, tell
from orchestrator.record.columns import UtcTime
from orchestrator.record.database import Access, insertion, of_candidate, require_lasting, require_sweep
from orchestrator.record.filters import FilterCompiler, Resolved, TrialColumns, sweeps_of
from orchestrator.record.schema import candidate, cell, note, tag, trial
from orchestrator.record.trials import of_whole
from orchestrator.views.accounts import caller
from orchestrator.views.errors import ConflictError, InvalidFilterError, NotFoundError
from orchestrator.views.filters import All, Condition, Filter, Word, conditions
from orchestrator.views.pages import MOST_TAGS, Remark, Remarked, TagChange
from orchestrator.views.runs import ChangeKind
from orchestrator.views.states import TrialState
from orchestrator.views.trials import MOST_POINTS, SORTED, Listed, ListedColumn, ListedRow, Listing, Points
from workers.catalog import meant

SORT_LETTERS: Final = 60
"""Of a text, by which rows are sorted: a cursor holds no more."""
_OF_CANDIDATES: Final = (
    TrialState.RUNNING, TrialState.WAITING, TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED,
)  # fmt: skip
"""The states that a candidate has once one of its trials is so, the first before the others."""
_SHARED_ROLES: Final = ("compare", "tune")
_SHARED_NAMES: Final = ("sweep", "cell", "candidate")
"""Of columns: what all trials of a candidate have the same of."""


@dataclass
class Sought:
    """What is listed: trials or candidates that a filter holds for, over sweeps that it may confine itself to."""

    where: Filter
    kind: Listed = "trials"
    sweep: int | None = None
    names: tuple[str, ...] = ()
    """Further columns that are wanted, beside those that the filter names."""
    path: str = "sort"
    """Whence these names come, for what is said of wrong ones."""
    known: dict[str, tuple[Resolved, int]] = field(default_factory=dict)

    @property
    def filters(self) -> bool:
        """Whether it is more than all rows of some sweeps."""
        return bool(list(conditions(self.where)))

    @property
    def sweeps(self) -> set[int] | None:
        """The sweeps that it is confined to; none: all."""
        within = sweeps_of(self.where)
        if self.sweep is None:
            return within
        return {self.sweep} if within is None else within & {self.sweep}


class ListedRows:
    """The rows of what is sought, as `rows`, and the condition that they meet, as `condition`."""

    def __init__(self, connection: sa.Connection, sought: Sought) -> None:
        self.columns = TrialColumns(connection, sought.sweeps)
        self._known: dict[str, tuple[Resolved, int]] = {}
        self._kind = sought.kind
        said = list(conditions(sought.where))
        for part in said:
            if isinstance(part, Condition):
                self._have(part.name, part.at, "where")
        for name in sought.names:
            self._have(name, 0, sought.path)
        self._places = self.columns.label_places() if any(isinstance(one, Word) for one in said) else []
        self._sqlite = connection.dialect.name == "sqlite"
        self._whole = of_whole(connection, sought.sweeps)
        shared, rest = self._parted(sought.where)
        self.rows = self._query(sought.sweeps, shared).subquery("listed")
        self.condition = self._compiled(self.rows, rest)

    def _compiled(self, rows: sa.FromClause, where: Filter) -> sa.ColumnElement[bool]:
        return FilterCompiler(rows, self._known, self._places, sqlite=self._sqlite).condition(where)

    def _parted(self, where: Filter) -> tuple[All, All]:
        """What of a filter trials are asked before candidates are made of them, and the rest of it."""
        parts = where.parts if isinstance(where, All) else (where,)
        shared = tuple(part for part in parts if self._kind == "candidates" and self._is_shared(part))
        return All(shared), All(tuple(part for part in parts if part not in shared))

    def _is_shared(self, part: Filter) -> bool:
        """Whether it holds for all trials of a candidate or for none."""
        return all(
            isinstance(one, Condition)
            and (self.role(one.name) in _SHARED_ROLES or (one.name in _SHARED_NAMES and one.operator != "~"))
            for one in conditions(part)
        )

    def _have(self, name: str, at: int, path: str) -> None:
        if name in self._known:
            return
        column = self.columns.resolve(name, at, path)
        if self._kind == "candidates" and (column.role == "repeat" or name == "repeat"):
            raise InvalidFilterError(f"`{name}` tells repeats apart, which a candidate has several of", at, path)
        self._known[name] = (column, len(self._known))

    def role(self, name: str) -> str:
        """Of a name that was sought: compare, tune, repeat, metric, fixed or searched."""
        return self._known[name][0].role

    def number(self, name: str) -> sa.ColumnElement[Any] | None:
        """The number that a row has under a name that was sought."""
        column, at = self._known[name]
        if name in ("score", "seconds", "trial", "sweep", "cell", "candidate", "repeat"):
            return self.rows.c[{"trial": "id", "sweep": "sweep_id"}.get(name, name)]
        return self.rows.c[f"number_of_{at}"] if column.numbers else None

    def label(self, name: str) -> sa.ColumnElement[Any] | None:
        """The label that it has."""
        column, at = self._known[name]
        if name == "state":
            return self.rows.c.state
        return self.rows.c[f"label_of_{at}"] if column.labels else None

    def sorting(self, name: str) -> sa.ColumnElement[Any]:
        """What rows are sorted by; raises InvalidFilterError for a name that they are not sorted by."""
        column, _ = self._known[name]
        if column.role == "fixed" and name in SORTED:
            return self.rows.c[{"trial": "id", "sweep": "sweep_id"}.get(name, name)]
        number, label = self.number(name), self.label(name)
        if column.role not in ("fixed", "searched") and number is not None:
            return number
        if column.role in ("fixed", "searched") or label is None:
            raise InvalidFilterError(
                f"rows are not sorted by `{name}`; an axis, a metric or `score` would do", 0, "sort"
            )
        return sa.func.substr(label, 1, SORT_LETTERS)

    def _query(self, sweeps: Collection[int] | None, shared: All) -> sa.Select[Any]:
        labels: dict[str, sa.ColumnElement[Any]] = {
            f"label_{place}": trial.c[f"label_{place}"] for place in self._places
        }
        numbers: dict[str, sa.ColumnElement[Any]] = {}
        for column, at in self._known.values():
            if column.labels and (label := column.label) is not None:
                labels[f"label_of_{at}"] = label
            if column.numbers and (number := column.number) is not None:
                numbers[f"number_of_{at}"] = number
        query = self._trials(labels, numbers).where(*self._whole)
        if sweeps is not None and not sweeps:
            query = query.where(sa.false())
        elif sweeps is not None:
            several = trial.c.sweep_id.in_(sorted(sweeps))
            query = query.where(trial.c.sweep_id == min(sweeps) if len(sweeps) == 1 else several)
        return query if self._kind == "trials" else self._candidates(query.subquery("one"), labels, numbers, shared)

    def _trials(
        self, labels: dict[str, sa.ColumnElement[Any]], numbers: dict[str, sa.ColumnElement[Any]]
    ) -> sa.Select[Any]:
        table = trial.c
        whole = (
            table.id, table.sweep_id, table.cell, table.candidate, table.repeat, table.state, table.diverged,
            table.reused, table.score, table.seconds, table.started, table.ended,
        )  # fmt: skip
        return sa.select(*whole, *(made.label(name) for name, made in (labels | numbers).items()))

    def _candidates(
        self, trials: sa.Subquery, labels: Iterable[str], numbers: Iterable[str], shared: All
    ) -> sa.Select[Any]:
        table, func = trials.c, sa.func
        states = [(func.max(sa.case((table.state == state, 1), else_=0)) == 1, state.value) for state in _OF_CANDIDATES]
        where = (func.min(table.id).label("id"), table.sweep_id, table.cell, table.candidate)
        whole = {
            "state": sa.case(*states, else_=TrialState.FINISHED.value),
            "diverged": func.max(sa.case((table.diverged, 1), else_=0)) == 1,
            "reused": func.min(sa.case((table.reused, 1), else_=0)) == 1,
            "score": _mean(table.score), "seconds": _mean(table.seconds),
            "started": func.min(table.started), "ended": func.max(table.ended),
        }  # fmt: skip
        # A hundred thousand trials are gone through: what nobody names is not made of them.
        named = {*self._known, *(["diverged"] if "state" in self._known else [])}
        own = [made.label(name) for name, made in whole.items() if name in named]
        # The mean of ten times 0.1 is not 0.1: what all have the same of is taken as it is.
        same = {f"number_of_{at}" for column, at in self._known.values() if column.role in _SHARED_ROLES}
        read = [func.max(table[name]).label(name) for name in labels]
        read += [(func.max(table[name]) if name in same else _mean(table[name])).label(name) for name in numbers]
        query = sa.select(*where, *own, *read).where(self._compiled(trials, shared))
        return query.group_by(table.sweep_id, table.cell, table.candidate)


def _mean(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.func.avg(column, type_=sa.Float(53))


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
        means = {name: _mean_of(values) for name, values in numbers.items()}
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


def _mean_of(values: Sequence[float | None]) -> float | None:
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


_SPREAD, _RING = 2_654_435_761, 2**32
"""Knuth's: a row's place in the drawing of lots depends on its number alone, so that the same rows are drawn again."""


class PlotReader(Access):
    """Reads what plots draw."""

    def points(self, sought: Sought, numbers: Sequence[str], label: str = "") -> Points:
        """Rows that have all these numbers, as `trial`, `sweep`, `v0`, `v1`, ... and `colour`."""
        with self._database.reading() as connection:
            listed = _listed(connection, sought)
            read = [_number(listed, name) for name in numbers]
            whole = sa.and_(listed.condition, *(one.is_not(None) for one in read))
            number = listed.rows.c.id
            lot = (sa.cast(number, sa.BigInteger) * _SPREAD) % _RING
            columns = [one.label(f"v{at}") for at, one in enumerate(read)]
            query = sa.select(number.label("trial"), listed.rows.c.sweep_id.label("sweep"), *columns).where(whole)
            if label:
                query = query.add_columns(_label(listed, label).label("colour"))
            rows = connection.execute(query.order_by(lot).limit(MOST_POINTS + 1)).mappings().all()
            total = len(rows)
            if total > MOST_POINTS:
                counted = sa.select(sa.func.count()).select_from(listed.rows).where(whole)
                total = int(connection.execute(counted).scalar_one())
        return Points(sorted((dict(row) for row in rows[:MOST_POINTS]), key=lambda row: row["trial"]), total)

    def labelled(self, sought: Sought, number: str, names: Sequence[str]) -> Points:
        """Rows that have the number, as `v0`, with their labels as `k0`, `k1`, ...: null where a row lacks one."""
        with self._database.reading() as connection:
            listed = _listed(connection, sought)
            value = _number(listed, number)
            whole = sa.and_(listed.condition, value.is_not(None))
            labels = [_label(listed, name).label(f"k{at}") for at, name in enumerate(names)]
            lot = (sa.cast(listed.rows.c.id, sa.BigInteger) * _SPREAD) % _RING
            query = sa.select(value.label("v0"), *labels).where(whole).order_by(lot).limit(MOST_POINTS)
            rows = [dict(row) for row in connection.execute(query).mappings()]
            counted = sa.select(sa.func.count()).select_from(listed.rows).where(whole)
            return Points(rows, int(connection.execute(counted).scalar_one()))

    def means(self, sought: Sought, by: Sequence[str], number: str) -> Points:
        """Means of a number over the rows of equal labels, as `k0`, `k1`, ..., `mean`, `std` (none of one) and `n`."""
        with self._database.reading() as connection:
            listed = _listed(connection, sought)
            value = _number(listed, number)
            keys = [_label(listed, name) for name in by]
            whole = (listed.condition, value.is_not(None), *(key.is_not(None) for key in keys))
            mean, square = (sa.func.avg(one, type_=sa.Float(53)) for one in (value, value * value))
            columns = [key.label(f"k{at}") for at, key in enumerate(keys)]
            query = sa.select(*columns, mean.label("mean"), square.label("square"), sa.func.count().label("n"))
            query = query.where(*whole).group_by(*keys).order_by(*keys).limit(MOST_POINTS)
            rows = [dict(row) for row in connection.execute(query).mappings()]
        for row in rows:
            count, spread = row["n"], max(0.0, row.pop("square") - row["mean"] ** 2)
            row["std"] = (spread * count / (count - 1)) ** 0.5 if count > 1 else None
        return Points(rows, sum(row["n"] for row in rows))

    def history(self, sought: Sought, number: str, label: str, *, higher: bool) -> Points:
        """Rows in the order in which they ended, each with the `best` of its colour until then."""
        with self._database.reading() as connection:
            listed = _listed(connection, sought)
            value, table = _number(listed, number), listed.rows.c
            colour = _label(listed, label)
            order = (table.ended, table.id)
            best = (sa.func.max if higher else sa.func.min)(value).over(partition_by=colour, order_by=order)
            place = sa.func.row_number().over(partition_by=colour, order_by=order)
            query = sa.select(
                table.id.label("trial"), table.sweep_id.label("sweep"), colour.label("colour"), value.label("v0"),
                best.label("best"), place.label("place"),
            ).where(listed.condition, value.is_not(None), table.ended.is_not(None))  # fmt: skip
            rows = query.subquery("rows")
            lot = (sa.cast(rows.c.trial, sa.BigInteger) * _SPREAD) % _RING
            # What made a new best is drawn before others: between two of these the line is level.
            drawn = sa.select(rows).order_by(sa.case((rows.c.v0 == rows.c.best, 0), else_=1), lot)
            points = [dict(row) for row in connection.execute(drawn.limit(MOST_POINTS)).mappings()]
            total = int(connection.execute(sa.select(sa.func.count()).select_from(rows)).scalar_one())
        return Points(sorted(points, key=lambda row: (str(row["colour"]), row["place"])), total)


def _listed(connection: sa.Connection, sought: Sought) -> ListedRows:
    if sought.sweep is not None:
        require_sweep(connection, sought.sweep)
    return ListedRows(connection, sought)


def _number(listed: ListedRows, name: str) -> sa.ColumnElement[Any]:
    number = listed.number(name)
    if number is None:
        raise InvalidFilterError(f"`{name}` has no numbers to draw", 0, "plot")
    return number


def _label(listed: ListedRows, name: str) -> sa.ColumnElement[Any]:
    label = sa.cast(listed.rows.c.sweep_id, sa.String) if name == "sweep" else listed.label(name)
    if label is None:
        raise InvalidFilterError(f"`{name}` has no labels to tell rows apart by", 0, "plot")
    return label


def _its(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(table.c[name] == sa.bindparam(name) for name in ("kind", "sweep_id", "entity"))


_NOTE: Final = sa.select(note).where(*_its(note))
_TAGS: Final = sa.select(tag.c.tag).where(*_its(tag)).order_by(tag.c.tag)


class Remarks(Access):
    """Reads and writes what people say."""

    def of(self, kind: Remarked, sweep: int, entity: int) -> Remark:
        """The note and tags of a sweep, a cell or a trial; raises NotFoundError."""
        with self._database.reading() as connection:
            _require(connection, kind, sweep, entity)
            whose = {"kind": kind, "sweep_id": sweep, "entity": entity}
            said = connection.execute(_NOTE, whose).one_or_none()
            known = list(connection.execute(_TAGS, whose).scalars())
        if said is None:
            return Remark(tags=known)
        return Remark(note=said.text, tags=known, actor=said.actor, changed=said.changed)

    def put(
        self, where: tuple[Remarked, int, int], text: str | None, tags: TagChange | None, actor: str | None
    ) -> None:
        """Set the note, change the tags, or both; an empty note is none. Raises NotFoundError, and ConflictError."""
        kind, sweep, entity = where
        with self._database.writing() as connection:
            changes.alone(connection)  # its deletion, or another's remark, comes before or after
            if caller().user is not None:
                require_steered(connection, sweep)
            _require(connection, kind, sweep, entity)
            require_lasting(connection, sweep)
            keys = {"kind": kind, "sweep_id": sweep, "entity": entity}
            if text is not None and not text:
                connection.execute(sa.delete(note).where(*_its(note)), keys)
            elif text is not None:
                said = {"text": text, "actor": actor, "changed": datetime.now(UTC)}
                adding = insertion(connection, note).values(**keys, **said)
                connection.execute(adding.on_conflict_do_update(index_elements=list(keys), set_=said))
            if tags is not None:
                words = tags.of(list(connection.execute(_TAGS, keys).scalars()))
                if len(words) > MOST_TAGS:
                    raise ConflictError(f"there would be {len(words)} tags, and there may be {MOST_TAGS}; remove some")
                connection.execute(sa.delete(tag).where(*_its(tag)), keys)
                rows = [{**keys, "tag": one} for one in words]
                if rows:
                    connection.execute(sa.insert(tag), rows)
            changes.note(connection, ChangeKind(kind), sweep, entity)
            target = f"sweep {sweep}" if kind == "sweep" else f"sweep {sweep}, {kind} {entity}"
            tell(connection, "remark", target, actor=actor)

    def sweep_of(self, number: int) -> int:
        """The sweep of a trial; raises NotFoundError."""
        with self._database.reading() as connection:
            query = sa.select(trial.c.sweep_id).where(trial.c.id == number)
            sweep = connection.execute(query).scalar_one_or_none()
        if sweep is None:
            raise NotFoundError(f"no trial {number}")
        return int(sweep)


def _require(connection: sa.Connection, kind: Remarked, sweep: int, entity: int) -> None:
    require_sweep(connection, sweep)
    if kind == "cell":
        query = sa.select(cell.c.cell).where(cell.c.sweep_id == sweep, cell.c.cell == entity)
        if connection.execute(query).first() is None:
            raise NotFoundError(f"sweep {sweep} has no cell {entity}")
