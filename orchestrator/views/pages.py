"""What views are made of: pages of results, files, durations in words, notes and tags."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

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


MINUTE, HOUR, DAY = 60, 3_600, 86_400


def duration(seconds: float, parts: int = 2) -> str:
    """A length of time in its largest units: `45 s`, `4 min 5 s`, `2 h 10 min`, `3 d 4 h`."""
    if 0.05 <= seconds < 10 and parts > 1:
        return f"{seconds:.1f} s"
    left = max(0, round(seconds))
    said: list[tuple[int, str]] = []
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count or said:
            said.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in said[:parts] if count) or "0 s"


def time_left(seconds: float | None, low: float | None, high: float | None) -> str:
    """What is left with its uncertainty: `about 4 min 5 s left (3 min to 6 min)`; empty where it is not known."""
    if seconds is None:
        return ""
    said = f"about {duration(seconds)} left"
    if low is None or high is None:
        return said
    least, most = duration(low), duration(high)
    return said if least == most else f"{said} ({least} to {most})"


FIGURE_FORMATS: Final = ("json", "svg", "png", "pdf", "csv")
"""What a figure of a sweep may be written as."""


class Rendered(View):
    """A table or figure as a file."""

    content: bytes
    media_type: str
    filename: str


class FigureView(View):
    """A figure of a sweep in a list."""

    name: str
    kind: str
    title: str
    formats: list[str]
    url: str  # /v1/sweeps/<id>/figures/<name>


class FigureFile(View):
    """A file that a trial's training kept for figures."""

    name: str
    media_type: str
    size: int  # bytes
    url: str  # /v1/trials/<id>/figures/<name>


Remarked = Literal["sweep", "cell", "trial"]
LONGEST_NOTE: Final = 4_000
LONGEST_TAG: Final = 50
MOST_TAGS: Final = 20


@dataclass(frozen=True, slots=True)
class TagChange:
    """Which tags are set: all of them, where a list is given; then some are added, and some go."""

    tags: Sequence[str] | None = None
    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    """In any case of letters, as they are found."""

    def of(self, known: Sequence[str]) -> list[str]:
        """What stands after it, sorted; an empty tag is none."""
        gone = {tag.casefold() for tag in self.removed}
        wanted = {*(known if self.tags is None else self.tags), *self.added} - {""}
        return sorted(tag for tag in wanted if tag.casefold() not in gone)


class Remark(View):
    """A note and tags."""

    note: str = ""
    tags: list[str] = Field(default_factory=list)
    actor: str | None = None
    """Who changed the note last."""
    changed: datetime | None = None
