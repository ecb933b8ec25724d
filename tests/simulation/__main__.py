"""`python -m tests.simulation`: as many worlds as there is time for; of one that breaks, its shortest story."""

import argparse
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.simulation.ground import MEMORY, Ground
from tests.simulation.lives import Life, breaks, count, lived, shortest


def main() -> int:
    """1 where a world broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on [default: 60]")
    parser.add_argument("--seed", type=int, default=None, help="live this one world only")
    parser.add_argument("--first", type=int, default=1_000, help="the seed of the first world [default: 1000]")
    parser.add_argument(
        "--operations", action="store_true", help="strike every operation of a small sweep on the database instead"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="metricsweep-worlds-", dir=MEMORY) as folder:
        ground = Ground(Path(folder))
        if given.operations:
            return _strike(ground)
        if given.seed is not None:
            return _live(ground, given.seed, 1, float("inf"))
        return _live(ground, given.first, None, given.seconds)


def _live(ground: Ground, first: int, most: int | None, seconds: float) -> int:
    began, lives, turns, faults = time.monotonic(), 0, 0, Counter[str]()
    while (took := time.monotonic() - began) < seconds and lives != most:
        installation, broken = lived(ground, Life.of(first + lives))
        if broken is not None:
            print(f"\nseed {first + lives}; its shortest story:\n{shortest(ground, broken)}")
            return 1
        lives, turns, faults = lives + 1, turns + installation.world.turns, faults + installation.world.faults
        print(f"\r{lives} worlds in {took:.0f} s", end="", flush=True)
    print(f"; all invariants held over {turns} steps, {faults.total()} faults, on {os.cpu_count()} cores")
    for kind, number in faults.most_common():
        print(f"{number:8d} {kind}")
    return 0


def _strike(ground: Ground) -> int:
    total = count(ground)
    for broken in breaks(ground):
        print(broken)
        return 1
    print(f"{total} operations on the database, each failed once and killed its process once; all invariants held")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
