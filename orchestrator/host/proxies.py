"""What the proxy variables of the environment mean for requests of ours, and what is wrong with them."""

import os
import urllib.request
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from orchestrator.host.checks import is_loopback

_NAMES: Final = ("http_proxy", "https_proxy", "all_proxy")


def proxy_variable(url: str) -> str | None:
    """The variable that names the proxy by which `url` is asked for; None where it is asked directly or is no URL."""
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
    """What is wrong with the proxy variables: httpx reads all of them as soon as it reads one.

    The message has the variable's name and not its value, which may hold a password.
    """
    for name, value in _set(_NAMES):
        try:
            scheme = urlsplit(value if "://" in value else f"http://{value}").scheme.lower()
            urlsplit(value if "://" in value else f"http://{value}").port  # noqa: B018  raises ValueError
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
    """Those variables that are set, as they are written; in lower case first, which wins."""
    for name in names:
        for spelled in (name, name.upper()):
            if value := os.environ.get(spelled, ""):
                yield spelled, value
