"""What settings say of a provider of OpenID Connect: its address, what it is asked for, whom it lets in and as what."""

import re
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

from orchestrator.host.loopback import is_loopback
from orchestrator.views.callers import Role
from orchestrator.views.logins import ISSUER

NewUsers = Literal["refused", "viewer", "member"]
"""What becomes of somebody whom the provider logs in, and who is no user."""
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749, section 3.3


def is_private(url: str) -> bool:
    """Whether what is sent to an address stays among those who are meant: https, or http of this machine."""
    try:
        split = urlsplit(url)
        host = split.hostname or ""
    except ValueError:  # an unclosed bracket
        return False
    plain = split.scheme == "http" and is_loopback(host)
    return bool(host) and (split.scheme == "https" or plain) and "@" not in split.netloc and url.isprintable()


def issuer(url: str) -> str:
    """The address of a provider, as it names itself, or none; ValueError."""
    if url and (len(url) > 255 or not re.fullmatch(ISSUER, url) or not is_private(url)):
        raise ValueError(
            "expected the issuer as the provider's /.well-known/openid-configuration names it: https:// (or http:// of "
            "this machine) without `?`, such as https://login.example.org/realms/lab"
        )
    return url


def scopes(text: str) -> str:
    """What a provider is asked for, with blanks; ValueError."""
    words = text.split()
    if "openid" not in words or not all(map(_SCOPE.fullmatch, words)):
        raise ValueError("expected scopes with blanks, `openid` among them, such as `openid profile email`")
    return " ".join(words)


def names(text: str) -> frozenset[str]:
    """Groups or domains, with commas."""
    return frozenset(one.strip() for one in text.split(",") if one.strip())


def group_roles(text: str) -> Mapping[str, Role]:
    """The role of each group; ValueError."""
    found: dict[str, Role] = {}
    for one in names(text):
        group, _, role = one.rpartition("=")
        if not group or role not in list(Role):
            raise ValueError(
                f"expected group=role with commas, such as lab=member,lab-admins=admin, found {one[:80]!r}"
            )
        found[group] = max(found.get(group, Role.VIEWER), Role(role), key=list(Role).index)
    return found
