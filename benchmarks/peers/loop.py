"""Loops that start a process for every recipe, as people do in a shell."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from benchmarks.peers.training import SLOTS, asked, trained


def main() -> None:
    """Train them all; with a third argument, the one recipe of that number here."""
    recipes, folder = asked()
    if len(sys.argv) > 3:
        trained(recipes[int(sys.argv[3])], folder / sys.argv[3])
        return

    def one(number: int) -> None:
        subprocess.run([sys.executable, "-m", "benchmarks.peers.loop", *sys.argv[1:3], str(number)], check=True)

    with ThreadPoolExecutor(SLOTS) as pool:
        list(pool.map(one, range(len(recipes))))


if __name__ == "__main__":
    main()
