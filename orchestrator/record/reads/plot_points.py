"""What plots draw of a listing: so many of its rows, the same ones each time, or means over groups of them."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.existence import require_sweep
from orchestrator.record.reads.listed_rows import ListedRows, Sought
from orchestrator.views.errors import InvalidFilterError
from orchestrator.views.trials import MOST_POINTS, Points

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
