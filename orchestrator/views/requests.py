"""What became of what clients asked for, as JSON and on pages."""

from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel

REVIVING: Final = frozenset({"retry", "extend", "resolve", "renew"})
"""Kinds of requests after which a sweep that has ended may go on."""


class RequestView(BaseModel):
    """What somebody asked of a sweep, and what became of it."""

    id: int
    kind: str
    """cancel, retry, pause, resume, priority, extend, delete, collect, mirror, resolve or halt (of a resolution);
    renew: of itself, since numbers changed."""
    sweep: int
    trial: int | None = None
    cell: int | None = None
    actor: str | None = None
    created: datetime
    state: Literal["waiting", "done", "refused"]
    """`waiting` for the conductor, `done`, or `refused` by it."""
    applied: datetime | None = None
    """When the conductor carried it out or refused it."""
    outcome: str | None = None
    """What it changed, or why it was refused."""
