"""Checks of settings: addresses, OpenID Connect, function names and installed packages."""

import ipaddress
import os
import re
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
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
"""Code that may define names which are not in the source of a module."""


def missing(name: str) -> str | None:
    """What of `module:function` cannot be imported; `None` if nothing, or unknown."""
    module, _, function = name.partition(":")
    top, *inner = module.split(".")
    try:
        spec = find_spec(top)
    except ValueError:  # for `__main__`
        spec = None
    for part in inner:  # for a whole name, `find_spec` would run the packages on the way
        places = spec.submodule_search_locations if spec else None
        spec = PathFinder.find_spec(part, places) if places else None
    if spec is None:
        return f"Python finds no module '{module}'"
    file = Path(spec.origin or "")
    if file.suffix != ".py" or not file.is_file():
        return None
    text = file.read_text(encoding="utf-8", errors="replace")
    if re.search(rf"\b{function}\b", text) or _ANY_NAME.search(text):
        return None
    return f"{file} has no '{function}'"


def is_loopback(host: str) -> bool:
    """Whether a host name or IP address is of this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


_SQLITE = "sqlite:///"


def sqlite_url(file: Path) -> str:
    """The SQLAlchemy URL of a SQLite file, made without importing SQLAlchemy."""
    return _SQLITE + str(file).replace("%", "%25").replace("?", "%3F").replace("#", "%23")


def of_this_user(text: str) -> str:
    """A path, or the URL of a SQLite file, with the user's home folder instead of a `~` at the start."""
    if text.startswith(f"{_SQLITE}~"):
        user, slash, rest = text.removeprefix(_SQLITE).partition("/")
        return sqlite_url(Path(os.path.expanduser(user))) + slash + rest
    return os.path.expanduser(text)


def networks(text: str) -> list[IPv4Network | IPv6Network]:
    """Parse IP addresses and networks, separated by commas; raises ValueError."""
    try:
        return [ip_network(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise ValueError(f"expected addresses or networks with commas, such as 10.0.0.7,10.1.0.0/16: {error}") from None


def collector(url: str) -> str:
    """Check the address of an OpenTelemetry collector, which may be empty; raises ValueError."""
    split = urlsplit(url.strip())
    if url.strip() and (split.scheme not in ("http", "https") or not split.hostname or "@" in split.netloc):
        raise ValueError("expected http:// or https://, a host and no password, such as http://127.0.0.1:4318")
    return url.strip()


def webhook_address(url: str) -> str:
    """Check the webhook's address; raises ValueError without the address, which may itself be a secret."""
    if not _is_confidential(url.strip()):
        raise ValueError("expected an https:// address, or http:// of this machine (127.0.0.1, localhost)")
    return urlsplit(url.strip()).geturl()


NewUsers = Literal["refused", "viewer", "member"]  # the role of a new user that a provider logs in, or `refused`
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749, section 3.3


def is_private(url: str) -> bool:
    """Whether an address is https, or http of this machine, without a user or unprintable characters."""
    return _is_confidential(url) and "@" not in urlsplit(url).netloc and url.isprintable()


def _is_confidential(url: str) -> bool:
    try:
        split = urlsplit(url)
        host = split.hostname or ""
    except ValueError:  # such as an unclosed bracket
        return False
    return bool(host) and (split.scheme == "https" or (split.scheme == "http" and is_loopback(host)))


def issuer(url: str) -> str:
    """Check the address of an OpenID Connect provider, which may be empty; raises ValueError."""
    if url and (len(url) > 255 or not re.fullmatch(ISSUER, url) or not is_private(url)):
        raise ValueError(
            "expected the issuer as the provider's /.well-known/openid-configuration names it: https:// (or http:// of "
            "this machine) without `?`, such as https://login.example.org/realms/lab"
        )
    return url


def scopes(text: str) -> str:
    """Check scopes of OpenID Connect, separated by blanks; raises ValueError."""
    words = text.split()
    if "openid" not in words or not all(map(_SCOPE.fullmatch, words)):
        raise ValueError("expected scopes with blanks, `openid` among them, such as `openid profile email`")
    return " ".join(words)


def names(text: str) -> frozenset[str]:
    """Parse names of groups or domains, separated by commas."""
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def group_roles(text: str) -> Mapping[str, Role]:
    """Parse the roles of OpenID Connect groups, such as `lab=member,lab-admins=admin`; raises ValueError."""
    found: dict[str, Role] = {}
    for part in names(text):
        group, _, role = part.rpartition("=")
        if not group or role not in list(Role):
            raise ValueError(
                f"expected group=role with commas, such as lab=member,lab-admins=admin, found {part[:80]!r}"
            )
        found[group] = max(found.get(group, Role.VIEWER), Role(role), key=list(Role).index)
    return found


NAMES: Final = ("workers", "orchestrator", "dashboards", "api")
_HOME: Final = Path(orchestrator.__file__).absolute().parents[1]


@contextmanager
def requires_extra(extra: str) -> Iterator[None]:
    """Turn the import of a package that is not installed into a MetricsweepError with our extra that installs it."""
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
    """Raise the MetricsweepError of `requires_extra` if a package that another process imports is not installed."""
    with requires_extra(extra):
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)


def refuse_hidden() -> None:
    """Raise MetricsweepError if another package on Python's path hides one of ours.

    `import metricsweep` has its own check, since it must not import this module first.
    """
    if found := hidden(sys.path):
        raise MetricsweepError("\n".join(found))


def hidden(path: Sequence[str]) -> list[str]:
    """A sentence for each of our packages that another package on a Python path hides."""
    found = []
    for name in NAMES:
        spec = PathFinder.find_spec(name, [each or "." for each in path])
        places = [*(spec.submodule_search_locations or ()), str(spec.origin)] if spec else []
        if places and Path(places[0]).resolve() != (_HOME / name).resolve():
            found.append(
                f"{Path(places[0]).absolute()} comes before metricsweep's own package '{name}' in {_HOME}: start in "
                "another folder, rename that one, or give metricsweep an environment of its own"
            )
    return found


def proxy_variable(url: str) -> str | None:
    """The variable of the proxy that is used for `url`; `None` without a proxy, and for an invalid URL."""
    try:
        split = urlsplit(url)
        if is_loopback(split.hostname or "") or urllib.request.proxy_bypass(split.hostname or ""):
            return None
    except ValueError:
        return None
    known = urllib.request.getproxies()
    kind = next((kind for kind in (split.scheme, "all") if known.get(kind)), None)
    return kind and next((name for name, _ in _set((f"{kind}_proxy",))), None)


def proxy_fault() -> str | None:
    """What is wrong with the environment's proxy variables, without their values, which may be secret."""
    for name, value in _set(("http_proxy", "https_proxy", "all_proxy")):
        try:
            scheme = urlsplit(value if "://" in value else f"http://{value}").scheme.lower()
            urlsplit(value if "://" in value else f"http://{value}").port  # noqa: B018  it may raise ValueError
        except ValueError:
            return f"{name} is no address of a proxy; expected one such as http://proxy.example.org:3128"
        if scheme.startswith("socks"):
            return f"{name} names a SOCKS proxy, and only http:// and https:// proxies can be asked; unset {name}"
        if scheme not in {"http", "https"}:
            return f"{name} names a proxy of the kind {scheme}://; expected http:// or https://"
    for name, value in _set(("no_proxy",)):
        for host in map(str.strip, value.split(",")):
            if host.startswith("["):
                right = host.strip("[]").partition("]")[0]
                return f"{name} has {host!r}; write an IPv6 address without brackets: {right}"
    return None


def _set(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The variables that are set, with their values; those in lower case, which win, come first."""
    for name in names:
        for variable in (name, name.upper()):
            if value := os.environ.get(variable, ""):
                yield variable, value
