"""Whose a connection within this machine is: asked once for each, and never taken over to the next one."""

import asyncio
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from api.access import peers
from api.access.peers import UNKNOWN, account
from api.protection.connections import ENDS, Connection, ConnectionPatience, Crowd

CLIENT, SERVER = ("127.0.0.1", 40_000), ("127.0.0.1", 8_787)


@pytest.fixture
def uids(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, int], str]:
    """What the system says of the clients of `SERVER`; `asked` counts under a client of its own."""
    found: dict[tuple[str, int], str] = {}

    def sockets() -> Iterator[list[str]]:
        found["asked", 0] = str(int(found.get(("asked", 0), "0")) + 1)
        for (host, port), uid in found.items():
            if host != "asked":
                yield ["0:", peers._written(host, port), peers._written(*SERVER), "01", "0", "0", "0", uid]

    monkeypatch.setattr(peers, "_sockets", sockets)
    return found


def asking(connection: dict[str, Any], client: tuple[str, int] = CLIENT) -> str:
    """What is known of who asks over a connection, whose state each request has a copy of."""
    return account({"type": "http", "client": client, "server": SERVER, "state": {**connection}})


def test_the_system_is_asked_once_for_a_connection(uids: dict[tuple[str, int], str]) -> None:
    uids[CLIENT] = "1000"
    connection: dict[str, Any] = {ENDS: {}}
    assert [asking(connection) for _ in range(3)] == ["1000"] * 3
    assert uids["asked", 0] == "1"


def test_a_port_that_is_used_again_has_another_account(uids: dict[tuple[str, int], str]) -> None:
    uids[CLIENT] = "1000"
    assert asking({ENDS: {}}) == "1000"
    uids[CLIENT] = "1001"
    assert asking({ENDS: {}}) == "1001"


def test_who_was_not_found_is_looked_for_again(uids: dict[tuple[str, int], str]) -> None:
    connection: dict[str, Any] = {ENDS: {}}
    assert asking(connection) == UNKNOWN
    uids[CLIENT] = "1000"
    assert asking(connection) == "1000"


def test_a_proxys_connection_brings_several(uids: dict[tuple[str, int], str]) -> None:
    uids[CLIENT] = "1000"
    connection: dict[str, Any] = {ENDS: {}}
    assert asking(connection) == "1000"
    assert asking(connection, ("127.0.0.1", 0)) == asking(connection, ("10.0.0.7", 40_000)) == UNKNOWN


def test_each_connection_has_a_memory_of_its_own() -> None:
    async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
        pass

    async def two() -> list[Connection]:
        config = uvicorn.Config(nothing, ws="none", lifespan="off", log_config=None)
        config.load()
        crowd, shared = Crowd(16, ConnectionPatience()), {"of": "all"}
        return [Connection(config, ServerState(), shared, asyncio.get_running_loop(), crowd=crowd) for _ in range(2)]

    one, other = asyncio.run(two())
    assert one.app_state[ENDS] is not other.app_state[ENDS]
    assert one.app_state["of"] == other.app_state["of"] == "all"


def test_a_real_connection_is_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        scope = {"client": client.getsockname(), "server": server.getsockname(), "state": {ENDS: {}}}
        assert account(scope) in {str(os.getuid()), UNKNOWN}
