"""Training functions that tests name instead of `workers.train:train`."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from workers.contract import Place, Progress, Recipe, Result, Stopped


def quick(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """Counts to `iterations`, a checkpoint at each step; what it does besides is named by the loss."""
    start = int(resume.read_text()) if resume else 0
    delay = float(recipe.loss.options.get("delay", 0.0))  # type: ignore[arg-type]
    for step in range(start + 1, recipe.iterations + 1):
        if place.stop():
            raise Stopped
        if delay:
            time.sleep(delay)
        (place.storage / "last.pt").write_text(str(step))
        report(
            Progress(
                step=step,
                total=recipe.iterations,
                metrics={"train/loss": 1 / step},
                log=f"step {step}\n",
                checkpoint="last.pt",
            )
        )
        with (place.storage.parent / "steps.txt").open("a") as file:
            file.write(f"{step}\n")
        if recipe.loss.name == "raises":
            raise ValueError("alpha must be positive")
        if recipe.loss.name == "dies" and step == 2 and start == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if recipe.loss.name == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
    outcome = "diverged" if recipe.loss.name == "diverges" else "ok"
    score = recipe.seed / 100
    return Result(outcome=outcome, metrics={"best/validation/map@r": score, "best/test/map@r": score},
                  steps=recipe.iterations, seconds=delay * recipe.iterations, best_step=recipe.iterations)  # fmt: skip
