"""Whom a provider's claims let in, and as what."""

import re
from collections.abc import Mapping
from typing import Any, Final, Self

from orchestrator.host import oidc_settings
from orchestrator.settings import Settings
from orchestrator.views.accounts import ACCOUNT_NAME
from orchestrator.views.callers import Role
from orchestrator.views.errors import LoginRefusedError
from orchestrator.views.logins import SUBJECT, LoginTerms, Person

MOST_GROUPS: Final = 10_000


class LoginRules:
    """What the settings say of that."""

    def __init__(
        self, terms: LoginTerms, user_claim: str, domains: frozenset[str], groups_claim: str, groups: frozenset[str],
        roles: Mapping[str, Role],
    ) -> None:  # fmt: skip
        self.terms = terms
        self._user_claim, self._domains = user_claim, frozenset(one.lower() for one in domains)
        self._groups_claim, self._groups, self._roles = groups_claim, groups, roles

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Those of the settings."""
        new_users = None if settings.oidc_new_users == "refused" else Role(settings.oidc_new_users)
        return cls(
            LoginTerms(new_users, settings.oidc_hours * 3600), settings.oidc_user_claim,
            oidc_settings.names(settings.oidc_domains), settings.oidc_groups_claim,
            oidc_settings.names(settings.oidc_groups), oidc_settings.group_roles(settings.oidc_roles),
        )  # fmt: skip

    @property
    def needed(self) -> frozenset[str]:
        """The claims by which it is decided; what an ID token lacks of them, the provider is asked for."""
        found = {self._user_claim} if self.terms.new_users is not None else set()
        found |= {"email", "email_verified"} if self._domains else set()
        return frozenset(found | ({self._groups_claim} if self._groups or self._roles else set()))

    def person(self, issuer: str, claims: Mapping[str, Any]) -> Person:
        """Who it is; LoginRefusedError of whom the settings do not let in."""
        subject = claims.get("sub")
        if not isinstance(subject, str) or not re.fullmatch(SUBJECT, subject):
            raise LoginRefusedError("the provider gives no subject of 1 to 255 visible ASCII characters")
        if self._domains and self._domain(claims) not in self._domains:
            said = "no verified e-mail address of a domain that may log in"
            raise LoginRefusedError(f"the provider tells {said}", subject)
        groups = self._groups_of(claims)
        if self._groups and not groups & self._groups:
            raise LoginRefusedError("the provider tells no group that may log in", subject)
        return Person(issuer, subject, self._name(claims), self._role(groups))

    def _domain(self, claims: Mapping[str, Any]) -> str | None:
        address = claims.get("email")
        if claims.get("email_verified") is not True or not isinstance(address, str) or not address.isascii():
            return None
        local, _, domain = address.partition("@")
        return domain.lower() if local and "@" not in domain else None

    def _groups_of(self, claims: Mapping[str, Any]) -> frozenset[str]:
        told = claims.get(self._groups_claim)
        listed = [told] if isinstance(told, str) else told if isinstance(told, list) else []
        return frozenset(one for one in listed[:MOST_GROUPS] if isinstance(one, str))

    def _role(self, groups: frozenset[str]) -> Role | None:
        if not self._roles:
            return None
        # Who is in none of the groups has lost what they gave.
        return max((self._roles[one] for one in groups & set(self._roles)), key=list(Role).index, default=Role.VIEWER)

    def _name(self, claims: Mapping[str, Any]) -> str | None:
        """The name of a user who is made: of ASCII alone, for other letters become ASCII ones in lower case."""
        told = claims.get(self._user_claim)
        if not isinstance(told, str) or not told.isascii():
            return None
        return told.lower() if re.fullmatch(ACCOUNT_NAME, told.lower()) else None
