"""Faults of single processes and of the machine below them, one after the other on an installation that stands."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator.run.attempt import ADVICE
from tests.faults.conftest import Note, moments
from tests.faults.disturbing import HELD, begin, go_on, goes_on, held, outgrow, recovery, trains, wait, whole
from tests.faults.evidence import attempts_of, heard, holders, inspect, rows
from tests.faults.installation import Installation
from tests.faults.sweeps import STEPS, poisoned, spec

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.soak]

LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""
LOCKED_SECONDS = 10
FILE_BYTES, CHECKPOINT_BYTES = 200_000, 500_000


@moments("conductor", 8.0, most=10)
def test_the_conductor_is_killed(standing: Installation, note: Note, moment: float) -> None:
    body, since = spec(), time.time()
    sweep = begin(standing, body)
    wait(standing, moment)
    begun = {training for training, _ in holders(standing.home, since)}
    standing.kill("conductor")
    seconds = recovery(standing, sweep)
    found = whole(standing, sweep, body)
    assert found.repeated == 0
    assert not begun & tried_again(standing), "the slots outlive the conductor"
    note("SIGKILL of the conductor", found, moment=moment, seconds=seconds)


@moments("worker", 4.0, most=5)
def test_a_worker_is_killed_in_a_trial(standing: Installation, note: Note, moment: float) -> None:
    body = spec()
    sweep = begin(standing, body, hold=STEPS - 1)  # so that it is not over by then
    trains(standing, sweep)
    wait(standing, moment)
    training, process = trains(standing, sweep)[0]
    os.kill(process, signal.SIGKILL)
    go_on(standing)
    seconds = standing.until(lambda: second_attempts(standing, training), "the training goes on")
    found = whole(standing, sweep, body)
    note("SIGKILL of a worker in a trial", found, moment=moment, seconds=seconds)


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """A control group of this machine whose processes may take 64 MiB beyond what they have."""
    groups = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    older = "memory" in groups
    root = Path("/sys/fs/cgroup/memory" if older else "/sys/fs/cgroup")
    made = root / groups.get("memory", groups.get("", "/")).strip("/") / f"metricsweep-{uuid.uuid4().hex[:8]}"
    try:
        made.mkdir()
        (made / ("memory.limit_in_bytes" if older else "memory.max")).write_text(str(64 * 2**20))
    except OSError as error:
        pytest.skip(f"needs a control group for memory: {error}")
    yield made
    made.rmdir()


def test_the_kernel_kills_a_worker_that_takes_too_much_memory(
    standing: Installation, note: Note, small_memory: Path
) -> None:
    body = spec()
    sweep = begin(standing, body, hold=HELD)
    training, process = held(standing, sweep)[0]
    (small_memory / "cgroup.procs").write_text(str(process))
    outgrow(standing, process)
    seconds = standing.until(lambda: second_attempts(standing, training), "the training goes on")
    assert not psutil.pid_exists(process)
    found = whole(standing, sweep, body)
    query = "SELECT a.reason FROM attempt a JOIN training t ON t.id = a.training_id WHERE t.uid = :uid AND a.number = 1"
    reason = rows(standing.settings.database, query, uid=training)[0].reason
    assert ADVICE in reason, reason
    note("The kernel's OOM killer takes a worker", found, seconds=seconds)


def tried_again(installation: Installation) -> set[str]:
    """The trainings that had more than one attempt; one whose slot was still starting may need a second."""
    query = "SELECT t.uid FROM attempt a JOIN training t ON t.id = a.training_id WHERE a.number > 1"
    return {row.uid for row in rows(installation.settings.database, query)}


def second_attempts(installation: Installation, training: str) -> int:
    """Later attempts that sent a message, and the first attempt if it had ended before it was killed."""
    query = (
        "SELECT count(*) FROM attempt a JOIN training t ON t.id = a.training_id"
        " WHERE t.uid = :uid AND (a.number > 1 AND a.seen > 0 OR a.state = 'finished')"
    )
    return int(rows(installation.settings.database, query, uid=training)[0][0])


def test_sqlite_is_locked_by_another_process(standing: Installation, note: Note) -> None:
    body = spec()
    sweep = begin(standing, body, hold=HELD)
    held(standing, sweep)
    before = heard(standing)
    file = standing.settings.database.removeprefix("sqlite:///")
    locker = subprocess.Popen([sys.executable, "-c", LOCK, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert locker.stdin is not None
    assert locker.stdout is not None
    assert locker.stdout.readline() == b"locked\n"
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite3.connect(file, timeout=0).execute("BEGIN IMMEDIATE")
    go_on(standing)
    wait(standing, LOCKED_SECONDS)
    locker.stdin.close()
    assert locker.wait() == 0
    seconds = recovery(standing, sweep, before)
    found = whole(standing, sweep, body)
    assert found.attempts == found.repeated == 0, attempts_of(standing)
    note(f"SQLite locked for {LOCKED_SECONDS} s", found, seconds=seconds)


def test_no_space_is_left_for_a_checkpoint(standing: Installation, note: Note) -> None:
    body = spec()
    sweep = begin(standing, body, kept=CHECKPOINT_BYTES, hold=HELD)
    processes = [process for _, process in held(standing, sweep)]
    before = {process: resource.prlimit(process, resource.RLIMIT_FSIZE) for process in processes}
    for process, (_, hard) in before.items():
        resource.prlimit(process, resource.RLIMIT_FSIZE, (FILE_BYTES, hard))
    go_on(standing)

    def failures() -> int:
        query = "SELECT count(*) FROM attempt WHERE reason LIKE '%File too large%'"
        return int(rows(standing.settings.database, query)[0][0])

    standing.until(failures, "a checkpoint cannot be written")
    for process, limits in before.items():
        resource.prlimit(process, resource.RLIMIT_FSIZE, limits)
    seconds = goes_on(standing, sweep)
    found = whole(standing, sweep, body)
    assert found.attempts >= 1
    assert all(psutil.pid_exists(process) for process in processes), "the slots live on"
    note("No space for a checkpoint", found, seconds=seconds)


def test_a_recipe_kills_its_process_each_time(standing: Installation, note: Note) -> None:
    body = poisoned()
    sweep = begin(standing, body)
    standing.until(lambda: standing.client.sweep(sweep).ended is not None, "the sweep ends")
    found = inspect(standing, sweep, {"finished": 2, "failed": 2})
    trials = [standing.client.trial(trial.id) for trial in standing.client.trials(sweep)]
    failed = [trial for trial in trials if trial.state == "failed"]
    began = {row.uid for row in rows(standing.settings.database, "SELECT uid FROM attempt WHERE seen > 0")}
    tried = [[one for one in trial.attempts if one.uid in began] for trial in failed]
    assert [len(attempts) for attempts in tried] == [3, 3], "three that began; a slot lost before says nothing of it"
    assert all("slot lost" in (trial.error or "") for trial in failed), [trial.error for trial in failed]
    table = standing.client.table(sweep, "main", "csv").content.decode().splitlines()
    assert sum(",failed," in line for line in table) == 4, "two cells of two metrics are marked"
    assert sum(",complete," in line for line in table) == 4
    note("A recipe that kills its process each time", found)
