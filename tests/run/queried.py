"""A training that tests name instead of `workers.train:train`: its queries are easier for some losses and seeds."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from workers.contract import Place, Progress, Recipe, Result

CLASSES = np.repeat(np.arange(12, dtype=np.int32), 25)


def train(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """Keeps what 300 queries of 12 classes scored, by the newest triplet loss a little more of them."""
    report(Progress(step=1, total=1, log="trained\n"))
    gain = 0.0 if recipe.part("loss").name == "triplet" else 0.15
    drawn = np.random.default_rng(recipe.seed)
    ease = gain + np.linspace(-0.2, 0.2, 12)[CLASSES] + 0.02 * drawn.standard_normal()
    hits = (ease + drawn.random(len(CLASSES)) > 0.5).astype(np.float32)
    np.savez_compressed(
        place.storage / "queries.npz", allow_pickle=False, query=np.arange(len(CLASSES), dtype=np.int32),
        checkpoint=np.array("best"), data=np.array("v1"), **{"class": CLASSES, "recall@1": hits},
    )  # fmt: skip
    keys = ("best/validation/map@r", "best/test/recall@1", "best/test/map@r")
    metrics = dict.fromkeys(keys, float(hits.mean(dtype=np.float64)))
    return Result(outcome="ok", metrics=metrics, best_step=1, steps=1, seconds=0.1, artifacts=["queries.npz"])
