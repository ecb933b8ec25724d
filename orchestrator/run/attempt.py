"""One attempt: calls the training function by its name, or what evaluates, and says in messages what came of it."""

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final, ParamSpec, TypeVar, cast

from orchestrator.host.storage import opened
from orchestrator.host.tracing import attempt_span, span
from orchestrator.run.memory_growth import Allowance
from orchestrator.run.message import Message
from orchestrator.run.out_of_memory import explained, out_of_memory
from orchestrator.run.work_directory import WorkDirectory, work_directory_for
from orchestrator.views.runs import FailureKind, Order
from workers.contract import (
    CheckpointError,
    CodeChangedError,
    DataDamagedError,
    DataMissingError,
    Evaluate,
    Place,
    Progress,
    Recipe,
    Result,
    Stopped,
    Train,
)
from workers.data.scratch import claim_code_caches, scratch, unmade

TRACE_CHARACTERS: Final = 8_000
INFRASTRUCTURE: Final = (MemoryError, OSError, ConnectionError, CodeChangedError)
"""Errors that say more about the machine than about the recipe, so that another attempt may help."""
MISSING: Final = (FileNotFoundError, NotADirectoryError, PermissionError)
"""Errors of the operating system that another attempt meets again."""

_Given = ParamSpec("_Given")
_Got = TypeVar("_Got")


@dataclass(frozen=True, slots=True)
class Workplace:
    """What every attempt of an installation shares."""

    train: str  # module:function
    storage: Path | str  # a folder, or the URL of a store
    data: Path
    parts: Path | None = None
    checkpoint_seconds: float = 20.0
    allowance: Allowance = field(default_factory=Allowance)
    inspect: str | None = None  # module:function that inspects a data root; none: nobody does
    edition: str = ""  # of the parts' versions: a slot that holds the code of another one trains nothing more

    @property
    def data_root(self) -> Path:
        """This machine's: its own METRICSWEEP_DATA wins over the conductor's."""
        return Path(os.path.expanduser(os.environ.get("METRICSWEEP_DATA") or self.data))

    def place(self, order: Order, folder: Path, stop: Callable[[], bool]) -> Place:
        """Where this attempt runs, writing to `folder`."""
        gpus = order.slot.gpus
        return Place(
            data_root=self.data_root,
            scratch=scratch(),
            storage=folder,
            device="auto" if gpus == "auto" else ("cuda" if gpus > 0 else "cpu"),
            threads=max(1, int(order.slot.cpus)),
            checkpoint_seconds=self.checkpoint_seconds,
            stop=stop,
            parts=self.parts,
        )


def resolve(name: str) -> Train:
    """The function that `module:function` names; ValueError when there is none. Raises UnsafeFolderError."""
    claim_code_caches()
    module, _, function = name.partition(":")
    try:
        return cast("Train", getattr(importlib.import_module(module), function))
    except (ImportError, AttributeError) as error:
        raise ValueError(f"no training function {name!r}: {error}") from error


class _KeptWeightsError(RuntimeError):
    """Kept weights cannot be evaluated; training anew would help."""


class _Ours(BaseException):
    """Carries what our own side raised through the training, which takes it for no fault of its own."""


def execute(order: Order, workplace: Workplace, stop: Callable[[], bool], tell: Callable[[Message], None]) -> None:
    """Run one attempt to its end; every message is spooled before `tell` sees it.

    Raises nothing of the training's. What `stop` or `tell` raise, such as a database that is away, leaves the attempt
    where it is and is raised here.
    """
    facts = {"sweep": order.sweep, "trial": order.trial, "number": order.number, "resume": order.resume}
    with attempt_span(order.training, order.attempt, label=order.label, **facts) as noted:
        try:
            last = _attempt(order, workplace, _carried(stop), _carried(tell))
        except _Ours as carried:
            raise carried.__cause__ or carried from None
        noted.note(outcome=last.kind)
        if last.kind == "failed":
            noted.fail(str(last.body.get("message", "")))
    tell(last)


def _attempt(order: Order, workplace: Workplace, stop: Callable[[], bool], tell: Callable[[Message], None]) -> Message:
    """Run one attempt; gives its last message, which is spooled and not told yet."""
    directory = work_directory_for(opened(workplace.storage), order, unmade(), stop)
    try:
        with span("open"):
            directory.open()
        place = workplace.place(order, directory.folder, stop)
        carry_out = _train if order.evaluation is None else _evaluate
        with span("train" if order.evaluation is None else "evaluate"):
            result = carry_out(order, workplace, place, directory, lambda progress: tell(directory.report(progress)))
        with span("keep"):
            directory.keep(result)
        return directory.end("finished", result.model_dump(mode="json"))
    except Stopped:
        return directory.end("stopped", {})
    except (Exception, SystemExit) as error:  # whatever the training raises is its outcome, not ours
        return directory.end("failed", _failure(error))


def _carried(act: Callable[_Given, _Got]) -> Callable[_Given, _Got]:
    """Our own side's function for the training to call."""

    def call(*given: _Given.args, **named: _Given.kwargs) -> _Got:
        try:
            return act(*given, **named)
        except Exception as error:
            raise _Ours from error

    return call


def _train(
    order: Order, workplace: Workplace, place: Place, directory: WorkDirectory, report: Callable[[Progress], None]
) -> Result:
    """Call the training function, on from the first checkpoint that is there and whole, else from the start."""
    train, recipe = resolve(workplace.train), Recipe.model_validate(order.recipe)

    def say(line: str) -> None:
        report(Progress(step=0, total=recipe.iterations or 1, log=f"{line}\n"))

    for key in _checkpoints(order):
        resume = directory.checkpoint(key)
        if resume is None:
            if key == order.resume:
                say(f"checkpoint {key} is gone")
            continue
        if key != order.resume:
            say(f"going on from {key}")
        try:
            return train(recipe, place, report, resume)
        except CheckpointError as error:
            say(str(error))
    if order.resume:
        say("starting anew")
    return train(recipe, place, report, None)


def _evaluate(
    order: Order, workplace: Workplace, place: Place, directory: WorkDirectory, report: Callable[[Progress], None]
) -> Result:
    """Call the function `evaluate` beside the training function; raises _KeptWeightsError where that cannot be."""
    asked = order.evaluation
    resolve(workplace.train)
    evaluate = getattr(sys.modules[workplace.train.partition(":")[0]], "evaluate", None)
    if asked is None or not callable(evaluate):
        raise _KeptWeightsError(f"beside {workplace.train} there is no function `evaluate`")
    weights = directory.checkpoint(asked.weights)
    if weights is None:
        raise _KeptWeightsError(f"{asked.weights} is gone")
    try:
        return cast("Evaluate", evaluate)(Recipe.model_validate(order.recipe), place, report, weights, asked.metrics)
    except CheckpointError as error:
        raise _KeptWeightsError(str(error)) from error


def _checkpoints(order: Order) -> Iterator[str]:
    """What an attempt may go on from, the best first: the checkpoint that the order names, then earlier attempts'."""
    if order.resume:
        yield order.resume
        name = PurePosixPath(order.resume).name
        others = (f"{order.training}/{number}/{name}" for number in range(order.number - 1, 0, -1))
        yield from (key for key in others if key != order.resume)


def _kind(error: BaseException, said: str) -> FailureKind:
    if isinstance(error, _KeptWeightsError):
        return "kept_weights"
    if isinstance(error, DataMissingError):
        return "missing"
    if isinstance(error, DataDamagedError):
        return "damaged"
    machine = isinstance(error, INFRASTRUCTURE) and not isinstance(error, MISSING)
    return "infrastructure" if machine or out_of_memory(said) else "recipe"


def _failure(error: BaseException) -> dict[str, Any]:
    text = str(error).strip().splitlines()
    named = "kept weights" if isinstance(error, _KeptWeightsError) else type(error).__name__
    said = f"{named}: {text[0] if text else ''}"[:1000]
    return {
        "kind": _kind(error, said),
        "message": explained(said),
        "trace": "".join(traceback.format_exception(error))[-TRACE_CHARACTERS:],
    }
