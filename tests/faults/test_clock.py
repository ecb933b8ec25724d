"""The clock of the machine jumps by an hour under two conductors over SQLite, which judges leases by that clock.

A module of its own, since only one installation may use a Ray at a time.
"""

from collections.abc import Callable

import pytest

from tests.faults.conftest import Note
from tests.faults.disturbing import HELD, begin, go_on, held, recovery, whole
from tests.faults.evidence import heard
from tests.faults.installation import Installation, RayCluster
from tests.faults.sweeps import STEPS, spec
from tests.faults.test_conductors import NAMES, active, fences, stop_active

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.soak]


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
    body = spec()
    set_clock(clocked, 0)
    sweep = begin(clocked, body, hold=HELD)
    held(clocked, sweep)
    killed, _ = stop_active(clocked)  # so that its lease is the one of before the jump
    before, fence = heard(clocked), max(fences(clocked, killed))
    set_clock(clocked, jump)
    clocked.kill(killed)
    seconds = clocked.until(lambda: max(fences(clocked, active(clocked))) > fence, "the lease is taken")
    go_on(clocked)
    recovery(clocked, sweep, before)
    found = whole(clocked, sweep, body)
    assert found.attempts == found.repeated == 0
    note(f"The clock set {'back' if jump < 0 else 'forward'} an hour", found, seconds=seconds)


def test_the_clock_jumps_while_all_live(clocked: Installation, note: Note) -> None:
    body = spec(steps=2 * STEPS)
    set_clock(clocked, 0)
    sweep = begin(clocked, body, hold=HELD)
    held(clocked, sweep)
    for number, jump in enumerate((-3600, 3600, 0), 2):
        set_clock(clocked, jump)
        go_on(clocked, hold=number * HELD)
        held(clocked, sweep, number * HELD)
    found = whole(clocked, sweep, body)
    assert found.attempts == found.repeated == 0
    note("The clock set back and forward, nobody killed", found)
