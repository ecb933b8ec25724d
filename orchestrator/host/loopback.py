"""Which hosts are this machine alone: between us and these no proxy has any business, and nobody listens."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host, as an address names it, is of this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False
