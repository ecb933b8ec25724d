"""Who is logged in by a provider of OpenID Connect, as far as this service needs to know it."""

from dataclasses import dataclass
from typing import Final

from pydantic import Field

from orchestrator.views.callers import Role
from orchestrator.views.pages import View

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
