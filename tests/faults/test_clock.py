"""The machine's clock jumps by an hour under two conductors over SQLite, which judges leases by that clock."""

from collections.abc import Callable

import pytest

from tests.faults.conftest import Note
from tests.faults.disturbing import begin, recovery, trains, whole
from tests.faults.installation import LEASE_SECONDS, Installation, RayCluster
from tests.faults.sweeps import STEPS, spec
from tests.faults.test_conductors import HOLDS, NAMES, active, stop

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def clocked(empty: Callable[..., Installation], ray_head: RayCluster) -> Installation:
    installation = empty(ray_head)
    set_clock(installation, 0)
    installation.start_api()
    for name in NAMES:
        installation.start_conductor(name, "tests.faults.clocked", METRICSWEEP_CLOCK=str(installation.folder / "clock"))
    installation.until(lambda: all("lease" in installation.log(name) for name in NAMES), "both asked for the lease")
    return installation


def set_clock(installation: Installation, seconds: int) -> None:
    """Have both conductors' clock differ from the true one by so much."""
    file = installation.folder / "clock"
    file.with_suffix(".new").write_text(f"{seconds:+d}\n")
    file.with_suffix(".new").replace(file)


@pytest.mark.parametrize("jump", [-3600, 3600], ids=["back", "forward"])
def test_the_clock_jumps_and_the_active_conductor_dies(clocked: Installation, note: Note, jump: int) -> None:
    body = spec(steps=2 * STEPS)
    set_clock(clocked, 0)
    # Before the sweep begins, which on a busy machine would else be over by then.
    clocked.until(lambda: any(clocked.log(name).rstrip().endswith("standing by") for name in NAMES), "one stands by")
    sweep = begin(clocked, body)
    trains(clocked, 2)
    killed = active(clocked)
    (standby,) = set(NAMES) - {killed}
    stop(clocked, killed)  # so that its lease is the one of before the jump
    set_clock(clocked, jump)
    clocked.kill(killed)
    before = clocked.log(standby).count(HOLDS)
    seconds = clocked.until(lambda: clocked.log(standby).count(HOLDS) > before, "the standby took over", 60.0)
    assert seconds < 10 * LEASE_SECONDS
    recovery(clocked)
    found = whole(clocked, sweep, body)
    assert found.attempts == found.repeated == 0
    note(f"The clock set {'back' if jump < 0 else 'forward'} an hour", found, seconds=seconds)


def test_the_clock_jumps_while_all_live(clocked: Installation, note: Note) -> None:
    body = spec(steps=2 * STEPS)
    set_clock(clocked, 0)
    sweep = begin(clocked, body)
    trains(clocked, 2)
    for jump in (-3600, 3600, 0):
        set_clock(clocked, jump)
        recovery(clocked)
    found = whole(clocked, sweep, body)
    assert found.attempts == found.repeated == 0
    note("The clock set back and forward, nobody killed", found)
