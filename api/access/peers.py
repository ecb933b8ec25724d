"""Which account is at the other end of a connection within this machine, where the system tells: on Linux."""

import ipaddress
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from starlette.types import Scope

from api.protection.connections import ENDS

UNKNOWN: Final = "-"
_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")


def account(scope: Scope) -> str:
    """The user id of who asks from this machine; `UNKNOWN` for everybody else.

    The system is asked once for each connection, which keeps the answer: its ends belong to the same accounts until it
    closes, and only then a port may have another's.
    """
    client, server = scope.get("client"), scope.get("server")
    if not client or not server:
        return UNKNOWN
    known: dict[object, str] = scope.get("state", {}).get(ENDS, {})
    ends = (tuple(client), tuple(server))  # a proxy's connection brings several clients
    uid = known.get(ends)
    if uid is None:
        uid = _found(client, server)
        if uid != UNKNOWN:
            known[ends] = uid
    return uid


def _found(client: Sequence[Any], server: Sequence[Any]) -> str:
    with suppress(OSError, ValueError, TypeError, IndexError):
        if ipaddress.ip_address(client[0]).is_loopback:
            ends = [_written(*client[:2]), _written(*server[:2])]
            return next((words[7] for words in _sockets() if words[1:3] == ends), UNKNOWN)
    return UNKNOWN


def _sockets() -> Iterator[list[str]]:
    for table in _TABLES:
        with Path(table).open() as lines:
            yield from (line.split() for line in lines)


def _written(host: str, port: int) -> str:
    """An address as the kernel writes it: words of 32 bits in this machine's order of bytes."""
    packed = ipaddress.ip_address(host).packed
    words = (int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4))
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"
