"""Parts of views: pages of lists, files, durations in words, notes and tags."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Item = TypeVar("Item")


class View(BaseModel):
    """The base class of the models that clients see."""

    model_config = ConfigDict(defer_build=True)  # built at first use, which makes commands start faster


class Page(View, Generic[Item]):
    """The items of a page of a list and, if there are more, the cursor of the next page."""

    items: list[Item]
    next_cursor: str | None = None


def each(page: Callable[[str | None], Page[Item]]) -> Iterator[Item]:
    """Iterate over all items of a paged list; `page` returns the page of a cursor, and the first page for `None`."""
    found = page(None)
    yield from found.items
    while found.next_cursor is not None:
        found = page(found.next_cursor)
        yield from found.items


@dataclass(frozen=True, slots=True)
class Sections:
    """The optional sections of the pages' navigation."""

    reproduction: bool = False  # a sweep names a published table
    people: bool = False  # the server has users


MINUTE, HOUR, DAY = 60, 3_600, 86_400


def duration(seconds: float, parts: int = 2) -> str:
    """A duration in its largest units: `45 s`, `4 min 5 s`, `2 h 10 min`, `3 d 4 h`."""
    if 0.05 <= seconds < 10 and parts > 1:
        return f"{seconds:.1f} s"
    left = max(0, round(seconds))
    counts: list[tuple[int, str]] = []
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count or counts:
            counts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in counts[:parts] if count) or "0 s"


def time_left(seconds: float | None, low: float | None, high: float | None) -> str:
    """The remaining time with an interval: `about 4 min 5 s left (3 min to 6 min)`; empty if it is not known."""
    if seconds is None:
        return ""
    text = f"about {duration(seconds)} left"
    if low is None or high is None:
        return text
    least, most = duration(low), duration(high)
    return text if least == most else f"{text} ({least} to {most})"


def size(count: int) -> str:
    """A number of bytes in its largest unit: `340 B`, `12 KiB`, `1.4 MiB`."""
    if count < 1024:
        return f"{count} B"
    if count < 1024**2:
        return f"{count / 1024:.0f} KiB"
    return f"{count / 1024**2:.1f} MiB" if count < 1024**3 else f"{count / 1024**3:.1f} GiB"


FIGURE_FORMATS: Final = ("json", "svg", "png", "pdf", "csv")  # the formats of a figure of a sweep


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


AnnotatedKind = Literal["sweep", "cell", "trial"]
LONGEST_NOTE: Final = 4_000
LONGEST_TAG: Final = 50
MOST_TAGS: Final = 20


@dataclass(frozen=True, slots=True)
class TagChange:
    """A change of tags: first they are replaced by `tags`, if given, then some are added, then some are removed."""

    tags: Sequence[str] | None = None
    added: Sequence[str] = ()
    removed: Sequence[str] = ()  # in any case of letters

    def of(self, known: Sequence[str]) -> list[str]:
        """The tags of an object after this change, sorted, without empty ones."""
        gone = {tag.casefold() for tag in self.removed}
        wanted = {*(known if self.tags is None else self.tags), *self.added} - {""}
        return sorted(tag for tag in wanted if tag.casefold() not in gone)


class Annotation(View):
    """The note and tags that people gave a sweep, cell or trial."""

    note: str = ""
    tags: list[str] = Field(default_factory=list)
    actor: str | None = None  # of the last change
    changed: datetime | None = None
