"""The schema's versions: the steps give what `schema.py` says, and whatever opens a database brings it along."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from orchestrator.record import migrations
from orchestrator.record.database import Database
from orchestrator.record.migrations import config, migrate
from orchestrator.record.schema import metadata
from orchestrator.record.store import Store
from orchestrator.views.errors import UnavailableError


def differences(url: str) -> list[object]:
    database = Database(url)
    with database.reading() as connection:
        found: list[object] = compare_metadata(
            MigrationContext.configure(connection, opts={"compare_type": True}), metadata
        )
    database.close()
    return found


def test_the_steps_give_the_schema(database_url: str) -> None:
    Store.open(database_url).close()
    assert differences(database_url) == []
    Store.open(database_url).close()  # a second time changes nothing
    assert differences(database_url) == []


def test_a_column_without_a_step_is_noticed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'metricsweep.db'}"
    Store.open(url).close()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE sweep DROP COLUMN error"))
    engine.dispose()
    assert differences(url)


def test_the_steps_are_one_line() -> None:
    steps = list(ScriptDirectory.from_config(config()).walk_revisions())
    assert all(step.is_head or len(step.nextrev) == 1 for step in steps)
    assert [step.revision for step in steps if step.is_head] == [migrations._newest()]


def test_a_database_of_this_version_is_opened_without_alembic(
    migrated: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes .1 s to load, of each start of the API and of the conductor."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "alembic"] or ["alembic"]:
        monkeypatch.setitem(sys.modules, name, None)
    Store.open(f"sqlite:///{migrated(tmp_path)}").close()


def test_many_that_open_at_once_migrate_once(database_url: str) -> None:
    failures: list[BaseException] = []

    def open_it() -> None:
        try:
            Store.open(database_url).close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert differences(database_url) == []


def test_processes_that_open_at_once_migrate_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'deep' / 'metricsweep.db'}"
    code = "import sys; from orchestrator.record.store import Store; Store.open(sys.argv[1]).close()"
    running = [subprocess.Popen([sys.executable, "-c", code, url]) for _ in range(3)]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    assert differences(url) == []


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


@pytest.mark.parametrize("migrate", [True, False])
def test_a_database_of_a_newer_version_is_refused(database_url: str, migrate: bool) -> None:
    Store.open(database_url).close()
    engine = sa.create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(UnavailableError, match=r"its schema is version 9999, this release's is \d+; start the release"):
        Store.open(database_url, migrate)
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == "9999"
    engine.dispose()


def test_a_database_that_does_not_answer_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="the database cannot be used"):
        Store.open("postgresql+psycopg://nobody@127.0.0.1:1/none")
    store = Store.open(f"sqlite:///{tmp_path / 'a folder'}/metricsweep.db")
    store.ping()
    store.close()
