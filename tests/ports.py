"""Ports and plain servers for tests."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Quiet:
    """A handler of requests that logs nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def running(server: BaseServer) -> Iterator[None]:
    """Serve in a thread until the block ends."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
