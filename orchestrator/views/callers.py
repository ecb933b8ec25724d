"""Who asks, and what of the service is theirs to see and to steer: set once for a request, read where rows are."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """What a user may do at most."""

    VIEWER = "viewer"
    """Look at what its projects have."""
    MEMBER = "member"
    """Submit to its projects, and steer what they have."""
    ADMIN = "admin"
    """See and steer everything."""


class Scope(StrEnum):
    """What a token opens of what its user may do."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    MLFLOW = "mlflow"
    """MLflow and nothing else."""
    METRICS = "metrics"
    """What Prometheus scrapes, and nothing else."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who asks. Without a user: who holds a token of the server itself, or a process of its own."""

    user: int | None = None
    name: str | None = None
    token: int | None = None
    """By which token, or by a session that began with it; none: a trusted proxy said who it is."""
    role: Role = Role.ADMIN
    scope: Scope = Scope.ADMIN
    seen: frozenset[int] | None = None
    """The projects of which it sees the sweeps; none: of all."""
    steered: frozenset[int] | None = None
    """The projects to which it may submit, and whose sweeps it may steer; none: all."""
    everywhere: bool = True
    """Whether it may steer in every project there is: MLflow, which knows no projects, is open to no others."""

    @property
    def key(self) -> str:
        """Tells callers apart who may be answered differently."""
        if self.user is None:
            return ""
        seen, steered = (
            "all" if some is None else ",".join(map(str, sorted(some))) for some in (self.seen, self.steered)
        )
        return f"{self.user}:{self.role}:{self.scope}:{seen}:{steered}:{self.everywhere}"

    @property
    def steers(self) -> bool:
        """Whether there is anything that it may change."""
        return self.role is not Role.VIEWER

    @property
    def administers(self) -> bool:
        """Whether it may ask what concerns all projects."""
        return self.role is Role.ADMIN

    @property
    def opens_mlflow(self) -> bool:
        """Whether MLflow, which knows no projects, is open to it."""
        return self.user is None or (self.steers and self.everywhere)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What who asks may do with a sweep that it sees."""

    steer: bool = True
    delete: bool = True
    why: str = ""
    """Why not, in a sentence."""


EVERYTHING: Final = Allowed()
OWNER: Final = Caller()
"""Whose service it is."""

_CALLER: Final[ContextVar[Caller]] = ContextVar("caller", default=OWNER)
_ADDRESS: Final[ContextVar[str]] = ContextVar("address", default="")


def caller() -> Caller:
    """Who asks, in this thread or task; a process that nobody asks works for its owner."""
    return _CALLER.get()


def address() -> str:
    """From where it asks; empty: from within."""
    return _ADDRESS.get()


@contextmanager
def calling(who: Caller, where: str = "") -> Iterator[None]:
    """Work for somebody who asks from an address; threads and tasks that begin meanwhile do so too."""
    before, elsewhere = _CALLER.set(who), _ADDRESS.set(where)
    try:
        yield
    finally:
        _CALLER.reset(before)
        _ADDRESS.reset(elsewhere)
