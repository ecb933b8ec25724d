"""Users, projects, tokens, logins and quotas as clients see them, and who a caller is."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from orchestrator.views.pages import View


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


SUBJECT: Final = r"^[\x21-\x7e]{1,255}$"
"""A provider's number or name of somebody: at most 255 ASCII characters (OpenID Connect Core 1.0, section 2)."""

ISSUER: Final = r"^(https://[A-Za-z0-9._~-]+|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?(/[!\x22$->@-~]*)?$"
"""A provider's address, as it names itself: https, or http of this machine, without `?` and `#` (ibid., section 2)."""


class LoginView(View):
    """By whom a user is logged in beside its tokens."""

    issuer: str = Field(max_length=255)
    """The provider's address, as it names itself."""
    subject: str = Field(max_length=255)
    """By which number or name it knows the user: its `sub`, which it gives to nobody else."""


@dataclass(frozen=True, slots=True)
class Person:
    """What a provider has said of who logged in, after its word was checked."""

    issuer: str
    subject: str
    name: str | None = None
    """The name that a new user would have; none: it said none that could be one here."""
    role: Role | None = None
    """What its groups make it; none: no group decides that."""


@dataclass(frozen=True, slots=True)
class LoginTerms:
    """What becomes of those whom a provider logs in."""

    new_users: Role | None = None
    """With which role somebody becomes a user who is none; none: they are refused."""
    seconds: float = 12 * 3600.0
    """After which they log in again."""


ACCOUNT_NAME: Final = r"^[a-z0-9][a-z0-9._@-]{0,63}$"
"""Names of users, projects and tokens: they stand in paths, logs and headers."""


class MembershipView(View):
    """A user's place in a project."""

    project: str
    role: Role
    """`viewer` looks, `member` submits and steers."""


class UserView(View):
    """A user."""

    name: str
    role: Role
    created: datetime
    disabled: datetime | None = None
    projects: list[MembershipView] = Field(default_factory=list)
    login: LoginView | None = None
    """Which provider logs it in; none: none does."""


class ProjectView(View):
    """A project: what is open is seen by every user, and steered by its members."""

    name: str
    open: bool
    created: datetime
    members: list[str] = Field(default_factory=list)


class TokenView(View):
    """A token, without what opens: that is shown once, when it is made."""

    id: int
    user: str
    name: str
    scope: Scope
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    browser: bool = False
    """Whether it is of a browser that a provider logged in: then nobody has what it opens with."""


class NewTokenView(TokenView):
    """A token that was just made."""

    token: str
    """What opens; it is shown this once, and kept nowhere."""


class CallerView(View):
    """Who asks, and what they may."""

    name: str | None = None
    """None: the token is the server's own."""
    role: Role
    scope: Scope
    sees: list[str]
    """Projects whose sweeps are shown."""
    steers: list[str]
    """Projects to which may be submitted, and whose sweeps may be steered."""


class AuditEntry(View):
    """Who did what; it outlives what it tells of."""

    id: int
    at: datetime
    who: str
    user: int | None = None
    """The number of the user; none: who holds a token of the server."""
    token: int | None = None
    what: str
    target: str
    detail: str = ""
    address: str = ""
    """From where it was asked; a command on the machine of the home names that."""
    request: str = ""
    """`X-Request-ID` of the answer."""


MOST_HOURS: Final = 1e9
QuotaKind = Literal["user", "project"]


class Quota(View):
    """What a user or a project may have; none: no limit."""

    slots: int | None = Field(default=None, ge=1, le=1_000_000)
    """Slots at once."""
    gpu_hours: float | None = Field(default=None, ge=0, le=MOST_HOURS, allow_inf_nan=False)
    """Hours of GPUs: half of one for two hours is one."""
    cpu_hours: float | None = Field(default=None, ge=0, le=MOST_HOURS, allow_inf_nan=False)
    """Hours of CPU cores, of trainings that hold no GPU."""
    days: int | None = Field(default=None, ge=1, le=36_500)
    """The hours are those of so many last days; none: of all that was ever trained."""

    @property
    def lacking(self) -> str | None:
        """What a quota lacks to say anything; none: nothing."""
        if self.days is None or (self.gpu_hours, self.cpu_hours) != (None, None):
            return None
        return "days says in which time hours are counted; gpu_hours or cpu_hours is missing"

    @property
    def within(self) -> str:
        """The time that hours are counted in, as it is said behind them."""
        return "" if self.days is None else f" of {self.days} days" if self.days != 1 else " of a day"


class QuotaUse(Quota):
    """A quota, and what is used of it."""

    kind: QuotaKind
    name: str
    used_slots: int = 0
    used_gpu_hours: float = 0.0
    used_cpu_hours: float = 0.0

    @property
    def limited(self) -> bool:
        """Whether there is a quota at all."""
        return (self.slots, self.gpu_hours, self.cpu_hours) != (None, None, None)

    @property
    def amounts(self) -> list[tuple[str, float, float | None]]:
        """What is used of what, and of how much: slots, then hours of GPUs and of CPUs."""
        return [
            ("slots", self.used_slots, self.slots),
            (f"GPU hours{self.within}", self.used_gpu_hours, self.gpu_hours),
            (f"CPU hours{self.within}", self.used_cpu_hours, self.cpu_hours),
        ]


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """What quotas keep from being given out next."""

    users: Mapping[int, int] = field(default_factory=dict)
    """By number of a user, the most slots at once."""
    projects: Mapping[int, int] = field(default_factory=dict)
    """The same by number of a project."""
    spent: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """By sweep, the slots (their JSON as the database holds it) of the kind whose hours are used up."""


UNLIMITED: Final = QuotaLimits()
