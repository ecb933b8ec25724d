"""One attempt: calls the training function by its name and says in messages what came of it."""

import importlib
import os
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from orchestrator.run.exhaustion import explained, out_of_memory
from orchestrator.run.spool import Message, Spool, attempt_folder
from orchestrator.trial import FailureKind, Order
from workers.contract import CheckpointError, Place, Progress, Recipe, Stopped, Train

TRACE_CHARACTERS: Final = 8_000
INFRASTRUCTURE: Final = (MemoryError, OSError, ConnectionError)
"""Errors that say more about the machine than about the recipe, so that another attempt may help."""
MISSING: Final = (FileNotFoundError, NotADirectoryError, PermissionError)
"""Errors of the operating system that another attempt meets again."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """What every attempt of an installation shares."""

    train: str  # module:function
    storage: Path
    data: Path
    parts: Path | None = None
    checkpoint_seconds: float = 20.0

    def place(self, order: Order, stop: Callable[[], bool]) -> Place:
        """Where this attempt runs; a machine's own METRICSWEEP_DATA wins over the conductor's."""
        gpus = order.slot.gpus
        return Place(
            data_root=Path(os.environ.get("METRICSWEEP_DATA") or self.data),
            scratch=Path(tempfile.gettempdir()) / f"metricsweep-scratch-{os.getuid()}",
            storage=attempt_folder(self.storage, order),
            device="auto" if gpus == "auto" else ("cuda" if gpus > 0 else "cpu"),
            threads=max(1, int(order.slot.cpus)),
            checkpoint_seconds=self.checkpoint_seconds,
            stop=stop,
            parts=self.parts,
        )


def resolve(name: str) -> Train:
    """The function that `module:function` names; ValueError when there is none."""
    module, _, function = name.partition(":")
    try:
        return cast("Train", getattr(importlib.import_module(module), function))
    except (ImportError, AttributeError) as error:
        raise ValueError(f"no training function {name!r}: {error}") from error


def execute(order: Order, workplace: Workplace, stop: Callable[[], bool], tell: Callable[[Message], None]) -> None:
    """Run one attempt to its end; every message is spooled before `tell` sees it. Raises nothing of the training's."""
    spool = Spool(attempt_folder(workplace.storage, order))

    def report(progress: Progress) -> None:
        tell(spool.append("progress", progress.model_dump(mode="json")))

    try:
        place = workplace.place(order, stop)
        place.scratch.mkdir(parents=True, exist_ok=True)
        resume = workplace.storage / order.resume if order.resume else None
        if resume is not None and not resume.exists():
            report(Progress(step=0, total=1, log=f"checkpoint {order.resume} is gone; starting anew\n"))
            resume = None
        train, recipe = resolve(workplace.train), Recipe.model_validate(order.recipe)
        try:
            result = train(recipe, place, report, resume)
        except CheckpointError as error:
            if resume is None:
                raise
            report(Progress(step=0, total=recipe.iterations or 1, log=f"{error}; starting anew\n"))
            result = train(recipe, place, report, None)
        tell(spool.append("finished", result.model_dump(mode="json")))
    except Stopped:
        tell(spool.append("stopped", {}))
    except Exception as error:  # whatever the training raises is its outcome, not ours
        tell(spool.append("failed", _failure(error)))
    finally:
        spool.close()


def _failure(error: Exception) -> dict[str, Any]:
    machine = isinstance(error, INFRASTRUCTURE) and not isinstance(error, MISSING)
    text = str(error).strip().splitlines()
    said = f"{type(error).__name__}: {text[0] if text else ''}"[:1000]
    kind: FailureKind = "infrastructure" if machine or out_of_memory(said) else "recipe"
    return {
        "kind": kind,
        "message": explained(said),
        "trace": "".join(traceback.format_exception(error))[-TRACE_CHARACTERS:],
    }
