"""A Postgres is copied into a file while it is written to, and that file into an empty Postgres, row by row."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.record.schema import metadata
from orchestrator.record.store import Store
from orchestrator.record.transfer import loading, snapshot
from orchestrator.service.backups import back_up, restore
from orchestrator.settings import Settings
from orchestrator.views.accounts import Role, Scope
from orchestrator.views.errors import ConflictError, DamagedError, UnavailableError
from tests.record.conftest import new_postgres_database
from tests.record.sample import lease, new_sweep, run_all, started

pytestmark = pytest.mark.postgres


def no_password() -> None:
    """The URL needs none."""


@pytest.fixture
def played(postgres_server: str, postgres_migrated: str) -> str:
    """The URL of a Postgres with a sweep, users, and a sweep that is gone."""
    url = new_postgres_database(postgres_server, postgres_migrated)
    store = Store.open(url)
    fence = lease(store)
    started(store, fence)
    run_all(store, fence)
    store.owner.add_user("ada", Role.MEMBER, "main")
    store.owner.add_token("ada", "laptop", "hash", Scope.READ, None)
    gone = store.submissions.add_sweep(new_sweep("gone")).id
    with store.database.writing() as connection:
        connection.execute(sa.delete(metadata.tables["change"]).where(metadata.tables["change"].c.sweep_id == gone))
        connection.execute(sa.delete(metadata.tables["sweep"]).where(metadata.tables["sweep"].c.id == gone))
    store.close()
    return url


def rows(url: str) -> dict[str, list[Any]]:
    """All rows of all tables, as the application reads them."""
    store = Store.open(url)
    with store.database.reading() as connection:
        found = {
            table.name: sorted(map(repr, connection.execute(sa.select(table)).all()))
            for table in metadata.sorted_tables
        }
    store.close()
    return found


def test_all_is_restored(played: str, postgres_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup of a Postgres becomes a Postgres, and as well a home with a file."""
    for name in ("DATABASE_URL", "STORAGE_URL"):
        monkeypatch.delenv(f"METRICSWEEP_{name}", raising=False)
    home = Settings(home=tmp_path / "home", database_url=played)
    kept = home.resolved_home / "storage" / "a" / "1" / "best.safetensors"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"weights")
    before = rows(played)
    assert all(before[name] for name in ("sweep", "trial", "training", "attempt", "metric", "log", "token", "audit"))
    engine = sa.create_engine(played)
    with engine.connect() as writing:
        writing.execute(sa.text("UPDATE sweep SET name = 'half done'"))
        back_up(home, tmp_path / "backup", print)
    engine.dispose()

    there = Settings(home=tmp_path / "there", database_url=new_postgres_database(postgres_server))
    file = Settings(home=tmp_path / "file")
    for target in (there, file):
        restore(tmp_path / "backup", target, print)
        assert rows(target.database) == before
        assert (target.resolved_home / "storage" / "a" / "1" / "best.safetensors").read_bytes() == b"weights"
        store = Store.open(target.database)
        assert store.submissions.add_sweep(new_sweep("next")).id == 3, "the number of what is gone is not given again"
        fence = store.lease.acquire("another", 60.0)
        assert fence is None or fence > 0
        store.close()
    assert not list(there.resolved_home.glob("*.db*"))
    with pytest.raises(ConflictError, match="database is not empty"):
        restore(tmp_path / "backup", Settings(home=tmp_path / "again", database_url=there.database), print)
    assert not (tmp_path / "again").exists()


@pytest.fixture
def sealed(postgres_server: str) -> Iterator[str]:
    """The name of a user whom the server asks for the password `opens-this`."""
    engine = sa.create_engine(postgres_server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE ROLE sealed LOGIN SUPERUSER PASSWORD 'opens-this'"))
        rules = Path(connection.execute(sa.text("SHOW hba_file")).scalar_one())
        before = rules.read_text()
        asked = ("local all sealed scram-sha-256", "host all sealed all scram-sha-256", before)
        rules.write_text("\n".join(asked))
        connection.execute(sa.text("SELECT pg_reload_conf()"))
        yield "sealed"
        rules.write_text(before)
        connection.execute(sa.text("SELECT pg_reload_conf()"))
    engine.dispose()


def test_both_show_the_password_of_the_file(sealed: str, played: str, postgres_server: str, tmp_path: Path) -> None:
    file = tmp_path / "password"

    def settings(home: str, url: str) -> Settings:
        named = sa.make_url(url).set(username=sealed, password=None).render_as_string(hide_password=False)
        return Settings(home=tmp_path / home, database_url=named, database_password_file=file)

    file.write_text("opens-nothing\n")
    with pytest.raises(UnavailableError, match="password authentication failed"):
        back_up(settings("home", played), tmp_path / "refused", print)
    file.write_text("opens-this\n")
    back_up(settings("home", played), tmp_path / "backup", print)
    empty = new_postgres_database(postgres_server)
    restore(tmp_path / "backup", settings("there", empty), print)
    assert rows(empty) == rows(played)


def test_a_database_of_another_release_is_not_copied(played: str, tmp_path: Path) -> None:
    engine = sa.create_engine(played)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(UnavailableError, match="schema is version 9999"):
        snapshot(played, tmp_path / "copy.db", no_password)


def test_no_home_is_left(played: str, postgres_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is lost at the commit: a home without its rows would be in the way of the next restore."""
    for name in ("DATABASE_URL", "STORAGE_URL"):
        monkeypatch.delenv(f"METRICSWEEP_{name}", raising=False)
    back_up(Settings(home=tmp_path / "home", database_url=played), tmp_path / "backup", print)
    there = Settings(home=tmp_path / "there", database_url=new_postgres_database(postgres_server))
    engine = sa.create_engine(there.database)
    ours = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

    @contextmanager
    def cut(*given: Any) -> Iterator[None]:
        with loading(*given):
            yield
            with engine.connect() as connection:
                connection.execute(sa.text(f"SELECT pg_terminate_backend(pid) FROM ({ours}) AS found"))

    with monkeypatch.context() as context:
        context.setattr("orchestrator.service.backups.loading", cut)
        with pytest.raises(UnavailableError):
            restore(tmp_path / "backup", there, print)
    assert sa.inspect(engine).get_table_names() == []
    engine.dispose()
    assert not there.resolved_home.exists()
    restore(tmp_path / "backup", there, print)
    assert rows(there.database) == rows(played)


def test_a_damaged_file_is_refused(played: str, postgres_server: str, tmp_path: Path) -> None:
    """SQLite columns can hold values that Postgres, or a reader, rejects."""
    snapshot(played, tmp_path / "copy.db", no_password)
    whole, url = (tmp_path / "copy.db").read_bytes(), new_postgres_database(postgres_server)
    damages = {
        "UPDATE sweep SET created = 'garbage'": "'garbage'",
        "UPDATE sweep SET name = 'a' || char(0)": "NUL",
        "DELETE FROM training": "violates foreign key",
        "": "malformed|not a database",
    }
    for damage, said in damages.items():
        file = tmp_path / "damaged.db"
        file.write_bytes(whole if damage else whole[:5_000])
        connection = sqlite3.connect(file)
        connection.executescript(damage)
        connection.close()
        with (
            pytest.raises(DamagedError, match=f"the database of the backup cannot be copied: .*({said}).*nothing was"),
            loading(file, url, no_password),
        ):
            raise AssertionError(damage)
    engine = sa.create_engine(url)
    assert sa.inspect(engine).get_table_names() == []
    engine.dispose()
