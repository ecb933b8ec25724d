"""Worlds: whatever strikes, all invariants hold and it comes to rest; the same seed is the same world."""

import os
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.ground import Ground
from tests.simulation.installation import QUIET, USUAL, Installation
from tests.simulation.lives import Life, lived, shortest
from tests.simulation.operations import breaks
from tests.simulation.world import Process, World

ROOT = Path(__file__).parents[2]
WORLDS, EACH = 300, 10
"""That `make test` lives; `make simulate` lives thousands."""
AGAIN = """
import pathlib, tempfile
from tests.simulation.ground import Ground
from tests.simulation.test_worlds import told
with tempfile.TemporaryDirectory() as folder:
    print(told(Ground(pathlib.Path(folder))))
"""


struck: Counter[str] = Counter()
"""Faults, by kind, that struck in the worlds that this process has lived."""
seen: set[int] = set()
KINDS: Final = frozenset({
    "crashes", "stops", "stops in a transaction", "stops before a slot is told",
    "jumps of the clock", "refused transactions", "lost acknowledgements", "calls to the tracker", "calls to the store",
    "lost or torn objects", "late reports", "reports that come twice", "slots that seem lost",
    "slots that train on", "slots whose time is up",
})  # fmt: skip


def whole(ground: Ground, life: Life) -> None:
    """Fail with the shortest story of a world that breaks."""
    installation, broken = lived(ground, life)
    struck.update(installation.world.faults)
    if broken is not None:
        pytest.fail(str(shortest(ground, broken)), pytrace=False)


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


@pytest.mark.parametrize("first", range(0, WORLDS, EACH))
def test_all_invariants_hold(first: int, ground: Ground) -> None:
    for seed in range(first, first + EACH):
        whole(ground, Life.of(seed))
        seen.add(seed)


def test_each_kind_of_fault_strikes_in_these() -> None:
    """Else worlds would hold for want of trouble."""
    if len(seen) < WORLDS:
        pytest.skip("not all of them were lived in this process")
    assert KINDS - {kind for kind, times in struck.items() if times} == set()


@pytest.mark.parametrize(
    "life", [Life(15, 4), Life(39, 4), Life(59, 4), Life.of(1029), Life.of(20388)], ids=lambda life: life.seed
)
def test_worlds_that_broke_once_hold(life: Life, ground: Ground) -> None:
    """An attempt began in a second slot, since the conductor that had begun it died before it had noted the first; the
    last: the tracker showed as running what was cancelled while it was told for the first time."""
    whole(ground, life)


@pytest.mark.parametrize("seed", [0, 1])
def test_nothing_happens_without_trouble(seed: int, ground: Ground) -> None:
    whole(ground, Life(seed, wishes=4, trouble=QUIET))


def test_operations_on_the_database_may_fail(ground: Ground) -> None:
    """Some of a small sweep's: that one fails, and that its process dies there."""
    broken = next(breaks(ground, first=7, step=61), None)
    if broken is not None:
        pytest.fail(str(broken), pytrace=False)


def test_a_seed_is_a_world(ground: Ground) -> None:
    """Also in another process, whose sets have another order."""
    environment = {**os.environ, "PYTHONHASHSEED": "11", "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, "-c", AGAIN], capture_output=True, text=True, check=True, env=environment, timeout=300
    )
    assert answer.stdout.strip() == told(ground).strip()


def test_a_world_is_one_threads() -> None:
    """A server that another test left to live beside it has its own clock, sleeps and chance."""
    world, before = World(0), time.monotonic()
    world.now += 2 * before
    seen: list[float] = []

    def beside() -> None:
        time.sleep(0.001)
        uuid.uuid4()
        seen.append(time.monotonic())

    def within() -> None:
        thread, drawn = threading.Thread(target=beside), world.drawn.getstate()
        thread.start()
        thread.join()
        assert world.drawn.getstate() == drawn
        seen.append(time.monotonic())

    world.begin(Process("one", mortal=False), "", within)
    with world.laws():
        world.turn()
    after = time.monotonic()
    assert before <= seen[0] <= after < seen[1]
