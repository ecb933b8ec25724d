"""Iterations a second on frozen features, by loss and regularizer, beside the same network computed in every step.

`METRICSWEEP_DATA=... python -m benchmarks.frozen` reads what sweeps/cub100_frozen.yaml needs. Times are of the CPU, of
one thread, medians of several rounds: on a busy machine they are larger.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import yaml

from workers import catalog
from workers.contract import Place, Recipe
from workers.data.scratch import private
from workers.training import determinism
from workers.training.loop import iteration
from workers.training.progress_log import ProgressLog
from workers.training.session import Session

SWEEP = Path(__file__).parents[1] / "sweeps" / "cub100_frozen.yaml"
LOSSES = ("triplet", "semihard", "normalized_npair", "multi_similarity", "proxy_anchor")
REGULARIZERS: tuple[dict[str, Any], ...] = (
    {"name": "none"},
    *({"name": one, "eta": 0.1} for one in ("l2", "sec", "svmax")),
)


def main() -> None:
    """Measure, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200, help="iterations of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scratch", type=Path, help="a scratch folder in which features may lie already")
    arguments = parser.parse_args()
    base = yaml.safe_load(SWEEP.read_text("utf-8"))["recipe"]
    base["optimizer"]["lr"] = float(base["optimizer"]["lr"])
    with tempfile.TemporaryDirectory() as folder:
        scratch = private(arguments.scratch or Path(folder) / "scratch")
        place = Place(Path(os.environ["METRICSWEEP_DATA"]), scratch, Path(folder))
        began, used = time.monotonic(), time.process_time()
        Session(_recipe(base, "triplet", REGULARIZERS[0]), place, torch.device("cpu"))
        whole = {"images and features, s": time.monotonic() - began, "CPU, s": time.process_time() - used}
        print(json.dumps({"cores": os.cpu_count(), **whole}), flush=True)
        for loss in LOSSES:
            for regularizer in REGULARIZERS:
                _told(_recipe(base, loss, regularizer), place, arguments.steps, arguments.rounds)
        network = base | {"backbone": {**base["backbone"]["of"], "freeze_bn": True}, "warmup": base["iterations"]}
        _told(_recipe(network, "triplet", REGULARIZERS[0]), place, 1, 2)


def _recipe(base: dict[str, Any], loss: str, regularizer: dict[str, Any]) -> Recipe:
    written = {**base, "loss": loss, "regularizer": regularizer}
    return catalog.complete(Recipe.model_validate(written), catalog.load())


def _told(recipe: Recipe, place: Place, steps: int, rounds: int) -> None:
    """Print the CPU time of an iteration of a recipe."""
    device = torch.device("cpu")
    found = []
    with determinism.applied(device, 1):
        session = Session(recipe, place, device)
        journal = ProgressLog(session.total, session.length.every, session.curves, lambda _: None)
        for _ in range(rounds + 1):  # the first one warms up
            session.step = 1  # never over, and no point of a curve for some iterations
            used = time.process_time()
            for _ in range(steps):
                iteration(session, journal)
            found.append((time.process_time() - used) / steps)
    middle = statistics.median(found[1:])
    what = {"backbone": recipe.part("backbone").name, "loss": recipe.part("loss").name}
    times = {"ms": round(1000 * middle, 3), "steps a second": round(1 / middle)}
    print(json.dumps({**what, "regularizer": recipe.regularizer.name, **times}), flush=True)


if __name__ == "__main__":
    main()
