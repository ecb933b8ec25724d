"""The schema's versions: the steps give what `schema.py` says, and old databases are brought along."""

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

from orchestrator.record import migrations, schema
from orchestrator.record.column_types import metadata
from orchestrator.record.database import Database
from orchestrator.record.migrations import config, migrate
from orchestrator.record.reads.listed_rows import Sought
from orchestrator.record.store import Store
from orchestrator.views.errors import UnavailableError
from orchestrator.views.filters import parse
from tests.record.sample import lease, run_all
from tests.record.transfer import restore

RELEASED = Path(__file__).parent / "released"


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


def test_the_steps_are_one_line_and_every_version_is_kept() -> None:
    steps = list(ScriptDirectory.from_config(config()).walk_revisions())
    assert all(step.is_head or len(step.nextrev) == 1 for step in steps)
    assert {step.revision for step in steps} == {dump.stem for dump in RELEASED.glob("*.sql")}
    assert [step.revision for step in steps if step.is_head] == [migrations._newest()]


def test_a_database_of_this_version_is_opened_without_alembic(
    migrated: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes .1 s to load, of each start of the API and of the conductor."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "alembic"] or ["alembic"]:
        monkeypatch.setitem(sys.modules, name, None)
    Store.open(f"sqlite:///{migrated(tmp_path)}").close()


@pytest.mark.parametrize("dump", sorted(RELEASED.glob("*.sql")), ids=lambda dump: dump.stem)
def test_a_database_of_every_version_is_brought_along(dump: Path, database_url: str, tmp_path: Path) -> None:
    restore(dump, database_url, tmp_path)
    store = Store.open(database_url)
    assert differences(database_url) == []
    (sweep,) = store.sweeps.page().items
    assert (sweep.name, sweep.counts.finished, sweep.counts.failed) == ("released", 3, 1)
    first = store.trials.page(sweep.id).items[0]
    assert store.trials.get(first.id).metrics["best/validation/map@r"] == 0.5
    assert store.logs.of(first.id).text == "step 10\n"
    placed = Sought(parse("margin:.2 map@r>=0.4 validation/map@r:0.5.. -loss:triplet"))
    assert [row.trial for row in store.listings.page(placed, "-map@r", (), None, 10, count=True).items] == [4, 3]
    fence = lease(store)
    store.writer(fence).trials.retry(sweep.id)
    assert run_all(store, fence) == 1
    store.close()


@pytest.mark.parametrize(
    ("state", "total", "started"),
    [("failed", 4, True), ("cancelled", 4, True), ("running", 4, True), ("queued", 4, False), ("cancelled", 6, False)],
)
def test_what_a_former_release_extended_after_its_cancellation_has_started(
    database_url: str, tmp_path: Path, state: str, total: int, started: bool
) -> None:
    """It was cancelled before it had trials, and kept no start; one that lacks rows has not started."""
    restore(RELEASED / "0020.sql", database_url, tmp_path)
    engine = sa.create_engine(database_url)
    with engine.begin() as connection:
        left = sa.text("UPDATE sweep SET started = NULL, state = :state, total = :total")
        connection.execute(left, {"state": state, "total": total})
    engine.dispose()
    store = Store.open(database_url)
    found = store.sweeps.get(1)
    with store.database.reading() as connection:
        first = connection.execute(sa.select(sa.func.min(schema.trial.c.started))).scalar_one()
    assert (found.state, found.started) == (state, first if started else None)
    shown = len(store.trials.page(1).items), found.counts.total, len(store.outcomes.of(1).trials)
    assert shown == ((4, 4, 4) if started else (0, 0, 0))
    store.close()


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
