"""Checks of settings: addresses, OpenID Connect, function names and installed packages."""

import ipaddress
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import orchestrator
from orchestrator.views.accounts import ISSUER, Role
from orchestrator.views.errors import MetricsweepError

FUNCTION_NAME: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_ANY_NAME: Final = re.compile(r"^from .* import \*|__getattr__|globals\(\)", re.MULTILINE)
"""What may give a module names that do not stand in its source."""


def missing(name: str, path: Sequence[str]) -> str | None:
    """What of `module:function` a Python with this path would not find; none where it would, or nobody can tell."""
    module, _, function = name.partition(":")
    spec = _found(module, path)
    if spec is None:
        return f"Python finds no module '{module}'"
    file = Path(spec.origin or "")
    if file.suffix != ".py" or not file.is_file():
        return None
    text = file.read_text(encoding="utf-8", errors="replace")
    if re.search(rf"\b{function}\b", text) or _ANY_NAME.search(text):
        return None
    return f"{file} has no '{function}'"


def _found(module: str, path: Sequence[str]) -> ModuleSpec | None:
    top, *inner = module.split(".")
    spec = PathFinder.find_spec(top, [each or "." for each in path])
    if spec is None:
        # Past the path there is only the import hook of an editable installation.
        with suppress(ValueError):  # `__main__`, which is another one in every process
            spec = find_spec(top)
    for name in inner:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(f"{spec.name}.{name}", list(spec.submodule_search_locations))
    return spec


def is_loopback(host: str) -> bool:
    """Whether a host, as an address names it, is of this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


_SQLITE = "sqlite:///"


def sqlite_url(file: Path) -> str:
    """The SQLAlchemy URL of a SQLite file, whatever characters its path has.

    `sqlalchemy.URL.create` makes an equal one, but commands that need the URL alone need not import SQLAlchemy.
    """
    return _SQLITE + str(file).replace("%", "%25").replace("?", "%3F").replace("#", "%23")


def of_this_user(text: str) -> str:
    """A folder, or the URL of a SQLite file, in which a `~` at the start is the home folder of the user."""
    if text.startswith(f"{_SQLITE}~"):
        user, slash, rest = text.removeprefix(_SQLITE).partition("/")
        return sqlite_url(Path(os.path.expanduser(user))) + slash + rest
    return os.path.expanduser(text)


def networks(text: str) -> list[IPv4Network | IPv6Network]:
    """Addresses and networks, with commas; ValueError."""
    try:
        return [ip_network(one.strip()) for one in text.split(",") if one.strip()]
    except ValueError as error:
        raise ValueError(f"expected addresses or networks with commas, such as 10.0.0.7,10.1.0.0/16: {error}") from None


def collector(url: str) -> str:
    """The address of an OpenTelemetry collector, or none; ValueError."""
    split = urlsplit(url.strip())
    if url.strip() and (split.scheme not in ("http", "https") or not split.hostname or "@" in split.netloc):
        raise ValueError("expected http:// or https://, a host and no password, such as http://127.0.0.1:4318")
    return url.strip()


def told_address(url: str) -> str:
    """An address that may be told secrets. Nothing of a wrong one is repeated: whoever has it may post to it."""
    try:
        split = urlsplit(url.strip())
        host = split.hostname or ""
    except ValueError:
        host = ""
    if not host or not (split.scheme == "https" or (split.scheme == "http" and is_loopback(host))):
        raise ValueError("expected an https:// address, or http:// of this machine (127.0.0.1, localhost)")
    return split.geturl()


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


NAMES: Final = ("workers", "orchestrator", "dashboards", "api")
_HOME: Final = Path(orchestrator.__file__).absolute().parents[1]


@contextmanager
def brought_by(extra: str) -> Iterator[None]:
    """Turn the import of a package that is not installed into a MetricsweepError that names the extra of ours."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package in NAMES:
            raise
        raise MetricsweepError(
            f"the package '{package}' is not installed; `pip install \"metricsweep[{extra}]\"` brings it"
        ) from error


def require(package: str, extra: str) -> None:
    """Raise the MetricsweepError of `brought_by` where a package that another process imports is not installed."""
    with brought_by(extra):
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)


def refuse_hidden() -> None:
    """Raise MetricsweepError where Python would take another package for one of ours.

    `import metricsweep` asks the same in words of its own, before it dares to import anything of ours.
    """
    if said := hidden(sys.path):
        raise MetricsweepError("\n".join(said))


def hidden(path: Sequence[str]) -> list[str]:
    """A sentence for each of our packages that another one hides on a path."""
    found = {name: _installed(name, path) for name in NAMES}
    return [
        f"{place} comes before metricsweep's own package '{name}' in {_HOME}: start in another folder, rename that "
        "one, or give metricsweep an environment of its own"
        for name, place in found.items()
        if place is not None and place.resolve() != (_HOME / name).resolve()
    ]


def _installed(name: str, path: Sequence[str]) -> Path | None:
    """The folder or the file that Python finds; none where only the import hook of an editable installation does."""
    spec = PathFinder.find_spec(name, [each or "." for each in path])
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0] if folders else str(spec.origin)).absolute()
