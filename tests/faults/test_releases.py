"""A sweep that a former release began is stopped in the middle, migrated and ended by this one, with real processes.

The former release's database is today's rows in its schema, made by its own steps: what came later it had nowhere.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from api.local.process import ChildSpec
from orchestrator.record.migrations import config
from tests.faults.disturbing import HELD, begin, go_on, held, whole
from tests.faults.evidence import rows, steps_of
from tests.faults.installation import Installation
from tests.faults.sweeps import spec
from tests.faults.trainings import EVERY
from tests.record.conftest import new_postgres_database, postgres_server  # noqa: F401  a fixture
from tests.record.transfer import as_of

pytestmark = [pytest.mark.faults, pytest.mark.slow]

NEWEST = ScriptDirectory.from_config(config()).get_current_head()
FORMER = ScriptDirectory.from_config(config()).get_revision("head").down_revision  # type: ignore[union-attr]
BEFORE_USERS = "0015"
SLOTS = ("slot-0", "slot-1")
BODY = spec(steps=16)
ENDED = "SELECT count(*) FROM training WHERE state = 'finished'"


@pytest.fixture
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Iterator[str]]:
    """Gives URLs of empty databases of a kind."""

    def make(kind: str) -> Iterator[str]:
        for name in ("begun", "former"):
            if kind == "sqlite":
                yield f"sqlite:///{tmp_path / name}.db"
            else:
                yield new_postgres_database(request.getfixturevalue("postgres_server"))

    return make


def start_slots(installation: Installation) -> None:
    """Two slots that join over the storage."""
    for name in SLOTS:
        command = (sys.executable, "-m", "orchestrator.run.files", "--cpus", "1", "--idle", "600", "--poll", "0.2")
        installation.start(ChildSpec(name, command), installation.environment)


@pytest.mark.parametrize(
    ("kind", "version", "stops"),
    [
        pytest.param("sqlite", BEFORE_USERS, False, id="before users, slots stay"),
        pytest.param("postgres", FORMER, True, marks=pytest.mark.postgres, id="former, slots stop"),
    ],
)
def test_a_running_sweep_survives_stop_migration_and_start(
    empty: Callable[..., Installation], new_url: Callable[[str], Iterator[str]], kind: str, version: str, stops: bool
) -> None:
    begun, former = new_url(kind)
    installation = empty(None, engine="files", slots=len(SLOTS), database_url=begun)
    installation.start_conductor()
    start_slots(installation)
    installation.start_api()
    sweep = begin(installation, BODY, hold=HELD)
    held(installation, sweep)
    go_on(installation)
    installation.until(lambda: rows(begun, ENDED)[0][0] >= 1, "a training has ended")
    go_on(installation, HELD)
    known = dict(held(installation, sweep))  # those that train as the former release ends
    over = {row.uid for row in rows(begun, "SELECT uid FROM training WHERE state = 'finished'")}
    for name in ("api", "conductor", *(SLOTS if stops else ())):
        installation.end(name)

    as_of(version, begun, former)
    assert rows(former, "SELECT version_num FROM alembic_version")[0][0] == version
    installation.settings = installation.settings.model_copy(update={"database_url": former})
    installation.start_conductor()  # which brings the database along
    if stops:
        start_slots(installation)
    installation.start_api()
    found = whole(installation, sweep, BODY)  # its table is that of an undisturbed sweep, no training trained twice

    assert rows(former, "SELECT version_num FROM alembic_version")[0][0] == NEWEST
    attempts = Counter(row.uid for row in rows(
        former, "SELECT t.uid FROM attempt a JOIN training t ON t.id = a.training_id"
    ))  # fmt: skip
    assert found.trials == 6
    assert attempts == {uid: 2 if stops and uid in known else 1 for uid in attempts}
    for uid in known:
        assert [step for attempt, step in steps_of(installation.home, uid) if attempt == 2][:1] == (
            [EVERY + 1] if stops else []
        ), "from its checkpoint"
    assert over, "something had ended before, and none of it was trained again"
    assert all(len(steps_of(installation.home, uid)) == 16 for uid in over)
