"""Translates filters of trials to SQL: column names, and conditions."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.columns import number_in
from orchestrator.record.schema import NUMBERS, note, tag, training, trial, trial_column
from orchestrator.views.errors import InvalidFilterError
from orchestrator.views.filters import All, Condition, Either, Filter, Not, Word
from orchestrator.views.states import TrialState
from orchestrator.views.trials import FIXED, SEARCHED, ListedColumn
from workers.catalog import suggestion

_PREFERRED: Final = ("best/test", "last/test", "best/validation", "last/validation")
"""The meaning of a metric's bare name: the first of these that its sweep has."""

Arms = Mapping[int, Sequence[int] | None]
"""By number of `label_n` or `number_n`, the sweeps that keep the column there; `None` for all requested sweeps."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The columns that a name in a filter refers to, with their role."""

    name: str
    role: str  # fixed, searched, compare, tune, repeat, metric
    labels: Arms
    numbers: Arms

    @property
    def label(self) -> sa.ColumnElement[Any] | None:
        """SQL for the label of a trial in this column; `None` if the column has no labels."""
        return _at("label", self.labels)

    @property
    def number(self) -> sa.ColumnElement[Any] | None:
        """SQL for the number of a trial in this column; `None` if the column has no numbers."""
        return _at("number", self.numbers)


class TrialColumns:
    """The filterable columns of the given sweeps; `None` means all sweeps."""

    def __init__(self, connection: sa.Connection, sweeps: Collection[int] | None) -> None:
        self._connection, self._sweeps = connection, sweeps
        table = trial_column
        query = sa.select(
            table.c.key, table.c.role, sa.func.max(table.c.label).label("label"),
            sa.func.max(table.c.number).label("number"),
        ).group_by(table.c.key, table.c.role)  # fmt: skip
        self._rows = connection.execute(self._mine(query)).all()
        self._roles: dict[str, str] = {}
        for row in self._rows:
            self._roles.setdefault(row.key, row.role)

    def listed(self) -> list[ListedColumn]:
        """The columns by which trials can be filtered: axes first, then metrics."""
        short = self._short_names()
        order = {"compare": 0, "tune": 1, "repeat": 2, "metric": 3}
        rows = sorted(self._rows, key=lambda row: (order.get(row.role, 4), row.label or 0, row.number or 0, row.key))
        return [
            ListedColumn(
                key=row.key, name=short.get(row.key, row.key), role=row.role, numeric=row.number is not None,
                labelled=row.label is not None,
            )
            for row in rows
            if row.label is not None or row.number is not None
        ]  # fmt: skip

    def resolve(self, name: str, at: int = 0, path: str = "where") -> Resolved:
        """The columns that a name in a filter refers to; raises InvalidFilterError with a suggestion."""
        if name in FIXED or name in SEARCHED:
            return Resolved(name, "fixed" if name in FIXED else "searched", {}, {})
        keys = self._keys(name, at, path)
        table = trial_column
        query = sa.select(table.c.sweep_id, table.c.key, table.c.label, table.c.number).where(table.c.key.in_(keys))
        first: dict[int, sa.Row[Any]] = {}
        for row in self._connection.execute(self._mine(query)):
            known = first.get(row.sweep_id)
            if known is None or keys.index(row.key) < keys.index(known.key):
                first[row.sweep_id] = row
        if all(row.label is None and row.number is None for row in first.values()):
            message = f"`{name}` is not among the {NUMBERS} numbers of a sweep in lists; the trial's page shows it"
            raise InvalidFilterError(message, at, path)
        alone = self._sweeps is not None and set(first) == set(self._sweeps)
        labels, numbers = (_arms(first.values(), kind, alone) for kind in ("label", "number"))
        return Resolved(name, self._roles[keys[0]], labels, numbers)

    def label_places(self) -> list[int]:
        """The numbers `n` of all columns `label_n` that hold labels of axes."""
        query = sa.select(trial_column.c.label).where(trial_column.c.label.is_not(None)).distinct()
        return sorted(self._connection.scalars(self._mine(query)))

    def _mine(self, query: sa.Select[Any]) -> sa.Select[Any]:
        return query if self._sweeps is None else query.where(trial_column.c.sweep_id.in_(sorted(self._sweeps)))

    def _keys(self, name: str, at: int, path: str) -> list[str]:
        """The keys that a name may stand for, the preferred key first."""
        if name in self._roles:
            return [name]
        axes = [key for key, role in self._roles.items() if role != "metric" and key.rpartition(".")[2] == name]
        if len(axes) > 1:
            raise InvalidFilterError(f"`{name}` may be {' or '.join(sorted(axes))}; write one of these", at, path)
        if axes:
            return axes
        metrics = [key for key, role in self._roles.items() if role == "metric" and key.endswith(f"/{name}")]
        if metrics:
            preferred = [f"{where}/{name}" for where in _PREFERRED] + [f"{mark}/{name}" for mark in ("best", "last")]
            return sorted(metrics, key=lambda key: (preferred.index(key) if key in preferred else 9, key))
        known = {*FIXED, *SEARCHED, *self._roles, *self._short_names().values()}
        raise InvalidFilterError(
            f"no column `{name[:80]}` in these sweeps; {suggestion(name, sorted(known))}", at, path
        )

    def _short_names(self) -> dict[str, str]:
        """Keys by their last part, if that is unique; of a metric's keys, the preferred key has the bare name."""
        axes: dict[str, list[str]] = defaultdict(list)
        metrics: dict[str, list[str]] = defaultdict(list)
        for key, role in self._roles.items():
            if role == "metric":
                metrics[key.rpartition("/")[2]].append(key)
            else:
                axes[key.rpartition(".")[2]].append(key)
        taken = {*FIXED, *SEARCHED, *self._roles}
        short = {keys[0]: name for name, keys in axes.items() if len(keys) == 1 and name not in taken}
        for name, keys in metrics.items():
            best = next((f"{where}/{name}" for where in _PREFERRED if f"{where}/{name}" in keys), keys[0])
            if name not in taken and name not in axes:
                short[best] = name
        return short


def _arms(rows: Iterable[sa.Row[Any]], kind: str, alone: bool) -> Arms:
    places: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        if (place := getattr(row, kind)) is not None:
            places[place].append(row.sweep_id)
    return dict.fromkeys(places) if alone and len(places) == 1 else dict(places)


def _at(kind: str, arms: Arms) -> sa.ColumnElement[Any] | None:
    if not arms:
        return None
    cases = []
    for place, sweeps in arms.items():
        column = trial.c[f"{kind}_{place}"]
        if sweeps is None:
            return column
        # Literal numbers of ours: no database takes as many parameters as there are sweeps.
        inside = trial.c.sweep_id.in_(sa.bindparam(None, list(sweeps), expanding=True, literal_execute=True))
        cases.append((inside, column))
    return sa.case(*cases)


_STATES: Final = (*(state.value for state in TrialState), "diverged")
_WHOLE: Final = frozenset({"trial", "sweep", "cell", "candidate", "repeat"})
_MOMENTS: Final = frozenset({"started", "ended"})
_YES_NO: Final = frozenset({"reused", "diverged"})
_UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}

Sql = sa.ColumnElement[bool]


def sweeps_of(where: Filter) -> set[int] | None:
    """The sweeps to which a filter is limited (`sweep:7,9 ...`); `None` means all sweeps."""
    parts = where.parts if isinstance(where, All) else (where,)
    for part in parts:
        if not isinstance(part, Condition) or part.name != "sweep" or part.operator != "=":
            continue
        if all(re.fullmatch(r"[0-9]{1,9}", value) for value in part.values):
            return {int(value) for value in part.values}
    return None


def fixed(name: str) -> str:
    """The name in SQL of a column that every trial has."""
    return {"trial": "id", "sweep": "sweep_id"}.get(name, name)


class FilterCompiler:
    """Compiles filters to SQL conditions on rows of trials or candidates, with the columns of `ListedRows`."""

    def __init__(
        self, rows: sa.FromClause, columns: Mapping[str, tuple[Resolved, int]], places: list[int], *, sqlite: bool
    ) -> None:
        self._rows, self._columns, self._places, self._sqlite = rows, columns, places, sqlite
        self._of_trials = "repeat" in rows.c

    def condition(self, where: Filter) -> Sql:
        """The SQL condition of a filter; raises InvalidFilterError if a value does not fit its column."""
        match where:
            case All(parts):
                return sa.and_(sa.true(), *map(self.condition, parts))
            case Either(parts):
                return sa.or_(sa.false(), *map(self.condition, parts))
            case Not(part):
                return _negated(self.condition(part))
            case Word():
                return self._word(where)
            case Condition():
                return self._of(where)

    def _of(self, one: Condition) -> Sql:
        if one.operator == "!=":
            return _negated(self._of(Condition(one.name, "=", one.values, one.at)))
        column, number = self._columns[one.name]
        kinds: list[tuple[bool, Callable[[Condition, str], Sql]]] = [
            (one.name == "state", self._state),
            (one.name in _YES_NO, self._yes_no),
            (one.name == "trial" and not self._of_trials, self._has_trial),
            (one.name in _MOMENTS, self._moment),
            (column.role == "searched" or (one.name == "sweep" and one.operator == "~"), self._searched),
            (column.role == "fixed", lambda part, value: self._number(self._rows.c[fixed(part.name)], part, value)),
        ]
        compare = next((kind for holds, kind in kinds if holds), lambda part, value: self._column(part, value, number))
        return sa.or_(sa.false(), *(compare(one, value) for value in one.values))

    def _word(self, one: Word) -> Sql:
        labels = [self._contains(self._rows.c[f"label_{place}"], one.text) for place in self._places]
        return sa.or_(*labels, self._named(one.text), self._marked(tag, self._contains(tag.c.tag, one.text)))

    def _named(self, text: str) -> Sql:
        """The condition that the sweep's name contains a text."""
        named = sa.select(schema.sweep.c.id).where(self._contains(schema.sweep.c.name, text))
        return self._rows.c.sweep_id.in_(named)

    def _state(self, one: Condition, value: str) -> Sql:
        self._only(one, "=")
        state = value.lower()
        if state not in _STATES:
            raise InvalidFilterError(f"there is no state `{value[:80]}`; {suggestion(value, _STATES)}", one.at)
        return self._rows.c.diverged if state == "diverged" else self._rows.c.state == state

    def _yes_no(self, one: Condition, value: str) -> Sql:
        self._only(one, "=")
        if value.lower() not in ("yes", "no", "true", "false"):
            raise InvalidFilterError(f"`{one.name}` takes `yes` or `no`, not `{value[:80]}`", one.at)
        column = self._rows.c[one.name]
        return column if value.lower() in ("yes", "true") else sa.not_(column)

    def _moment(self, one: Condition, value: str) -> Sql:
        self._only(one, "=", "<", "<=", ">", ">=")
        column = self._rows.c[one.name]
        low, dots, high = value.partition("..")
        if dots and one.operator == "=":
            after = column >= _span(one, low)[0] if low else sa.true()
            return sa.and_(after, column < _span(one, high)[1] if high else sa.true())
        begin, end = _span(one, value)
        return {
            "=": sa.and_(column >= begin, column < end), "<": column < begin, "<=": column < end,
            ">": column >= end, ">=": column >= begin,
        }[one.operator]  # fmt: skip

    def _searched(self, one: Condition, value: str) -> Sql:
        self._only(one, "=", "~")
        if one.name == "tag":
            same = self._same if one.operator == "=" else self._contains
            return self._marked(tag, same(tag.c.tag, value))
        if one.name == "note":
            return self._marked(note, self._contains(note.c.text, value))
        if one.name == "error":
            failed = sa.select(trial.c.sweep_id, trial.c.cell, trial.c.candidate, trial.c.id)
            failed = failed.join(training, training.c.id == trial.c.training_id)
            says = self._contains(training.c.error, value)
            return self._trials(failed.where(trial.c.state == TrialState.FAILED, says))
        return self._named(value)

    def _marked(self, table: sa.Table, condition: Sql) -> Sql:
        """The condition that the sweep, cell or trial has such a tag or note."""
        rows, its = self._rows.c, table.c
        of_sweep = sa.select(its.sweep_id).where(its.kind == "sweep", condition)
        of_cell = sa.select(its.sweep_id, its.entity).where(its.kind == "cell", condition)
        of_trial = sa.select(trial.c.sweep_id, trial.c.cell, trial.c.candidate, trial.c.id)
        of_trial = of_trial.join(table, sa.and_(its.kind == "trial", its.entity == trial.c.id)).where(condition)
        return sa.or_(
            rows.sweep_id.in_(of_sweep), sa.tuple_(rows.sweep_id, rows.cell).in_(of_cell), self._trials(of_trial)
        )

    def _trials(self, query: sa.Select[Any]) -> Sql:
        """The condition that a row is one of the queried trials, or their candidate."""
        trials = query.subquery()
        if self._of_trials:
            return self._rows.c.id.in_(sa.select(trials.c.id))
        where = sa.tuple_(self._rows.c.sweep_id, self._rows.c.cell, self._rows.c.candidate)
        return where.in_(sa.select(trials.c.sweep_id, trials.c.cell, trials.c.candidate))

    def _has_trial(self, one: Condition, value: str) -> Sql:
        trials = sa.select(trial.c.sweep_id, trial.c.cell, trial.c.candidate, trial.c.id)
        return self._trials(trials.where(self._number(trial.c.id, one, value)))

    def _column(self, one: Condition, value: str, at: int) -> Sql:
        """The condition on an axis or a metric."""
        column = self._columns[one.name][0]
        label = self._rows.c[f"label_of_{at}"] if column.labels else None
        number = self._rows.c[f"number_of_{at}"] if column.numbers else None
        if one.operator == "~":
            if label is None:
                message = f"`{one.name}` is a number, so `~` does not apply; write `{one.name}>...`"
                raise InvalidFilterError(message, one.at)
            return self._contains(label, value)
        sides = [side for side in value.split("..", 1) if side]
        numeric = bool(sides) and all(number_in(side) is not None for side in sides)
        if label is not None and one.operator == "=" and (number is None or not numeric):
            return self._same(label, value)
        if number is None:
            message = f"`{one.name}` has labels and no numbers; write `{one.name}:label` or `{one.name}~part`"
            raise InvalidFilterError(message, one.at)
        compared = self._number(number, one, value)
        return compared if label is None or one.operator != "=" else sa.or_(compared, self._same(label, value))

    def _number(self, column: sa.ColumnElement[Any], one: Condition, value: str) -> Sql:
        self._only(one, "=", "<", "<=", ">", ">=")
        low, dots, high = value.partition("..")
        if dots and one.operator == "=" and (low or high):
            above = column >= _read(one, low) if low else sa.true()
            return sa.and_(above, column <= _read(one, high) if high else sa.true())
        read = _read(one, value)
        return {
            "=": column == read, "<": column < read, "<=": column <= read, ">": column > read, ">=": column >= read,
        }[one.operator]  # fmt: skip

    def _same(self, column: sa.ColumnElement[Any], text: str, around: str = "") -> Sql:
        """The condition that a column has a text, or contains it if `around` is `%`, without regard to case."""
        pattern = around + re.sub(r"([/%_])", r"/\1", text) + around
        if self._sqlite:  # whose LIKE ignores the case of ASCII letters, and is faster than lower()
            return column.like(pattern, escape="/")
        # Collation C is much faster for ASCII.
        return (sa.collate(column, "C") if text.isascii() else column).ilike(pattern, escape="/")

    def _contains(self, column: sa.ColumnElement[Any], text: str) -> Sql:
        return self._same(column, text, "%")

    def _only(self, one: Condition, *operators: str) -> None:
        if one.operator not in operators:
            fitting = ", ".join(f"`{name}`" for name in (":" if sign == "=" else sign for sign in operators))
            raise InvalidFilterError(f"`{one.name}` is not compared by `{one.operator}`; use {fitting}", one.at)


def _negated(condition: Sql) -> Sql:
    # Also true for rows that lack the column.
    return sa.not_(sa.func.coalesce(condition, sa.false()))


def _read(one: Condition, text: str) -> float | int:
    value = number_in(text)
    if value is None and one.name == "seconds" and (timed := re.fullmatch(r"([\d.]{1,20})(s|m|min|h|d)", text)):
        seconds = number_in(timed[1])
        value = None if seconds is None else seconds * _UNITS[timed[2]]
    if value is None:
        also = " or a time such as `5min`" if one.name == "seconds" else ""
        raise InvalidFilterError(f"`{one.name}` is compared with a number{also}, not with `{text[:80]}`", one.at)
    if one.name in _WHOLE:
        if value != int(value) or abs(value) >= 2**31:
            raise InvalidFilterError(f"`{one.name}` is a whole number below 2^31, not `{text[:80]}`", one.at)
        return int(value)
    return value


def _span(one: Condition, text: str) -> tuple[datetime, datetime]:
    """The start and the end of the day, minute or second that a text stands for."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or not 1970 <= moment.year <= 9000:
        expected = "a date in UTC (`2026-11-22`, `2026-11-22T10:30`)"
        raise InvalidFilterError(f"`{one.name}` is compared with {expected}, not with `{text[:80]}`", one.at)
    length = timedelta(days=1) if len(text) <= 10 else timedelta(minutes=1 if len(text) <= 16 else 0, seconds=1)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment, moment + length
