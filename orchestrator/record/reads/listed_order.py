"""The order of a listing's rows, and the cursors that lead from one of its pages to the next."""

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from orchestrator.record.clock import UtcTime
from orchestrator.views.errors import NotFoundError


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
