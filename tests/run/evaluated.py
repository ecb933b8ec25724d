"""A training and an evaluation that tests name instead of `workers.train:train`, which count what they do."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from workers.contract import CheckpointError, Place, Progress, Recipe, Result


def train(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """Keeps its seed and its rate as weights; a learning rate of 0.5 raises, one of 0.25 diverges."""
    _tally(place, "train", recipe)
    rate = float(recipe.optimizer.options["lr"])  # type: ignore[arg-type]
    report(Progress(step=1, total=2, metrics={"validation/map@r": rate}, log="trained\n"))
    if rate == 0.5 and not (place.storage.parents[1] / "mended").exists():
        raise ValueError("0.5 is too much")
    if rate == 0.25:
        return Result(outcome="diverged", steps=1, seconds=0.1)
    weights = {"seed": recipe.seed, "rate": rate, "iterations": recipe.iterations}
    (place.storage / "best.safetensors").write_text(json.dumps(weights))
    metrics = {f"best/{split}/map@r": rate + recipe.seed / 1000 for split in ("validation", "test")}
    metrics |= _further(weights, recipe.metrics)
    return Result(outcome="ok", metrics=metrics | {"last/test/map@r": 0.0}, curves={"train/loss": [(1, 1.0), (2, 0.5)]},
                  best_step=2, steps=2, seconds=0.1, provenance={"host": "here"},
                  artifacts=["best.safetensors"])  # fmt: skip


def evaluate(
    recipe: Recipe, place: Place, report: Callable[[Progress], None], weights: Path, names: Sequence[str]
) -> Result:
    """Reads them again; a file `refuse` in the storage makes it raise, and one named `lose` lose its slot."""
    _tally(place, "evaluate", recipe)
    report(Progress(step=0, total=1, log=f"evaluating {', '.join(names)}\n"))
    if (place.storage.parents[1] / "refuse").exists():
        raise ValueError("it cannot be computed")
    try:
        known = json.loads(weights.read_text())
    except ValueError:
        raise CheckpointError(f"checkpoint {weights.name} is damaged") from None
    lose = place.storage.parents[1] / "lose"
    if lose.exists():
        lose.unlink()
        raise ConnectionError("the slot is lost")
    (place.storage / "queries.npz").write_text(",".join(names))
    metrics = _further(known, [name for name in names if " " not in name])  # the others are figures
    return Result(outcome="ok", metrics=metrics, steps=0, seconds=0.01, provenance={"host": "there"},
                  artifacts=["queries.npz"])  # fmt: skip


def _further(weights: dict[str, float], names: Sequence[str]) -> dict[str, float]:
    return {
        f"best/{split}/{name}": weights["rate"] * len(name) + weights["seed"] / 1000
        for split in ("validation", "test")
        for name in names
    }


def _tally(place: Place, what: str, recipe: Recipe) -> None:
    with (place.storage.parents[1] / f"{what}.txt").open("a") as file:
        file.write(f"{recipe.fingerprint}\n")
