"""Two conductors: both at once, one that is stopped beyond its lease and comes back, one that is killed."""

import re
import signal
import sqlite3
import time
from collections.abc import Callable

import pytest

from tests.faults.conftest import Note
from tests.faults.disturbing import HELD, begin, go_on, held, recovery, whole
from tests.faults.evidence import heard
from tests.faults.installation import Installation, RayCluster
from tests.faults.sweeps import spec

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.soak]

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


def fences(installation: Installation, name: str) -> list[int]:
    """The fences with which a conductor held the lease, by its log."""
    return [int(fence) for fence in re.findall(rf"{HOLDS} with fence (\d+)\n", installation.log(name))]


def active(installation: Installation) -> str:
    """Who took the lease last."""
    return max(NAMES, key=lambda name: max(fences(installation, name), default=0))


def stop_active(installation: Installation) -> tuple[str, str]:
    """SIGSTOP to the conductor that holds the lease, once the other one stands by; the names of both.

    On a busy machine the lease passes on by itself: then to the one that holds it now.
    """
    while True:
        installation.until(lambda: _one_stands_by(installation), "one conducts and the other stands by")
        name = active(installation)
        stop(installation, name)
        if active(installation) == name:
            (standby,) = set(NAMES) - {name}
            return name, standby
        installation.send(name, signal.SIGCONT)


def _one_stands_by(installation: Installation) -> bool:
    waiting = [name for name in NAMES if installation.log(name).rstrip().endswith("standing by")]
    return len(waiting) == 1 and waiting != [active(installation)]


def stop(installation: Installation, name: str) -> None:
    """SIGSTOP outside of transactions: a process that is stopped within a transaction locks the database."""
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
    found = whole(pair, sweep, body)
    given = [fence for name in NAMES for fence in fences(pair, name)]
    assert sorted(given) == list(range(1, len(given) + 1)), (
        "each fence is one conductor's; a busy machine needs several"
    )
    assert found.attempts == found.repeated == 0
    note("Two conductors at once", found)


def test_one_is_stopped_beyond_its_lease_and_comes_back(pair: Installation, note: Note) -> None:
    body = spec(seeds=4)
    sweep = begin(pair, body, hold=HELD)
    held(pair, sweep)
    stopped, standby = stop_active(pair)
    ended, before = len(pair.exits(stopped)), heard(pair)
    try:
        seconds = pair.until(lambda: active(pair) == standby, "the standby takes the lease")
        go_on(pair)
        recovery(pair, sweep, before)
    finally:
        pair.send(stopped, signal.SIGCONT)
    pair.until(lambda: len(pair.exits(stopped)) > ended, "the one that was stopped ends")
    assert pair.exits(stopped)[ended:] == [FENCED]
    found = whole(pair, sweep, body)
    assert found.attempts == found.repeated == 0
    note("A conductor stopped beyond its lease", found, seconds=seconds)


def test_one_is_killed_while_the_other_stands_by(pair: Installation, note: Note) -> None:
    body = spec()
    sweep = begin(pair, body, hold=HELD)
    held(pair, sweep)
    killed, _ = stop_active(pair)
    before = heard(pair)
    fence = max(fences(pair, killed))
    pair.kill(killed)
    go_on(pair)
    seconds = recovery(pair, sweep, before)
    assert max(fences(pair, active(pair))) > fence
    found = whole(pair, sweep, body)
    assert found.attempts == found.repeated == 0
    note("SIGKILL of the conductor next to a standby", found, seconds=seconds)
