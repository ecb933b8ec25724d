"""Two conductors: both at once, one that is stopped beyond its lease and comes back, one that is killed."""

import signal
import sqlite3
import time
from collections.abc import Callable

import pytest

from tests.faults.conftest import Note
from tests.faults.disturbing import begin, recovery, trains, whole
from tests.faults.installation import LEASE_SECONDS, Installation, RayCluster
from tests.faults.sweeps import spec

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.slow]

NAMES = ("one", "other")
FENCED = 3
HOLDS = "holding the lease"


@pytest.fixture(scope="module")
def pair(empty: Callable[..., Installation], ray_head: RayCluster) -> Installation:
    installation = empty(ray_head)
    installation.start_api()
    for name in NAMES:
        installation.start_conductor(name)
    return installation


def active(installation: Installation) -> str:
    """Who took the lease last, by the fences in the logs."""
    taken = {name: installation.log(name).rpartition(f"{HOLDS} with fence ")[2].split("\n")[0] for name in NAMES}
    return max(NAMES, key=lambda name: int(taken[name]) if HOLDS in installation.log(name) else 0)


def stop(installation: Installation, name: str) -> None:
    """SIGSTOP, but not in the middle of a transaction: whoever is stopped there holds the database."""
    file = installation.settings.database.removeprefix("sqlite:///")
    while True:
        installation.send(name, signal.SIGSTOP)
        connection = sqlite3.connect(file, timeout=0.2, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
            return
        except sqlite3.OperationalError:
            installation.send(name, signal.SIGCONT)
            time.sleep(0.02)
        finally:
            connection.close()


def test_two_start_at_once(pair: Installation, note: Note) -> None:
    body = spec()
    sweep = begin(pair, body)
    pair.until(lambda: all("lease" in pair.log(name) for name in NAMES), "both have asked for the lease")
    assert sorted(HOLDS in pair.log(name) for name in NAMES) == [False, True]
    found = whole(pair, sweep, body)
    assert found.attempts == found.repeated == 0
    note("Two conductors at once", found)


def test_one_is_stopped_beyond_its_lease_and_comes_back(pair: Installation, note: Note) -> None:
    body = spec(seeds=4)
    sweep = begin(pair, body)
    trains(pair, 2)
    stopped = active(pair)
    (standby,) = set(NAMES) - {stopped}
    stop(pair, stopped)
    try:
        seconds = pair.until(lambda: active(pair) == standby, "the standby takes the lease", 10 * LEASE_SECONDS)
        recovery(pair)
    finally:
        pair.send(stopped, signal.SIGCONT)
    pair.until(lambda: pair.exits(stopped), "the one that was stopped ends")
    assert pair.exits(stopped) == [FENCED]
    found = whole(pair, sweep, body)
    assert found.attempts == found.repeated == 0
    note("A conductor stopped beyond its lease", found, seconds=seconds)


def test_one_is_killed_while_the_other_stands_by(pair: Installation, note: Note) -> None:
    body = spec()
    sweep = begin(pair, body)
    trains(pair, 2)
    killed = active(pair)
    (standby,) = set(NAMES) - {killed}
    pair.until(lambda: pair.log(standby).rstrip().endswith("standing by"), "the other one stands by")
    pair.kill(killed)
    seconds = recovery(pair)
    assert active(pair) == standby
    found = whole(pair, sweep, body)
    assert found.attempts == found.repeated == 0
    note("SIGKILL of the conductor beside a standby", found, seconds=seconds)
