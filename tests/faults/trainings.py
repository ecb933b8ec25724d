"""A training that writes down every step it takes, so that a test can count what was lost and what was done twice."""

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from workers.contract import CheckpointError, Place, Progress, Recipe, Result, Stopped

EVERY = 5
"""Steps between two checkpoints."""
POISON = 0.5
"""The learning rate whose process kills itself in its third step, in every attempt."""
GROWTH = 512 * 2**20
"""Bytes that a process allocates at once on a request to grow."""
REPRODUCTION, PACE = "reproduction", "pace.json"
"""Beside the storage folder: a file of steps for each training; how long a step takes, which one none passes, who is
deaf."""


def counted(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """Its state is a hash of all steps so far: a step left out, or taken twice, gives other metrics."""
    home = place.storage.parents[2]
    pace = _pace(home)
    step, state = _read(resume) if resume else (0, recipe.seed)
    total = recipe.iterations or 1
    seed = f"{recipe.regularizer.name}:{recipe.optimizer.options['lr']}"
    began = time.monotonic()
    while step < total:
        while _pace(home).get("hold") == step and not _asked(place, home):
            time.sleep(0.02)
        if _asked(place, home):
            raise Stopped
        if _pace(home).get("grow") == os.getpid():
            bytearray(GROWTH)
        time.sleep(pace.get("seconds", 0.0))
        step += 1
        state = int(sha256(f"{seed}:{state}:{step}".encode()).hexdigest()[:12], 16)
        _note(home / REPRODUCTION, place, step)
        if recipe.optimizer.options["lr"] == POISON and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        saves = step % EVERY == 0
        if saves:
            _write(place.storage / "last.json", {"step": step, "state": state, "padding": "x" * pace.get("bytes", 0)})
        report(
            Progress(
                step=step,
                total=total,
                metrics={"train/loss": _fraction(state)},
                log=f"step {step}\n",
                checkpoint="last.json" if saves else None,
            )
        )
    score = _fraction(state)
    keys = ("best/validation/map@r", "best/test/map@r", "best/test/recall@1", "last/test/map@r")
    return Result(
        outcome="ok",
        metrics=dict.fromkeys(keys, score),
        best_step=total,
        steps=total,
        seconds=time.monotonic() - began,
    )


def real(recipe: Recipe, place: Place, report: Callable[[Progress], None], resume: Path | None = None) -> Result:
    """What the workers really train, with a checkpoint twice a second; each is where it may be held."""
    from workers.train import train

    home = place.storage.parents[2]

    def report_and_wait(progress: Progress) -> None:
        report(progress)
        while progress.checkpoint is not None and _pace(home).get("hold") is not None and not place.stop():
            time.sleep(0.02)

    _note(home / REPRODUCTION, place, 0)
    return train(recipe, replace(place, checkpoint_seconds=0.5), report_and_wait, resume)


def _asked(place: Place, home: Path) -> bool:
    """Whether it is to stop; a process that is deaf never hears it."""
    return place.stop() and _pace(home).get("deaf") != os.getpid()


def _pace(home: Path) -> dict[str, Any]:
    file = home / PACE
    return json.loads(file.read_text()) if file.exists() else {}


def _fraction(state: int) -> float:
    return state / 2**48


def _note(reproduction: Path, place: Place, step: int) -> None:
    """One line for each step: attempt, process, step and moment."""
    reproduction.mkdir(exist_ok=True)
    line = f"{place.storage.name} {os.getpid()} {step} {time.time():.3f}\n"
    descriptor = os.open(reproduction / place.storage.parent.name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def _write(file: Path, content: dict[str, object]) -> None:
    aside = file.with_suffix(".new")
    aside.write_text(json.dumps(content))
    aside.replace(file)


def _read(file: Path) -> tuple[int, int]:
    try:
        kept = json.loads(file.read_text())
        return kept["step"], kept["state"]
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file.name} is damaged: {error}") from error
