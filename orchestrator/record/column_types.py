"""What the tables' columns are made of: the names of their keys, their types, and the places of labels and numbers."""

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa

metadata: Final = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

STATE: Final = sa.String(16)
NEED: Final = sa.String(16)  # the key of a need
UID: Final = sa.String(36)
DOUBLE: Final = sa.Float(53)
LABELS: Final = 16
"""Axes of a sweep by whose labels its trials are found."""
NUMBERS: Final = 96
"""Numbers of a sweep, of its axes and its metrics, by which its trials are found and sorted."""
BIG: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite numbers rows by INTEGER only


def places() -> Iterator[sa.Column[Any]]:
    """Where a trial has its labels and numbers once more, a column each: read in a row, they need no join."""
    yield from (sa.Column(f"label_{at}", sa.String) for at in range(LABELS))
    yield from (sa.Column(f"number_{at}", DOUBLE) for at in range(NUMBERS))
