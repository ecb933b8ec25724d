"""What slots of a world train: steps that take its time, checkpoints that a crash tears, a score of the recipe."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.simulation.world import Killed, World
from workers.contract import CheckpointError, Place, Progress, Recipe, Result, Stopped

here: list[World] = []
"""The world that there is now, as its only element."""
WRONG, DIVERGING, KILLING = 0.5, 0.25, 0.125
"""Learning rates with which a training raises, with which it diverges, and with which it kills its process."""


def score(rate: float, seed: int) -> float:
    """What a recipe comes to, however often it was interrupted."""
    return rate + seed / 1000


def train(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """Goes step by step, and says after each where it is."""
    world, rate = here[0], float(str(recipe.optimizer.options["lr"]))
    total = recipe.iterations or 1
    curve = _kept(resume) if resume else []
    if rate == KILLING:
        world.sleep(0.5)
        world.kill(world.process(), "by its recipe")
        raise Killed
    for step in range(len(curve) + 1, total + 1):
        if place.stop():
            raise Stopped
        curve.append(rate * step / total)
        metrics = {"train/loss": rate / step, "validation/map@r": curve[-1]}
        report(Progress(step=step, total=total, metrics=metrics, log=f"step {step}\n"))
        _write(place.storage / "last.pt", json.dumps(curve), world)
        report(Progress(step=step, total=total, checkpoint="last.pt"))
        world.sleep(world.drawn.choice([0.5, 1.0, 3.0]))
    if rate == WRONG:
        raise ValueError("0.5 is too much")
    if rate == DIVERGING:
        return Result(outcome="diverged", steps=1, seconds=0.1)
    keys = ("best/validation/map@r", "best/test/map@r", "last/test/map@r")
    found, curves = dict.fromkeys(keys, score(rate, recipe.seed)), {"validation/map@r": [*enumerate(curve, 1)]}
    return Result(outcome="ok", metrics=found, curves=curves, best_step=1, steps=total, seconds=0.1)


def _kept(checkpoint: Path) -> list[float]:
    try:
        return [float(one) for one in json.loads(checkpoint.read_text(encoding="utf-8"))]
    except ValueError as error:
        raise CheckpointError(f"checkpoint {checkpoint.name} is damaged") from error


def _write(file: Path, text: str, world: World) -> None:
    """Write a checkpoint in two parts, between which the process may die."""
    file.write_text(text[:-1], encoding="utf-8")
    world.strike_within("while it writes a checkpoint")
    file.write_text(text, encoding="utf-8")


def expected(recipe: Mapping[str, Any]) -> float | None:
    """The score that a finished training of this recipe must have; none: it diverges."""
    rate = float(recipe["optimizer"]["lr"])
    return None if rate == DIVERGING else score(rate, int(recipe["seed"]))


def raises(recipe: Mapping[str, Any]) -> bool:
    """Whether a training of this recipe fails by itself."""
    return float(recipe["optimizer"]["lr"]) == WRONG
