"""Users, projects, tokens, logins and quotas as clients see them, and the caller of a request."""

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
    """The role of a user, which limits what the user may do."""

    VIEWER = "viewer"  # see the sweeps of its projects
    MEMBER = "member"  # also submit to its projects and change their sweeps
    ADMIN = "admin"  # see and change everything


class Scope(StrEnum):
    """The scope of a token: the part of its user's rights that it has."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    MLFLOW = "mlflow"  # only MLflow
    METRICS = "metrics"  # only the metrics for Prometheus


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request: a user, the owner of the service, or a visitor who came by a share link.

    The owner is the holder of the server's own token, or one of its processes.
    """

    user: int | None = None
    name: str | None = None
    token: int | None = None  # its token, also of a session that began with it; None if a trusted proxy names the user
    role: Role = Role.ADMIN
    scope: Scope = Scope.ADMIN
    seen: frozenset[int] | None = None  # the projects whose sweeps it sees; None means all
    steered: frozenset[int] | None = None  # the projects in which it may submit and change sweeps; None means all
    everywhere: bool = True  # whether it may change all projects; MLflow, which has no projects, requires it
    links: frozenset[int] = frozenset()  # of a visitor, the share links
    shared: frozenset[int] = frozenset()  # the sweeps that these links show

    @property
    def is_owner(self) -> bool:
        """Whether this is the owner of the service; a caller without a user that does not see everything is not."""
        return self.user is None and self.seen is None

    @property
    def is_visitor(self) -> bool:
        """Whether the caller came by a share link, without an account."""
        return self.user is None and self.seen is not None

    @property
    def key(self) -> str:
        """Distinguishes callers that may get different answers."""
        if self.is_owner:
            return ""
        seen, steered, shared = (
            "all" if some is None else ",".join(map(str, sorted(some)))
            for some in (self.seen, self.steered, self.shared)
        )
        return f"{self.user}:{self.role}:{self.scope}:{seen}:{steered}:{self.everywhere}:{shared}"

    @property
    def steers(self) -> bool:
        """Whether the caller may change anything."""
        return self.role is not Role.VIEWER

    @property
    def administers(self) -> bool:
        """Whether the caller may manage what concerns all projects."""
        return self.role is Role.ADMIN

    @property
    def opens_mlflow(self) -> bool:
        """Whether the caller may use MLflow, which has no projects."""
        return self.is_owner or (self.steers and self.everywhere)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a caller may do with a sweep that it sees."""

    steer: bool = True
    delete: bool = True
    why: str = ""  # why not, in a sentence


EVERYTHING: Final = Allowed()
OWNER: Final = Caller()  # the owner of the service
VISITOR: Final = Caller(
    role=Role.VIEWER, scope=Scope.READ, seen=frozenset(), steered=frozenset(), everywhere=False
)  # without a valid share link, so that it sees nothing

_CALLER: Final[ContextVar[Caller]] = ContextVar("caller", default=OWNER)
_ADDRESS: Final[ContextVar[str]] = ContextVar("address", default="")


def caller() -> Caller:
    """The caller of the present request; outside of a request, the owner of the service."""
    return _CALLER.get()


def address() -> str:
    """The network address of the caller; empty outside of a request."""
    return _ADDRESS.get()


@contextmanager
def calling(who: Caller, where: str = "") -> Iterator[None]:
    """Set the caller and its address, also for threads and tasks that begin in this context."""
    before, elsewhere = _CALLER.set(who), _ADDRESS.set(where)
    try:
        yield
    finally:
        _CALLER.reset(before)
        _ADDRESS.reset(elsewhere)


SUBJECT: Final = r"^[\x21-\x7e]{1,255}$"
"""A provider's identifier of a user: at most 255 ASCII characters (OpenID Connect Core 1.0, section 2)."""

ISSUER: Final = r"^(https://[A-Za-z0-9._~-]+|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?(/[!\x22$->@-~]*)?$"
"""A provider's address: https, or http of this machine, without `?` and `#` (ibid., section 2)."""


class LoginView(View):
    """A user's login at an OpenID Connect provider."""

    issuer: str = Field(max_length=255)  # the provider's address
    subject: str = Field(max_length=255)  # the provider's unique identifier of the user (`sub`)


@dataclass(frozen=True, slots=True)
class Person:
    """A person whose login an OpenID Connect provider has verified."""

    issuer: str
    subject: str
    name: str | None = None  # for a new user; None if the provider gave no valid name
    role: Role | None = None  # by its groups; None if groups do not decide it


@dataclass(frozen=True, slots=True)
class LoginTerms:
    """The rules for logins through an OpenID Connect provider: who may log in, and with which role."""

    new_users: Role | None = None  # the role of a new user; None means that new users are refused
    seconds: float = 12 * 3600.0  # after which a user must log in again


ACCOUNT_NAME: Final = r"^[a-z0-9][a-z0-9._@-]{0,63}$"
"""Names of users, projects and tokens, which appear in paths, logs and headers."""


class MembershipView(View):
    """A user's role in a project."""

    project: str
    role: Role  # `viewer` sees sweeps, `member` also submits and changes them


class UserView(View):
    """A user."""

    name: str
    role: Role
    created: datetime
    disabled: datetime | None = None
    projects: list[MembershipView] = Field(default_factory=list)
    login: LoginView | None = None


class ProjectView(View):
    """A project. The sweeps of an open project are seen by every user, and changed by its members."""

    name: str
    open: bool
    created: datetime
    members: list[str] = Field(default_factory=list)


class TokenView(View):
    """A token, without its secret."""

    id: int
    user: str
    name: str
    scope: Scope
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    browser: bool = False  # whether it belongs to the session of a browser after a login by a provider


class NewTokenView(TokenView):
    """A token that was just made."""

    token: str  # the secret, which is shown once and not stored


class ShareView(View):
    """A share link, which shows one sweep, read-only and without an account."""

    id: int
    sweep: int
    actor: str | None = None  # who made it
    created: datetime
    expires: datetime


SHARE_DAYS: Final = 30
"""How long a share link is valid by default."""
MOST_SHARE_DAYS: Final = 365
SHARED_PATH: Final = "/shared"
"""The path of share links. Their secret is in the query, since logs and traces contain paths."""


class NewShareView(ShareView):
    """A share link that was just made."""

    path: str  # on this server, with the link's secret, which is shown once and not stored


class CallerView(View):
    """The caller of a request and its rights."""

    name: str | None = None  # null for the server's own token
    role: Role
    scope: Scope
    sees: list[str]  # projects whose sweeps it sees
    steers: list[str]  # projects in which it may submit and change sweeps


class AuditEntry(View):
    """An entry of the audit log; it stays when its target is deleted."""

    id: int
    at: datetime
    who: str
    user: int | None = None  # the number of the user; null for the server's own token
    token: int | None = None
    what: str
    target: str
    detail: str = ""
    address: str = ""  # of the caller; of a local command, the machine
    request: str = ""  # `X-Request-ID` of the answer


MOST_HOURS: Final = 1e9
QuotaKind = Literal["user", "project"]


class Quota(View):
    """The limits of a user or a project; null means no limit."""

    slots: int | None = Field(default=None, ge=1, le=1_000_000)  # at once
    gpu_hours: float | None = Field(default=None, ge=0, le=MOST_HOURS, allow_inf_nan=False)
    """Half a GPU for two hours counts as one hour."""
    cpu_hours: float | None = Field(default=None, ge=0, le=MOST_HOURS, allow_inf_nan=False)
    """Hours of CPU cores, of trainings without a GPU."""
    days: int | None = Field(default=None, ge=1, le=36_500)  # that hours are counted in; null means for ever

    @property
    def lacking(self) -> str | None:
        """The message of what an incomplete quota lacks; `None` if it is complete."""
        if self.days is None or (self.gpu_hours, self.cpu_hours) != (None, None):
            return None
        return "days says in which time hours are counted; gpu_hours or cpu_hours is missing"

    @property
    def within(self) -> str:
        """The period in which a quota counts hours, as the end of a message."""
        return "" if self.days is None else f" of {self.days} days" if self.days != 1 else " of a day"


class QuotaUse(Quota):
    """A user's or project's quota and its use."""

    kind: QuotaKind
    name: str
    used_slots: int = 0
    used_gpu_hours: float = 0.0
    used_cpu_hours: float = 0.0

    @property
    def limited(self) -> bool:
        """Whether the quota limits anything."""
        return (self.slots, self.gpu_hours, self.cpu_hours) != (None, None, None)

    @property
    def amounts(self) -> list[tuple[str, float, float | None]]:
        """The name, use and limit of slots, GPU hours and CPU hours."""
        return [
            ("slots", self.used_slots, self.slots),
            (f"GPU hours{self.within}", self.used_gpu_hours, self.gpu_hours),
            (f"CPU hours{self.within}", self.used_cpu_hours, self.cpu_hours),
        ]


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """The limits that quotas set on starting further trainings."""

    users: Mapping[int, int] = field(default_factory=dict)  # most slots at once by number of a user
    projects: Mapping[int, int] = field(default_factory=dict)  # the same by number of a project
    spent: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """By sweep, the slots, as JSON in the database, of a kind whose hours are used up."""


UNLIMITED: Final = QuotaLimits()
