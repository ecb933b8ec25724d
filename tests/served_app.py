"""Any ASGI application behind uvicorn, in a thread of the test's own process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

import tests.made_once  # noqa: F401 - by being imported
from api.__main__ import END_SECONDS as GRACE_SECONDS

END_SECONDS = 60.0


@contextmanager
def served(app: Any, **config: Any) -> Iterator[str]:
    """Serve it on a free port of this machine, or as `config` says; gives its address.

    Fails where the server does not come up, or does not end with the block.
    """
    given = {"host": "127.0.0.1", "port": 0, "log_level": "warning", "lifespan": "off"}
    given |= {"timeout_graceful_shutdown": GRACE_SECONDS, **config}  # as our own process has it
    server = uvicorn.Server(uvicorn.Config(app, **given))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
        assert thread.is_alive(), "the server did not start"
    found = server.servers[0].sockets[0].getsockname()
    try:
        yield found if isinstance(found, str) else f"http://127.0.0.1:{found[1]}"
    finally:
        if isinstance(app, FastAPI):  # whose streams go on until their clients leave, or until our own process ends
            app.state.streams.ended = True
        server.should_exit = True
        thread.join(END_SECONDS)
        assert not thread.is_alive(), f"the server did not end within {END_SECONDS:g} s"
