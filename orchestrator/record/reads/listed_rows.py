"""Trials or candidates as the rows of a listing: one query that has the columns which a filter and a sort name."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.reads.expansion import of_whole
from orchestrator.record.reads.trial_columns import Resolved, TrialColumns
from orchestrator.record.reads.trial_filters import FilterCompiler, sweeps_of
from orchestrator.record.schema import trial
from orchestrator.views.errors import InvalidFilterError
from orchestrator.views.filters import All, Condition, Filter, Word, conditions
from orchestrator.views.states import TrialState
from orchestrator.views.trials import SORTED, Listed

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
