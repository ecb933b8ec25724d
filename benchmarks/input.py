"""How long a GPU's step would wait for its input: batches from the decoded map, prepared by a thread meanwhile.

    python -m benchmarks.input [--step 60] [--batch 120] [--steps 100] [--photographs 1000]

Photographs of noise lie decoded at 256 px; batches of 120 are taken, cut to 224 px and prepared ahead, as a training on
a GPU has it, by the product's own code; random crops are the GPU's and left out. In place of the step this process
sleeps for 60 ms. Percent of the time that is waited for the batch, and that `next` takes with drawing and handing over.
`alone` is what a batch takes to prepare with nobody ahead, in milliseconds.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import torch

from benchmarks.decoding import photographs
from workers.catalog import complete, load
from workers.contract import Place, Recipe
from workers.data import batches
from workers.data.prefetch import Prefetcher
from workers.training import determinism

CPU: Final = torch.device("cpu")
FIRST: Final = 5
"""Batches that are not counted."""


class Waiting(Prefetcher):
    """Notes how long it is waited for what it prepares."""

    waited = 0.0

    def _taken(self, future: "Future[Any]") -> Any:
        began = time.perf_counter()
        future.result()
        Waiting.waited += time.perf_counter() - began
        return super()._taken(future)


def drawn(recipe: Recipe, place: Place, *, ahead: bool) -> batches.Batches:
    """The batches of a training, prepared ahead as on a GPU or not."""
    with patch.object(batches, "prefetcher", Waiting if ahead else lambda _: None):
        return batches.Batches(recipe, place, CPU, partial(determinism.derived, 0))


def shares(recipe: Recipe, place: Place, steps: int, seconds: float) -> dict[str, float]:
    """Percent of the time that steps of so many seconds wait for a batch to be ready, and that is spent on input."""
    source, inside, began = drawn(recipe, place, ahead=True), 0.0, 0.0
    for step in range(FIRST + steps):
        if step == FIRST:
            Waiting.waited, inside, began = 0.0, 0.0, time.perf_counter()
        asked = time.perf_counter()
        source.next()
        inside += time.perf_counter() - asked
        time.sleep(seconds)
    whole = (time.perf_counter() - began) / 100
    return {"waited, %": round(Waiting.waited / whole, 3), "in `next`, %": round(inside / whole, 2)}


def alone(recipe: Recipe, place: Place, steps: int) -> float:
    """Milliseconds to prepare a batch."""
    source = drawn(recipe, place, ahead=False)
    source.next()
    began = time.perf_counter()
    for _ in range(steps):
        source.next()
    return round(1000 * (time.perf_counter() - began) / steps, 1)


def main() -> None:
    """Print what was waited for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=float, default=60.0, help="milliseconds")
    parser.add_argument("--batch", type=int, default=120)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--photographs", type=int, default=1_000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    told: dict[str, Any] = {
        "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version(),
        "torch": torch.__version__, "batch": given.batch, "step, ms": given.step, "steps": given.steps,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        photographs(root / "photographs", given.photographs, (500, 375))
        place = Place(root, root / "scratch", root, "cpu", 1)
        raw = {
            "dataset": {"name": "image_folder", "folder": "photographs", "side": 256}, "augment": "none", "crop": 224,
            "sampler": {"name": "shuffle", "batch": given.batch}, "backbone": "small_cnn", "loss": "triplet",
            "iterations": 1,
        }  # fmt: skip
        recipe = complete(Recipe.model_validate(raw), load())
        told |= shares(recipe, place, given.steps, given.step / 1000) | {"alone, ms": alone(recipe, place, 20)}
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
