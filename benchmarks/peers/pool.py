"""A bare pool of processes that only train and write a file each."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from benchmarks.peers.training import SLOTS, asked, trained


def main() -> None:
    """Train them all."""
    recipes, folder = asked()
    places = [folder / str(number) for number in range(len(recipes))]
    with ProcessPoolExecutor(SLOTS, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(trained, recipes, places))


if __name__ == "__main__":
    main()
