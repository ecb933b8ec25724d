"""Worlds: whatever strikes, all invariants hold and it comes to rest; the same seed is the same world."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.ground import Ground
from tests.simulation.installation import QUIET, USUAL, Installation
from tests.simulation.lives import Break, Life, breaks, lived, shortest
from tests.simulation.world import World

ROOT = Path(__file__).parents[2]
WORLDS: Final = 40
"""How many `make test` runs; `make soak` runs 300, and `make simulate` thousands."""
AGAIN = """
import pathlib, tempfile
from tests.simulation.ground import Ground
from tests.simulation.test_worlds import told
with tempfile.TemporaryDirectory() as folder:
    print(told(Ground(pathlib.Path(folder))))
"""


KINDS: Final = frozenset({
    "crashes", "stops", "stops in a transaction", "stops before a slot is told",
    "jumps of the clock", "refused transactions", "lost acknowledgements", "calls to the tracker", "calls to the store",
    "lost or torn objects", "late reports", "reports that come twice", "slots that seem lost",
    "slots that train on", "slots whose time is up",
})  # fmt: skip


def hold(ground: Ground, lives: Iterable[Life]) -> Counter[str]:
    """Count the faults that struck; fail with every world that breaks, and with the shortest story of the first."""
    struck, broken = Counter[str](), list[Break]()
    for life in lives:
        installation, found = lived(ground, life)
        struck.update(installation.world.faults)
        broken += [found] if found else []
    if broken:
        story = shortest(ground, broken[0])
        pytest.fail("\n".join([*(str(one.life) for one in broken), str(story)]), pytrace=False)
    return +struck  # without kinds that struck zero times


def told(ground: Ground) -> str:
    """The stories of two worlds, the second one with slots that join by files."""
    stories: list[str] = []
    for joined, wishes in ((False, 2), (True, 1)):
        world = World(7)
        installation = Installation(world, ground, joined=joined)
        with installation.laws():
            installation.live(("ann", "bob"), wishes, USUAL)
        stories += world.story
    return "\n".join(stories)


def test_all_invariants_hold_and_each_kind_of_fault_strikes(ground: Ground) -> None:
    struck = hold(ground, map(Life.of, range(WORLDS)))
    for seed in range(WORLDS, 300):
        if struck.keys() >= KINDS:
            break
        struck.update(hold(ground, [Life.of(seed)]))
    assert KINDS - struck.keys() == set()


@pytest.mark.soak
@pytest.mark.parametrize("first", range(WORLDS, 300, 20))
def test_all_invariants_hold_in_more_worlds(first: int, ground: Ground) -> None:
    hold(ground, map(Life.of, range(first, first + 20)))


def test_worlds_that_broke_once_hold(ground: Ground) -> None:
    """An attempt began in a second slot, since the conductor that had begun it died before it had noted the first; the
    last: the tracker showed a run as running that was cancelled while it was first sent."""
    hold(ground, [Life(15, 4), Life(39, 4), Life(59, 4), Life.of(1029), Life.of(20388)])


def test_nothing_happens_without_trouble(ground: Ground) -> None:
    assert not hold(ground, [Life(seed, wishes=4, trouble=QUIET) for seed in (0, 1)])


@pytest.mark.parametrize(("first", "step"), [(7, 131), pytest.param(3, 31, marks=pytest.mark.soak)])
def test_operations_on_the_database_may_fail(first: int, step: int, ground: Ground) -> None:
    """Some of a small sweep's operations fail, or kill their process."""
    broken = next(breaks(ground, first, step), None)
    if broken is not None:
        pytest.fail(str(broken), pytrace=False)


def test_a_seed_is_a_world(ground: Ground) -> None:
    """Also in another process, whose sets have another order."""
    environment = {**os.environ, "PYTHONHASHSEED": "11", "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, "-c", AGAIN], capture_output=True, text=True, check=True, env=environment, timeout=300
    )
    assert answer.stdout.strip() == told(ground).strip()
