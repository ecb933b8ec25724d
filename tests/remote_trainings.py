"""Real trainings that write a checkpoint after each iteration or two, for tests of where these go."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from workers.contract import Place, Progress, Recipe, Result
from workers.train import train


def hasty(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """`workers.train:train` with a checkpoint after every iteration."""
    return train(recipe, replace(place, checkpoint_seconds=0.0), report, resume)


def killed(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """The same; the first attempt is killed after its third checkpoint."""
    count = 0

    def counted(progress: Progress) -> None:
        nonlocal count
        report(progress)
        count += progress.checkpoint is not None
        if count == 3 and place.storage.name == "1":
            os.kill(os.getpid(), signal.SIGKILL)

    return hasty(recipe, place, counted, resume)
