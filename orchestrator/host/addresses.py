"""Addresses that settings name: networks of proxies, a collector of traces, the webhook, SQLite files."""

import os
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from orchestrator.host.loopback import is_loopback

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
