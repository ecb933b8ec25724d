"""What people say of a sweep, a cell or a trial: a note, and tags by which it is found."""

from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from orchestrator.views.pages import View

Remarked = Literal["sweep", "cell", "trial"]
LONGEST_NOTE: Final = 4_000
LONGEST_TAG: Final = 50
MOST_TAGS: Final = 20


class Remark(View):
    """A note and tags."""

    note: str = ""
    tags: list[str] = Field(default_factory=list)
    actor: str | None = None
    """Who changed the note last."""
    changed: datetime | None = None
