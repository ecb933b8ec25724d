"""Lists trials and candidates of any sweeps, with plots; reads and writes notes and tags."""

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import changes, schema
from orchestrator.record.accounts import audit_event, require_steered
from orchestrator.record.columns import UtcTime
from orchestrator.record.database import Access, decode, encode, require_lasting, require_sweep, upsert, with_labels
from orchestrator.record.filters import FilterCompiler, Resolved, TrialColumns, fixed, sweeps_of
from orchestrator.record.schema import cell, note, tag, trial
from orchestrator.record.trials import of_trial, of_whole
from orchestrator.views.accounts import caller
from orchestrator.views.errors import ConflictError, InvalidFilterError, NotFoundError
from orchestrator.views.filters import All, Condition, Filter, Word, conditions
from orchestrator.views.pages import MOST_TAGS, AnnotatedKind, Annotation, TagChange
from orchestrator.views.runs import ChangeKind
from orchestrator.views.states import TrialState
from orchestrator.views.trials import MOST_POINTS, SORTED, Listed, ListedColumn, ListedRow, Listing, Points, RowGroup
from workers.catalog import suggestion

_SORT_LETTERS: Final = 60
"""Characters of a text by which rows are sorted, which limits the size of a cursor."""
_OF_CANDIDATES: Final = (
    TrialState.RUNNING, TrialState.WAITING, TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED,
)  # fmt: skip
"""A candidate has the first of these states that one of its trials has."""
_SHARED_ROLES: Final = ("compare", "tune")
_SHARED_NAMES: Final = ("sweep", "cell", "candidate")
"""Columns in which all trials of a candidate agree."""

_MOST_GROUPS: Final = 200
MOST_METRICS: Final = 24
"""Metrics in one listing."""
_SELECTED: Final = ("score", "seconds")
_Place = tuple[str, int, int]
"""Kind, sweep and number of an entity with tags or a note."""

_SPREAD, _RING = 2_654_435_761, 2**32
"""Knuth's hash: a pseudo-random sample that depends on the rows' numbers only, so that it is the same each time."""


@dataclass
class RowQuery:
    """The query of a list: the trials or candidates that meet a filter."""

    where: Filter
    kind: Listed = "trials"
    sweep: int | None = None
    names: tuple[str, ...] = ()
    """Columns in addition to those that the filter names."""
    path: str = "sort"
    """The request's parameter with these names, for error messages."""

    @property
    def sweeps(self) -> set[int] | None:
        """The sweeps to which the query is limited; `None` means all sweeps."""
        within = sweeps_of(self.where)
        if self.sweep is None:
            return within
        return {self.sweep} if within is None else within & {self.sweep}


class ListingReader(Access):
    """Reads pages of trials or candidates that meet a filter."""

    def columns(self, sweep: int | None) -> list[ListedColumn]:
        """The columns by which a sweep's trials, or all trials, can be filtered; raises NotFoundError."""
        with self._database.reading() as connection:
            if sweep is not None:
                require_sweep(connection, sweep)
            return TrialColumns(connection, None if sweep is None else {sweep}).listed()

    def tables(self, sweep: int) -> list[dict[str, Any]]:
        """The tables that a sweep's spec defines; empty if there is no such sweep."""
        spec = self._scalar(sa.select(schema.sweep.c.spec).where(schema.sweep.c.id == sweep)) or {}
        return list((spec.get("tables") or {}).values())

    def page(
        self, wanted: RowQuery, sort: str, metrics: Sequence[str], cursor: str | None, limit: int, *, count: bool
    ) -> Listing:
        """A page of trials or candidates; raises InvalidFilterError, NotFoundError.

        `sort` is a column, descending with a leading `-`; `metrics` are the columns to show; `count`: with the total
        number.
        """
        if len(metrics) > MOST_METRICS:
            raise InvalidFilterError(
                f"{len(metrics)} metrics as columns; at most {MOST_METRICS} can be shown", 0, "columns"
            )
        name, down = sort.removeprefix("-"), sort.startswith("-")
        with self._database.reading() as connection:
            wanted.names = (name,)
            listed = _listed(connection, wanted)
            by = listed.sorting(name)
            query = sa.select(listed.rows.c.id, by.label("by")).where(listed.condition)
            # Candidates are computed once, to be counted and sorted.
            once = count and wanted.kind == "candidates"
            matching = query.cte("matching") if once else query.subquery("matching")
            by, number = matching.c.by, matching.c.id
            way = by.desc() if down else by
            # Numbers are unique, so that an index gives the newest page. Any other column has nulls last.
            unique = name == "trial"
            order = [way] if unique else [way.nulls_last(), number]
            ordered = sa.select(number, by).order_by(*order).limit(limit + 1)
            if cursor is not None:
                ordered = ordered.where(_after(cursor, by, number, down=down, unique=unique))
            counting = sa.select(sa.func.count()).select_from(matching)
            if once:
                ordered = ordered.add_columns(counting.scalar_subquery().label("total"))
            numbered = connection.execute(ordered).all()
            total = None
            if count:
                total = int(numbered[0].total if once and numbered else connection.execute(counting).scalar_one())
            rows = _Filled(connection, wanted, metrics, listed.columns).rows([row.id for row in numbered[:limit]])
        following = None
        if len(numbered) > limit:
            last = numbered[limit - 1]
            following = encode([last.by.isoformat() if isinstance(last.by, datetime) else last.by, last.id])
        return Listing(items=rows, next_cursor=following, total=total, metrics=list(metrics))

    def groups(self, wanted: RowQuery, by: str, metrics: Sequence[str]) -> list[RowGroup]:
        """The rows by their label in the column `by`, the first 200 groups; raises InvalidFilterError, NotFoundError.

        Each has the means of the score and of `metrics` over the rows that have them.
        """
        names = dict.fromkeys(["score", *metrics])
        wanted.names, wanted.path = (by, *names), "group"
        with self._database.reading() as connection:
            listed = _listed(connection, wanted)
            label = _label(listed, by, "group")
            query = sa.select(label.label("label"), sa.func.count().label("rows"))
            numbers = {name: number for name in names if (number := listed.number(name)) is not None}
            for number in numbers.values():
                query = query.add_columns(sa.func.count(number), _mean(number), _mean(number * number))
            rows = connection.execute(query.where(listed.condition).group_by(label).limit(_MOST_GROUPS)).tuples().all()
        found = []
        for text, count, *moments in rows:
            group = RowGroup(label=text, rows=count, values=dict.fromkeys(names))
            for name, n, mean, square in zip(numbers, moments[::3], moments[1::3], moments[2::3], strict=True):
                group.values[name] = mean
                if n > 1:
                    group.deviations[name] = (max(0.0, square - mean**2) * n / (n - 1)) ** 0.5
            found.append(group)
        return sorted(found, key=lambda group: _in_order(group.label))


_ITSELF: Final = (
    trial.c.id, trial.c.sweep_id, trial.c.cell, trial.c.candidate, trial.c.repeat, trial.c.state, trial.c.diverged,
    trial.c.reused, trial.c.score, trial.c.seconds, trial.c.started, trial.c.ended,
)  # fmt: skip


class ListedRows:
    """Trials or candidates as an SQL subquery, `rows`, and the condition of a filter on them, `condition`."""

    def __init__(self, connection: sa.Connection, wanted: RowQuery) -> None:
        self.columns = TrialColumns(connection, wanted.sweeps)
        self._known: dict[str, tuple[Resolved, int]] = {}
        self._kind = wanted.kind
        parts = list(conditions(wanted.where))
        for part in parts:
            if isinstance(part, Condition):
                self._have(part.name, part.at, "where")
        for name in wanted.names:
            self._have(name, 0, wanted.path)
        self._places = self.columns.label_places() if any(isinstance(part, Word) for part in parts) else []
        self._sqlite = connection.dialect.name == "sqlite"
        self._whole = of_whole(connection, wanted.sweeps)
        shared, rest = self._parted(wanted.where)
        self.rows = self._query(wanted.sweeps, shared).subquery("listed")
        self.condition = self._compiled(self.rows, rest)

    def _compiled(self, rows: sa.FromClause, where: Filter) -> sa.ColumnElement[bool]:
        return FilterCompiler(rows, self._known, self._places, sqlite=self._sqlite).condition(where)

    def _parted(self, where: Filter) -> tuple[All, All]:
        """The parts of a filter to apply to trials before they are grouped to candidates, and the other parts."""
        parts = where.parts if isinstance(where, All) else (where,)
        shared = tuple(part for part in parts if self._kind == "candidates" and self._is_shared(part))
        return All(shared), All(tuple(part for part in parts if part not in shared))

    def _is_shared(self, part: Filter) -> bool:
        """Whether the part is true for all trials of a candidate or for none."""
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
            raise InvalidFilterError(f"`{name}` differs between the repeats of a candidate", at, path)
        self._known[name] = (column, len(self._known))

    def role(self, name: str) -> str:
        """The role of a column: compare, tune, repeat, metric, fixed or searched."""
        return self._known[name][0].role

    def number(self, name: str) -> sa.ColumnElement[Any] | None:
        """SQL for the number of a row in a column."""
        column, at = self._known[name]
        if name in ("score", "seconds", "trial", "sweep", "cell", "candidate", "repeat"):
            return self.rows.c[fixed(name)]
        return self.rows.c[f"number_of_{at}"] if column.numbers else None

    def label(self, name: str) -> sa.ColumnElement[Any] | None:
        """SQL for the label of a row in a column."""
        column, at = self._known[name]
        if name == "state":
            return self.rows.c.state
        return self.rows.c[f"label_of_{at}"] if column.labels else None

    def sorting(self, name: str) -> sa.ColumnElement[Any]:
        """SQL for the values of a column to sort by; raises InvalidFilterError if it cannot be sorted by."""
        column, _ = self._known[name]
        if column.role == "fixed" and name in SORTED:
            return self.rows.c[fixed(name)]
        number, label = self.number(name), self.label(name)
        if column.role not in ("fixed", "searched") and number is not None:
            return number
        if column.role in ("fixed", "searched") or label is None:
            raise InvalidFilterError(
                f"rows are not sorted by `{name}`; sort by an axis, a metric or `score`", 0, "sort"
            )
        return sa.func.substr(label, 1, _SORT_LETTERS)

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
        read = (made.label(name) for name, made in (labels | numbers).items())
        query = sa.select(*_ITSELF, *read).where(*self._whole)
        if sweeps is not None and not sweeps:
            query = query.where(sa.false())
        elif sweeps is not None:
            several = trial.c.sweep_id.in_(sorted(sweeps))
            query = query.where(trial.c.sweep_id == min(sweeps) if len(sweeps) == 1 else several)
        return query if self._kind == "trials" else self._candidates(query.subquery("one"), labels, numbers, shared)

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
        # Only the named columns, since there may be a hundred thousand trials.
        named = {*self._known, *(["diverged"] if "state" in self._known else [])}
        own = [made.label(name) for name, made in whole.items() if name in named]
        # The mean of ten times 0.1 is not 0.1: a shared number is taken from one trial.
        same = {f"number_of_{at}" for column, at in self._known.values() if column.role in _SHARED_ROLES}
        read = [func.max(table[name]).label(name) for name in labels]
        read += [(func.max(table[name]) if name in same else _mean(table[name])).label(name) for name in numbers]
        query = sa.select(*where, *own, *read).where(self._compiled(trials, shared))
        return query.group_by(table.sweep_id, table.cell, table.candidate)


def _mean(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.func.avg(column, type_=sa.Float(53))


def _after(
    cursor: str, by: sa.ColumnElement[Any], number: sa.ColumnElement[int], *, down: bool, unique: bool
) -> sa.ColumnElement[bool]:
    """The condition for the rows after a cursor."""
    value, last = decode(cursor, partial(_sorted_by, by))
    if value is None:
        return sa.and_(by.is_(None), number > last)
    beyond: sa.ColumnElement[bool] = by < value if down else by > value
    if unique:
        return beyond
    return sa.or_(beyond, sa.and_(by == value, number > last), by.is_(None))


def _sorted_by(by: sa.ColumnElement[Any], cursor: Any) -> tuple[Any, int]:
    """The sort value and number of the last row of the page before; raises ValueError or TypeError."""
    value, last = cursor
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


class _Filled:
    """Reads everything that is shown of the rows of one page."""

    def __init__(
        self, connection: sa.Connection, wanted: RowQuery, metrics: Sequence[str], columns: TrialColumns
    ) -> None:
        self._connection, self._of_candidates = connection, wanted.kind == "candidates"
        self._metrics: dict[str, sa.ColumnElement[Any]] = {}
        for name in metrics:
            column = columns.resolve(name, 0, "columns")
            number = column.number if column.role == "metric" else None
            if number is None:
                known = [listed.name for listed in columns.listed() if listed.role == "metric"]
                message = f"`{name[:80]}` is no metric, and every row shows the rest anyhow; {suggestion(name, known)}"
                raise InvalidFilterError(message, 0, "columns")
            self._metrics[name] = number

    def rows(self, ids: Sequence[int]) -> list[ListedRow]:
        """The rows of these trials, or of their candidates, in this order."""
        if not ids:
            return []
        trials: dict[tuple[int, int, int] | int, list[sa.Row[Any]]] = defaultdict(list)
        for row in self._connection.execute(self._query(ids)):
            trials[(row.sweep_id, row.cell, row.candidate) if self._of_candidates else row.id].append(row)
        by_id = {rows[0].id: rows for rows in trials.values()}
        annotations = _annotations(self._connection, [row for rows in by_id.values() for row in rows])
        return [self._row(by_id[number], annotations) for number in ids if number in by_id]

    def _query(self, ids: Sequence[int]) -> sa.Select[Any]:
        table = trial.c
        query = with_labels(
            sa.select(
                *_ITSELF, table.repeat_labels, schema.sweep.c.name.label("sweep_name"),
                *(number.label(f"metric_{at}") for at, number in enumerate(self._metrics.values())),
            ).select_from(trial)
        ).join(schema.sweep, schema.sweep.c.id == table.sweep_id).order_by(table.id)  # fmt: skip
        if not self._of_candidates:
            return query.where(table.id.in_(ids))
        first = trial.alias()
        same = (
            first.c.sweep_id == table.sweep_id, first.c.cell == table.cell, first.c.candidate == table.candidate,
        )  # fmt: skip
        return query.join(first, sa.and_(*same)).where(first.c.id.in_(ids))

    def _row(self, trials: Sequence[sa.Row[Any]], annotations: Mapping[_Place, tuple[list[str], str]]) -> ListedRow:
        first = trials[0]
        numbers = {name: [getattr(row, name) for row in trials] for name in _SELECTED}
        numbers |= {name: [getattr(row, f"metric_{at}") for row in trials] for at, name in enumerate(self._metrics)}
        known = {name: [value for value in values if value is not None] for name, values in numbers.items()}
        means = {name: statistics.fmean(values) if values else None for name, values in known.items()}
        deviations = {name: statistics.stdev(values) for name, values in known.items() if len(values) > 1}
        states = [str(row.state) for row in trials]
        several = self._of_candidates
        labels = first.cell_labels | first.candidate_labels | ({} if several else first.repeat_labels)
        return ListedRow(
            sweep=first.sweep_id, sweep_name=first.sweep_name, cell=first.cell, candidate=first.candidate,
            trial=first.id, repeat=None if several else first.repeat, labels=labels,
            state=next((state.value for state in _OF_CANDIDATES if state in states), TrialState.FINISHED.value),
            diverged=any(row.diverged for row in trials), reused=all(row.reused for row in trials),
            trials=len(trials), finished=states.count(TrialState.FINISHED), score=means["score"],
            seconds=means["seconds"], started=min((row.started for row in trials if row.started), default=None),
            ended=max((row.ended for row in trials if row.ended), default=None),
            values={name: means[name] for name in self._metrics}, deviations=deviations if several else {},
            tags=sorted(
                {tag for row in trials for place in _places(row) for tag in annotations.get(place, ([], ""))[0]}
            ),
            note=next(filter(None, (annotations.get(_places(row)[0], ([], ""))[1] for row in trials)), ""),
        )  # fmt: skip


def _annotations(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> dict[_Place, tuple[list[str], str]]:
    """The tags and the note of each place of the rows."""
    entities = sorted({place[2] for row in rows for place in _places(row)})
    sweeps = sorted({row.sweep_id for row in rows})
    annotations: dict[_Place, tuple[list[str], str]] = {}
    for table in (tag, note):
        mine = (table.c.sweep_id.in_(sweeps), table.c.entity.in_(entities))
        for row in connection.execute(sa.select(table).where(*mine)):
            tags, text = annotations.get((row.kind, row.sweep_id, row.entity), ([], ""))
            place = (row.kind, row.sweep_id, row.entity)
            annotations[place] = ([*tags, row.tag], text) if table is tag else (tags, row.text)
    return annotations


def _places(row: sa.Row[Any]) -> list[_Place]:
    """The places of a trial's tags: itself, its cell and its sweep."""
    sweep = row.sweep_id
    return [("trial", sweep, row.id), ("cell", sweep, row.cell), ("sweep", sweep, sweep)]


class PlotReader(Access):
    """Reads the points of plots of trials or candidates."""

    def points(self, wanted: RowQuery, numbers: Sequence[str], label: str = "", labels: Sequence[str] = ()) -> Points:
        """The points of a plot: rows with all these numbers, as `trial`, `sweep`, `v0`, `v1`, ... and `colour`.

        `label` is the column of the colour; `labels` are further columns, which may be null: `k0`, `k1`, ...
        """
        with self._database.reading() as connection:
            listed = _listed(connection, wanted)
            read = [_number(listed, name) for name in numbers]
            whole = sa.and_(listed.condition, *(value.is_not(None) for value in read))
            number = listed.rows.c.id
            columns = [value.label(f"v{at}") for at, value in enumerate(read)]
            columns += [_label(listed, name).label(f"k{at}") for at, name in enumerate(labels)]
            query = sa.select(number.label("trial"), listed.rows.c.sweep_id.label("sweep"), *columns).where(whole)
            if label:
                query = query.add_columns(_label(listed, label).label("colour"))
            rows = connection.execute(query.order_by(_lot(number)).limit(MOST_POINTS + 1)).mappings().all()
            total = len(rows)
            if total > MOST_POINTS:
                counted = sa.select(sa.func.count()).select_from(listed.rows).where(whole)
                total = int(connection.execute(counted).scalar_one())
        return Points(sorted((dict(row) for row in rows[:MOST_POINTS]), key=lambda row: row["trial"]), total)

    def means(self, wanted: RowQuery, by: Sequence[str], number: str, *further: str) -> Points:
        """The means of a column over rows with equal labels, for plots.

        As `k0`, `k1`, ..., `mean`, `std` (null if n is 1) and `n`.

        Means of further numbers are `v1`, `v2`, ...; rows count if they have all numbers.
        """
        with self._database.reading() as connection:
            listed = _listed(connection, wanted)
            value, *others = (_number(listed, name) for name in (number, *further))
            keys = [_label(listed, name) for name in by]
            whole = (listed.condition, *(column.is_not(None) for column in (value, *others, *keys)))
            columns = [key.label(f"k{at}") for at, key in enumerate(keys)]
            means = [_mean(value).label("mean"), _mean(value * value).label("square")]
            means += [_mean(other).label(f"v{at}") for at, other in enumerate(others, start=1)]
            query = sa.select(*columns, *means, sa.func.count().label("n"))
            query = query.where(*whole).group_by(*keys).order_by(*keys).limit(MOST_POINTS)
            rows = [dict(row) for row in connection.execute(query).mappings()]
        for row in rows:
            count, spread = row["n"], max(0.0, row.pop("square") - row["mean"] ** 2)
            row["std"] = (spread * count / (count - 1)) ** 0.5 if count > 1 else None
        return Points(rows, sum(row["n"] for row in rows))

    def history(self, wanted: RowQuery, number: str, label: str, *, higher: bool) -> Points:
        """The rows in the order in which they ended, each with the best value of its colour until then as `best`."""
        with self._database.reading() as connection:
            listed = _listed(connection, wanted)
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
            # New best values come first: between two of them, the line is level.
            drawn = sa.select(rows).order_by(sa.case((rows.c.v0 == rows.c.best, 0), else_=1), _lot(rows.c.trial))
            points = [dict(row) for row in connection.execute(drawn.limit(MOST_POINTS)).mappings()]
            total = int(connection.execute(sa.select(sa.func.count()).select_from(rows)).scalar_one())
        return Points(sorted(points, key=lambda row: (str(row["colour"]), row["place"])), total)


def _in_order(label: str | None) -> tuple[bool, float, str]:
    """Sorts labels: numbers, then texts, then `None`."""
    try:
        return label is None, math.inf if label is None else float(label), label or ""
    except ValueError:
        return False, math.inf, label or ""


def _lot(number: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return (sa.cast(number, sa.BigInteger) * _SPREAD) % _RING


def _listed(connection: sa.Connection, wanted: RowQuery) -> ListedRows:
    if wanted.sweep is not None:
        require_sweep(connection, wanted.sweep)
    return ListedRows(connection, wanted)


def _number(listed: ListedRows, name: str) -> sa.ColumnElement[Any]:
    number = listed.number(name)
    if number is None:
        raise InvalidFilterError(f"`{name}` has no numbers to draw; choose a metric or an axis of numbers", 0, "plot")
    return number


def _label(listed: ListedRows, name: str, path: str = "plot") -> sa.ColumnElement[Any]:
    label = sa.cast(listed.rows.c.sweep_id, sa.String) if name == "sweep" else listed.label(name)
    if label is None:
        raise InvalidFilterError(f"`{name}` has no labels to group rows by; choose an axis", 0, path)
    return label


class Annotations(Access):
    """Reads and writes the notes and tags that people give sweeps, cells and trials."""

    def of(self, kind: AnnotatedKind, sweep: int, entity: int) -> Annotation:
        """The note and tags of a sweep, a cell or a trial; raises NotFoundError."""
        with self._database.reading() as connection:
            _require(connection, kind, sweep, entity)
            row = connection.execute(sa.select(note).where(*_its(note, kind, sweep, entity))).one_or_none()
            known = _tags(connection, kind, sweep, entity)
        if row is None:
            return Annotation(tags=known)
        return Annotation(note=row.text, tags=known, actor=row.actor, changed=row.changed)

    def put(
        self, where: tuple[AnnotatedKind, int, int], text: str | None, tags: TagChange | None, actor: str | None
    ) -> None:
        """Replace the note of a sweep, cell or trial (deleted if empty), change its tags, or both.

        Raises NotFoundError, ConflictError.
        """
        kind, sweep, entity = where
        with self._database.writing() as connection:
            changes.lock_changes(connection)  # not at the same time as its deletion or another annotation
            if not caller().is_owner:
                require_steered(connection, sweep)
            _require(connection, kind, sweep, entity)
            require_lasting(connection, sweep)
            keys = {"kind": kind, "sweep_id": sweep, "entity": entity}
            if text is not None and not text:
                connection.execute(sa.delete(note).where(*_its(note, *where)))
            elif text is not None:
                upsert(connection, note, keys, {"text": text, "actor": actor, "changed": datetime.now(UTC)})
            if tags is not None:
                words = tags.of(_tags(connection, *where))
                if len(words) > MOST_TAGS:
                    raise ConflictError(f"{len(words)} tags are more than the allowed {MOST_TAGS}; remove some")
                connection.execute(sa.delete(tag).where(*_its(tag, *where)))
                if words:
                    connection.execute(sa.insert(tag), [{**keys, "tag": word} for word in words])
            changes.note(connection, ChangeKind(kind), sweep, entity)
            target = f"sweep {sweep}" if kind == "sweep" else f"sweep {sweep}, {kind} {entity}"
            audit_event(connection, "annotation", target, actor=actor)

    def sweep_of(self, number: int) -> int:
        """The number of the sweep that a trial belongs to; raises NotFoundError."""
        with self._database.reading() as connection:
            return of_trial(connection, number, trial.c.sweep_id)


def _require(connection: sa.Connection, kind: AnnotatedKind, sweep: int, entity: int) -> None:
    require_sweep(connection, sweep)
    if kind == "cell":
        query = sa.select(cell.c.cell).where(cell.c.sweep_id == sweep, cell.c.cell == entity)
        if connection.execute(query).first() is None:
            raise NotFoundError(f"sweep {sweep} has no cell {entity}")


def _its(table: sa.Table, kind: str, sweep: int, entity: int) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.kind == kind, table.c.sweep_id == sweep, table.c.entity == entity


def _tags(connection: sa.Connection, kind: str, sweep: int, entity: int) -> list[str]:
    return list(connection.scalars(sa.select(tag.c.tag).where(*_its(tag, kind, sweep, entity)).order_by(tag.c.tag)))
