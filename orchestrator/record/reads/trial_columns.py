"""The columns of trials that filters and sorts name: axes and metrics, whatever place each sweep keeps them at."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.schema import NUMBERS, trial, trial_column
from orchestrator.views.errors import InvalidFilterError
from orchestrator.views.trials import FIXED, SEARCHED, ListedColumn
from workers.catalog import meant

PREFERRED: Final = ("best/test", "last/test", "best/validation", "last/validation")
"""What a metric's bare name means: the first of these that its sweep has."""

Arms = Mapping[int, Sequence[int] | None]
"""A place, and the sweeps that keep the column there; none: all that are asked for."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a name stands for."""

    name: str
    role: str  # fixed, searched, compare, tune, repeat, metric
    labels: Arms
    numbers: Arms

    @property
    def label(self) -> sa.ColumnElement[Any] | None:
        """A trial's label, where the column has such."""
        return _at("label", self.labels)

    @property
    def number(self) -> sa.ColumnElement[Any] | None:
        """A trial's number, where the column has such."""
        return _at("number", self.numbers)


class TrialColumns:
    """The columns of some sweeps, or of all."""

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
        """All of them: axes first, then metrics."""
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
        """What a name stands for; raises InvalidFilterError with the name that was probably meant."""
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
            said = f"`{name}` is beyond the {NUMBERS} numbers that lists have of a sweep; the trial's own page shows it"
            raise InvalidFilterError(said, at, path)
        alone = self._sweeps is not None and set(first) == set(self._sweeps)
        return Resolved(
            name, self._roles[keys[0]], _arms(first.values(), "label", alone), _arms(first.values(), "number", alone)
        )

    def label_places(self) -> list[int]:
        """Every place where a label is."""
        query = sa.select(trial_column.c.label).where(trial_column.c.label.is_not(None)).distinct()
        return sorted(self._connection.execute(self._mine(query)).scalars())

    def _mine(self, query: sa.Select[Any]) -> sa.Select[Any]:
        return query if self._sweeps is None else query.where(trial_column.c.sweep_id.in_(sorted(self._sweeps)))

    def _keys(self, name: str, at: int, path: str) -> list[str]:
        """The keys that a name may stand for, the preferred one first."""
        if name in self._roles:
            return [name]
        axes = [key for key, role in self._roles.items() if role != "metric" and key.rpartition(".")[2] == name]
        if len(axes) > 1:
            raise InvalidFilterError(f"`{name}` may be {' or '.join(sorted(axes))}; write one of these", at, path)
        if axes:
            return axes
        metrics = [key for key, role in self._roles.items() if role == "metric" and key.endswith(f"/{name}")]
        if metrics:
            preferred = [f"{where}/{name}" for where in PREFERRED] + [f"{mark}/{name}" for mark in ("best", "last")]
            return sorted(metrics, key=lambda key: (preferred.index(key) if key in preferred else 9, key))
        known = {*FIXED, *SEARCHED, *self._roles, *self._short_names().values()}
        raise InvalidFilterError(f"there is no column `{name[:80]}` here; {meant(name, sorted(known))}", at, path)

    def _short_names(self) -> dict[str, str]:
        """Keys by their last step, where no other key has it; of a metric, the preferred key has the bare name."""
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
            best = next((f"{where}/{name}" for where in PREFERRED if f"{where}/{name}" in keys), keys[0])
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
        # Numbers of our own, written into the statement: no database takes as many parameters as there are sweeps.
        inside = trial.c.sweep_id.in_(sa.bindparam(None, list(sweeps), expanding=True, literal_execute=True))
        cases.append((inside, column))
    return sa.case(*cases)
