"""What people say of a sweep, a cell or a trial: a note, and tags by which it is found."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from orchestrator.views.pages import View

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
