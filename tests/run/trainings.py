"""Training functions that tests name instead of `workers.train:train`."""

import mmap
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from workers import contract
from workers.catalog import Finding, Need
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
        while recipe.loss.name == "waits" and step == 5 and not (place.storage.parents[1] / "go").exists():
            if place.stop():
                raise Stopped
            time.sleep(0.02)
        if recipe.loss.name == "raises":
            raise ValueError("alpha must be positive")
        if recipe.loss.name == "lacks":
            raise contract.DataMissingError("cub200 is missing")
        if recipe.loss.name == "damages":
            raise contract.DataDamagedError("cub200 has 3 images, expected 4")
        if recipe.loss.name == "exits":
            sys.exit("no such file")
        if recipe.loss.name == "dies" and step == 2 and start == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if recipe.loss.name == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
    outcome = "diverged" if recipe.loss.name == "diverges" else "ok"
    score = recipe.seed / 100
    return Result(outcome=outcome, metrics={"best/validation/map@r": score, "best/test/map@r": score},
                  steps=recipe.iterations, seconds=delay * recipe.iterations, best_step=recipe.iterations)  # fmt: skip


def evaluate(
    recipe: Recipe, place: Place, report: Callable[[Progress], None], weights: Path, names: Sequence[str]
) -> Result:
    """Gives the number that stands in the weights as the value of each metric."""
    report(Progress(step=0, total=1, log=f"evaluating {', '.join(names)}\n"))
    try:
        value = float(weights.read_text())
    except ValueError:
        raise contract.CheckpointError(f"checkpoint {weights.name} is damaged") from None
    return Result(outcome="ok", metrics={f"best/test/{name}": value for name in names}, steps=0, seconds=0.0)


_LEAKED: list[mmap.mmap] = []


def leaking(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """As `quick`, but the process holds 64 MiB more after each."""
    kept = mmap.mmap(-1, 2**26, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # new pages, whatever others have freed
    kept.write(b"x" * 2**26)
    _LEAKED.append(kept)
    return quick(recipe, place, report, resume)


def scripted(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """What the learning rate says: 0.5 raises, 0.25 diverges, any other is its own score; a tally counts the calls."""
    rate = float(recipe.optimizer.options["lr"])  # type: ignore[arg-type]
    tally = place.storage.parents[1] / "tally.txt"
    with tally.open("a") as file:
        file.write(f"{recipe.fingerprint}\n")
    report(Progress(step=recipe.iterations, total=recipe.iterations, metrics={"train/loss": rate}, log="trained\n"))
    if rate == 0.5 and not (place.storage.parents[1] / "mended").exists():
        raise ValueError("0.5 is too much")
    if rate == 0.25:
        return Result(outcome="diverged", steps=1, seconds=0.1)
    value = rate + recipe.seed / 1000
    keys = ("best/validation/map@r", "best/test/map@r", "best/test/recall@1", "last/test/map@r")
    return Result(outcome="ok", metrics=dict.fromkeys(keys, value), best_step=1, steps=recipe.iterations, seconds=0.1)


def evaluating(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """Rises evenly to its learning rate, and more with a higher seed; every iteration is an evaluation.

    `steps.txt` in the storage has a line for each iteration.
    """
    rate = float(recipe.optimizer.options["lr"])  # type: ignore[arg-type]
    best = rate * (1 + recipe.seed / 1000)
    for step in range((int(resume.read_text()) if resume else 0) + 1, (recipe.iterations or 1) + 1):
        if place.stop():
            raise Stopped
        with (place.storage.parents[1] / "steps.txt").open("a") as file:
            file.write(f"{recipe.fingerprint}\n")
        (place.storage / "last.pt").write_text(str(step))
        value = best * step / (recipe.iterations or 1)
        metrics = {"train/loss": 1 / step, "validation/map@r": value, "test/map@r": value / 2}
        report(Progress(step=step, total=recipe.iterations or 1, metrics=metrics, checkpoint="last.pt"))
    metrics = {"best/validation/map@r": best, "best/test/map@r": best / 2, "last/test/map@r": best / 2}
    return Result(outcome="ok", metrics=metrics, best_step=1, steps=recipe.iterations or 1, seconds=0.1)


def wavering(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """Its learning rate and noise of a deviation of 0.001, which the seed draws for each rate."""
    rate = float(recipe.optimizer.options["lr"])  # type: ignore[arg-type]
    value = rate + random.Random(f"{rate} {recipe.seed}").gauss(0, 0.001)
    return Result(outcome="ok", metrics={"best/validation/map@r": value, "best/test/map@r": value},
                  steps=recipe.iterations or 1, seconds=0.1, best_step=1)  # fmt: skip


def faltering(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """As `wavering`, but the highest learning rate of a race fails with its third seed."""
    if recipe.seed == 2 and recipe.optimizer.options["lr"] == 0.0301:
        raise ValueError("the third seed")
    return wavering(recipe, place, report, resume)


def lingering(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """As `evaluating`, but below a learning rate of 0.01 the third iteration takes ten minutes unless it is stopped."""

    def report_and_linger(progress: Progress) -> None:
        report(progress)
        until = time.monotonic() + 600
        while rate < 0.01 and progress.step == 2 and time.monotonic() < until and not place.stop():
            time.sleep(0.02)

    rate = float(recipe.optimizer.options["lr"])  # type: ignore[arg-type]
    return evaluating(recipe, place, report_and_linger, resume)


def reading(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """As `scripted`, but first it looks for a folder named after its data set."""
    if recipe.dataset.name != "digits" and not (place.data_root / recipe.dataset.name).is_dir():
        raise contract.DataMissingError(f"{recipe.dataset.name} is missing: looked in {place.data_root}")
    return scripted(recipe, place, report, resume)


def looking(needs: Sequence[Need], root: Path, scratch: Path, parts: Path | None = None) -> list[Finding]:
    """What `reading` would find; a file `blind` in the root keeps it from looking."""
    if (root / "blind").exists():
        raise PermissionError("blind")

    def finding(need: Need) -> Finding:
        name = need.dataset.name if need.dataset else ""
        folder = root / name
        if (folder / "wrong").exists():
            return Finding(state="wrong", message=f"{name} has 3 images, expected 4")
        return (
            Finding() if folder.is_dir() else Finding(state="missing", message=f"{name} is missing: looked in {root}")
        )

    return [finding(need) for need in needs]


def overflowing(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """With seed 1 it reports a step, with seed 2 a result, that no database holds."""
    report(Progress(step=2**70 if recipe.seed == 1 else 1, total=10))
    return Result(outcome="ok", steps=2**70 if recipe.seed == 2 else 10, seconds=0.1)


def dawdling(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """As `scripted`, after a few messages with a little time in between, in which it may be stopped."""
    for step in range(1, 6):
        if place.stop():
            raise Stopped
        time.sleep(0.02)
        report(Progress(step=step, total=recipe.iterations or 1, log=f"step {step}\n"))
    return scripted(recipe, place, report, resume)


EFFECTS = {"l2": -0.1, "sec": 0.016, "svmax": 0.0}
"""By which a regularizer moves the score of `noisy`; paired differences have a standard deviation of 0.014."""


def noisy(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """A score that follows the seed, its regularizer and noise of its own, after six minutes that it only claims."""
    with (place.storage.parents[1] / "tally.txt").open("a") as file:
        file.write(f"{recipe.fingerprint}\n")
    name = recipe.regularizer.name if recipe.regularizer else "none"
    noise = random.Random(f"3 {name} {recipe.seed}").gauss(0, 0.01) + random.Random(recipe.seed).gauss(0, 0.01)
    value = 0.5 + EFFECTS.get(name, 0.0) + noise
    report(Progress(step=recipe.iterations, total=recipe.iterations, metrics={"train/loss": 1.0}, log="trained\n"))
    return Result(outcome="ok", metrics={"best/validation/map@r": value, "best/test/map@r": value},
                  steps=recipe.iterations, seconds=360.0, best_step=recipe.iterations)  # fmt: skip
