"""What every view is, and pages of them."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

Item = TypeVar("Item")


class View(BaseModel):
    """Any of these; pydantic builds what checks one when it is first used, for which the commands do not wait."""

    model_config = ConfigDict(defer_build=True)


class Page(View, Generic[Item]):
    """Some items and, when there are more, the cursor that asks for the next ones."""

    items: list[Item]
    next_cursor: str | None = None


def each(page: Callable[[str | None], Page[Item]]) -> Iterator[Item]:
    """All items of a list, whose pages a cursor gives."""
    cursor: str | None = None
    while True:
        some = page(cursor)
        yield from some.items
        cursor = some.next_cursor
        if cursor is None:
            return
