"""The caller: who runs a command, and whether what it calls is this machine."""

import getpass
import ipaddress
import socket
from urllib.parse import urlsplit


def actor() -> str:
    """Who runs the command, as visible ASCII."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}".encode("ascii", "replace").decode()[:100]


def is_loopback(url: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, or no address at all, which the first request says
        return False
