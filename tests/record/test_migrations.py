"""The schema's versions, and connections to Postgres."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from orchestrator.record import migrations
from orchestrator.record.database import Database
from orchestrator.record.migrations import migrate
from orchestrator.record.schema import metadata
from orchestrator.record.store import Store
from orchestrator.views.errors import UnavailableError
from tests.record.conftest import ON_BOTH, new_postgres_database


def differences(url: str) -> list[object]:
    database = Database(url)
    with database.reading() as connection:
        found: list[object] = compare_metadata(
            MigrationContext.configure(connection, opts={"compare_type": True}), metadata
        )
    database.close()
    return found


@ON_BOTH
def test_a_new_database_has_the_schema(database_url: str) -> None:
    Store.open(database_url).close()
    assert differences(database_url) == []
    Store.open(database_url).close()  # a second time changes nothing
    assert differences(database_url) == []
    engine = sa.create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE sweep DROP COLUMN error"))
    engine.dispose()
    assert differences(database_url) != [], "a missing column is found"


@ON_BOTH
def test_a_database_of_an_older_version_is_upgraded(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.open(database_url).close()
    folder = tmp_path / "migrations"
    shutil.copytree(Path(migrations.__file__).parent, folder)
    (folder / "versions" / "0002_wider.py").write_text(
        'import sqlalchemy as sa\nfrom alembic import op\n\nrevision, down_revision = "0002", "0001"\n\n\n'
        'def upgrade() -> None:\n    op.add_column("lease", sa.Column("wider", sa.Integer()))\n'
    )
    monkeypatch.setattr(migrations, "_FOLDER", folder)
    migrations._newest.cache_clear()
    try:
        Store.open(database_url).close()
    finally:
        migrations._newest.cache_clear()
    engine = sa.create_engine(database_url)
    assert "wider" in {column["name"] for column in sa.inspect(engine).get_columns("lease")}
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == "0002"
    engine.dispose()


@ON_BOTH
def test_many_that_open_at_once_migrate_once(database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: Store.open(database_url).close(), range(4)))
    assert differences(database_url) == []


def test_a_step_that_fails_leaves_nothing(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'metricsweep.db'}")

    def fail_late() -> None:
        with database.writing() as connection:
            migrate(connection)
            raise RuntimeError("the power went")

    with pytest.raises(RuntimeError):
        fail_late()
    with database.reading() as connection:
        assert sa.inspect(connection).get_table_names() == []
    database.close()


@ON_BOTH
def test_a_database_of_a_newer_version_is_refused(database_url: str) -> None:
    Store.open(database_url).close()
    engine = sa.create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    message = r"its schema is version 9999, this release's is \d+; start the release"
    for allowed in (True, False):
        with pytest.raises(UnavailableError, match=message):
            Store.open(database_url, migrate=allowed)
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == "9999"
    engine.dispose()


def test_a_database_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="the database cannot be used: connection"):
        Store.open("postgresql+psycopg://nobody@127.0.0.1:1/none")
    store = Store.open(f"sqlite:///{tmp_path / 'a folder'}/metricsweep.db")
    store.ping()
    store.close()


@pytest.mark.postgres
def test_a_server_that_is_gone_without_a_word_is_noticed_within_half_a_minute(postgres_server: str) -> None:
    """A connection that was cut off says nothing, and Linux lets a client wait two hours for an answer."""
    url = sa.make_url(new_postgres_database(postgres_server))
    for given, idle in ((url, "10"), (url.update_query_dict({"keepalives_idle": "60"}), "60")):
        database = Database(given.render_as_string(hide_password=False))
        try:
            with database.engine.connect() as connection:
                raw = connection.connection.driver_connection
                assert raw is not None
                shown = raw.info.get_parameters()
        finally:
            database.engine.dispose()
        keeps = {name: shown[name] for name in ("keepalives_idle", "keepalives_interval", "keepalives_count")}
        assert keeps == {"keepalives_idle": idle, "keepalives_interval": "5", "keepalives_count": "3"}
        assert (shown["tcp_user_timeout"], shown["connect_timeout"]) == ("25000", "10")
