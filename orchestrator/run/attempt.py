"""One attempt: calls the training function by its name, and reports what happened as messages."""

import gc
import importlib
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final, ParamSpec, TypeVar, cast

import psutil

from orchestrator.host.storage import opened
from orchestrator.host.tracing import attempt_span, span
from orchestrator.run.spool import Message
from orchestrator.run.workdir import WorkDirectory, work_directory_for
from orchestrator.views.operations import Inspected, Node
from orchestrator.views.runs import FailureKind, Order
from workers.catalog import Finding, Inspect, Need
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

MEMORY: Final = "memory"
GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much more than after its second training a slot may hold: the first two load what all the others need."""

    times: float = 1.5
    least: int = GIB // 2
    """Bytes; another data set in memory is no leak."""
    seconds: float = 10.0
    """How long a process goes on after a look at what it holds: that takes a tenth of a second, as long as a step."""

    def exceeded(self, now: int, second: int) -> bool:
        """Whether `now` is too much where `second` was held after the second training; both in bytes."""
        return now > max(self.times * second, second + self.least)


class MemoryGrowth:
    """Follows one process over its trainings."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._trainings, self._looked = 0, float("-inf")
        self._first: Mapping[str, int] = {}
        self._second: Mapping[str, int] = {}

    def ended(self) -> None:
        """One more training ended in the process."""
        self._trainings += 1

    def due(self, allowed: Allowance) -> bool:
        """Whether to look at what is held now: the first two are what all others are held against, and the next may be
        too short for a look after each."""
        return self._trainings <= 2 or self._now() - self._looked >= allowed.seconds

    def note(self, held: Mapping[str, int], allowed: Allowance, declared: int | None = None) -> str | None:
        """Take the bytes held after the last training, by kind; why the process is to be replaced, none: it is not.

        `declared` is the memory that its slot asked for. Above it a process is only replaced where a new one held less.
        """
        self._looked = self._now()
        if self._trainings == 1:
            self._first = held
            return None
        if self._trainings == 2:
            self._second = held
        for kind, now in held.items():
            if allowed.exceeded(now, self._second.get(kind, 0)):
                before = f"{self._second.get(kind, 0) / GIB:.2f} GiB after its second"
                return f"it holds {now / GIB:.2f} GiB of {kind} after {self._trainings} trainings, {before}"
        if declared is not None and held[MEMORY] > declared >= self._first[MEMORY]:
            asked = f"its slot asked for {declared / GIB:.2f}"
            return f"it holds {held[MEMORY] / GIB:.2f} GiB of memory after {self._trainings} trainings, {asked}"
        return None


def weighed(train: str) -> dict[str, int]:
    """Let go of what trainings that ended have left in this process; gives the bytes that it holds then, by kind.

    Raises what `release` raises.
    """
    more = release(train)
    return {MEMORY: own_memory(), **more}


def release(train: str) -> Mapping[str, int]:
    """Let go of what trainings that ended have left in this process; gives what their module says that it holds.

    Where the module of the training function `train` has a function `release`, it does so for what only it knows of,
    such as a GPU's memory, and tells what is held of that. Raises what that raises.
    """
    gc.collect()  # a network and its optimizer refer to one another; left to itself Python looks at them hours later
    theirs = getattr(sys.modules.get(train.partition(":")[0]), "release", None)
    return cast("Callable[[], Mapping[str, int]]", theirs)() if callable(theirs) else {}


def own_memory() -> int:
    """The bytes of this process alone: not those of files, such as decoded images, that others map too.

    Counted page by page: the sums that Linux keeps (RSS) are wrong by a hundred megabytes where there are many cores.
    """
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:"))
    except (OSError, StopIteration):
        return int(psutil.Process().memory_full_info().uss)


_SIGNS: Final = re.compile(
    # PyTorch on CUDA and on the CPU, Python, Ray's memory monitor, and the kernel's killer as Ray reports it.
    r"out\s?of\s?memory|\bOOM\b|MemoryError|DefaultCPUAllocator: can't allocate|not enough memory",
    re.IGNORECASE,
)
ADVICE: Final = "give each trial more (slot.gpus, slot.memory_gb), or take smaller batches (sampler)"


def out_of_memory(message: str) -> bool:
    """Whether a failure's message says that memory ran out, on the GPU or on the machine."""
    return _SIGNS.search(message) is not None


def explained(message: str) -> str:
    """The message, with what helps where memory ran out."""
    return f"{message}; {ADVICE}" if out_of_memory(message) else message


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


def inspect(workplace: Workplace, needs: Sequence[Need]) -> list[Finding]:
    """What this machine's data root has of each need."""
    claim_code_caches()
    module, _, function = (workplace.inspect or "").partition(":")
    inspecting = cast("Inspect", getattr(importlib.import_module(module), function))
    return inspecting(needs, workplace.data_root, scratch(), workplace.parts)


def seen(machine: Node, needs: Sequence[Need], found_by: Callable[[], Iterable[Finding]]) -> list[Inspected]:
    """What `found_by` gives on a machine; `unknown` where it fails, so that trainings say themselves what is wrong."""
    try:
        found = list(found_by())
    except Exception as error:  # whatever keeps it from looking is no reason to hold a training
        said = f"it could not be looked at: {type(error).__name__}: {error}"[:1000]
        found = [Finding(state="unknown", said=said)] * len(needs)
    now = datetime.now(UTC)
    return [Inspected(machine.uid, machine.host, need, one, now) for need, one in zip(needs, found, strict=True)]
