"""Runs one attempt at a training: calls the training function by its name, and spools what happens as messages."""

import gc
import os
import pkgutil
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
    """How far the memory of a slot's process may grow after its second training before it is replaced."""

    times: float = 1.5
    least: int = GIB // 2  # bytes; another data set in memory is no leak
    seconds: float = 10.0  # the time between two measurements: one takes a tenth of a second, as long as a step


class MemoryGrowth:
    """Decides from the memory that a process holds after its trainings whether to replace the process."""

    def __init__(self) -> None:
        self._trainings, self._measured = 0, float("-inf")
        self._first: Mapping[str, int] = {}
        self._second: Mapping[str, int] = {}

    def ended(self) -> None:
        """Count a training that this process has ended."""
        self._trainings += 1

    def due(self, allowed: Allowance) -> bool:
        """Whether to measure the memory now: always after the first two trainings, the basis of comparison."""
        return self._trainings <= 2 or time.monotonic() - self._measured >= allowed.seconds

    def note(self, used: Mapping[str, int], allowed: Allowance, declared: int | None = None) -> str | None:
        """Compare the memory in bytes, by kind, that the process holds now; returns why to replace it, or `None`.

        `declared` is the memory that its slot asked for. A process above it is replaced only if it began below it.
        """
        self._measured = time.monotonic()
        if self._trainings == 1:
            self._first = used
            return None
        if self._trainings == 2:
            self._second = used
        for kind, now in used.items():
            second = self._second.get(kind, 0)
            if now > max(allowed.times * second, second + allowed.least):
                before = f"{second / GIB:.2f} GiB after its second"
                return f"it holds {now / GIB:.2f} GiB of {kind} after {self._trainings} trainings, {before}"
        if declared is not None and used[MEMORY] > declared >= self._first[MEMORY]:
            reservation = f"its slot asked for {declared / GIB:.2f}"
            return f"it holds {used[MEMORY] / GIB:.2f} GiB of memory after {self._trainings} trainings, {reservation}"
        return None


def release(train: str) -> Mapping[str, int]:
    """Free what ended trainings have left in this process; return the bytes that their module still holds, by kind.

    Calls the function `release` of the module of the training function `train`, if it has one: for what only that
    module knows of, such as a GPU's memory. Raises what that function raises.
    """
    gc.collect()  # a network and its optimizer refer to one another, and Python's own collection may come hours later
    theirs = getattr(sys.modules.get(train.partition(":")[0]), "release", None)
    return cast("Callable[[], Mapping[str, int]]", theirs)() if callable(theirs) else {}


def own_memory() -> int:
    """The bytes of memory of this process alone, without files that others map too, such as decoded images.

    Counted page by page: Linux's own sums (RSS) are wrong by a hundred megabytes on machines with many cores.
    """
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:"))
    except (OSError, StopIteration):
        return int(psutil.Process().memory_full_info().uss)


_OUT_OF_MEMORY: Final = re.compile(
    # PyTorch on CUDA and on the CPU, Python, Ray's memory monitor, and the kernel's killer as Ray reports it.
    r"out\s?of\s?memory|\bOOM\b|MemoryError|DefaultCPUAllocator: can't allocate|not enough memory",
    re.IGNORECASE,
)
ADVICE: Final = "give each trial more (slot.gpus, slot.memory_gb), or take smaller batches (sampler)"


def out_of_memory(message: str) -> bool:
    """Whether the message of a failure says that the GPU or the machine ran out of memory."""
    return _OUT_OF_MEMORY.search(message) is not None


def explained(message: str) -> str:
    """The message of a failed training, with advice if memory ran out."""
    return f"{message}; {ADVICE}" if out_of_memory(message) else message


TRACE_CHARACTERS: Final = 8_000
_INFRASTRUCTURE: Final = (MemoryError, OSError, ConnectionError, CodeChangedError)
"""Errors of the machine rather than of the recipe, so that another attempt may help."""
_MISSING: Final = (FileNotFoundError, NotADirectoryError, PermissionError)
"""Errors of the operating system that another attempt would meet again."""

_Given = ParamSpec("_Given")
_Got = TypeVar("_Got")


@dataclass(frozen=True, slots=True)
class Workplace:
    """The settings that all attempts of an installation share: training function, storage, data, parts."""

    train: str  # module:function
    storage: Path | str  # a folder, or the URL of a bucket
    data: Path
    parts: Path | None = None
    checkpoint_seconds: float = 20.0
    allowance: Allowance = field(default_factory=Allowance)
    inspect: str | None = None  # module:function that inspects a data root; None: data roots are not inspected
    edition: str = ""  # of the parts' versions; a slot with the code of another edition trains nothing more

    @property
    def data_root(self) -> Path:
        """The data folder of this machine: its own METRICSWEEP_DATA wins over the conductor's."""
        return Path(os.path.expanduser(os.environ.get("METRICSWEEP_DATA") or self.data))

    def place(self, order: Order, folder: Path, stop: Callable[[], bool]) -> Place:
        """The place that the training function gets: folders, device, threads and `stop`."""
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
    """The training function that `module:function` names; raises ValueError if it cannot be imported."""
    claim_code_caches()
    try:
        return cast("Train", pkgutil.resolve_name(name))
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"the training function {name!r} cannot be imported: {error}") from error


class _KeptWeightsError(RuntimeError):
    """Kept weights cannot be evaluated; training again would help."""


class _CallbackError(BaseException):
    """Carries an error of `stop` or `send` through the training function, which must not handle it."""


def execute(
    order: Order,
    workplace: Workplace,
    stop: Callable[[], bool],
    send: Callable[[Message], None],
    measure: Callable[[], Mapping[str, float]] = dict,
) -> None:
    """Run one attempt to its end; every message is spooled before it is given to `send`.

    `measure` gives points of further curves, such as `system/memory`, for each progress after the first step.
    An error of the training becomes a message. An error of `stop` or `send`, such as an unavailable database, is
    raised, and the attempt can be continued from its last checkpoint.
    """
    facts = {"sweep": order.sweep, "trial": order.trial, "number": order.number, "resume": order.resume}
    with attempt_span(order.training, order.attempt, label=order.label, **facts) as noted:
        try:
            last = _attempt(order, workplace, _shielded(stop), _shielded(send), measure)
        except _CallbackError as error:
            raise error.__cause__ or error from None
        noted.note(outcome=last.kind)
        if last.kind == "failed":
            noted.fail(str(last.body.get("message", "")))
    send(last)


def _attempt(
    order: Order,
    workplace: Workplace,
    stop: Callable[[], bool],
    send: Callable[[Message], None],
    measure: Callable[[], Mapping[str, float]],
) -> Message:
    """Run one attempt and return its last message, which is spooled and not given to `send`."""

    def report(progress: Progress) -> None:
        if progress.step > 0:  # lines of the log before the training begins have no step yet
            progress = progress.model_copy(update={"metrics": {**measure(), **progress.metrics}})
        send(directory.report(progress))

    directory = work_directory_for(opened(workplace.storage), order, unmade(), stop)
    try:
        with span("open"):
            directory.open()
        place = workplace.place(order, directory.folder, stop)
        act = _train if order.evaluation is None else _evaluate
        with span("train" if order.evaluation is None else "evaluate"):
            result = act(order, workplace, place, directory, report)
        with span("keep"):
            directory.keep(result)
        return directory.end("finished", result.model_dump(mode="json"))
    except Stopped:
        return directory.end("stopped", {})
    except (Exception, SystemExit) as error:  # whatever the training raises is the outcome of the attempt
        return directory.end("failed", _failure(error))


def _shielded(act: Callable[_Given, _Got]) -> Callable[_Given, _Got]:
    """The function for the training to call, whose errors pass through the training unhandled."""

    def call(*given: _Given.args, **named: _Given.kwargs) -> _Got:
        try:
            return act(*given, **named)
        except Exception as error:
            raise _CallbackError from error

    return call


def _train(
    order: Order, workplace: Workplace, place: Place, directory: WorkDirectory, report: Callable[[Progress], None]
) -> Result:
    """Call the training function, from the first checkpoint that is readable, else from the start."""
    train, recipe = resolve(workplace.train), Recipe.model_validate(order.recipe)

    def log(line: str) -> None:
        report(Progress(step=0, total=recipe.iterations or 1, log=f"{line}\n"))

    for key in _checkpoints(order):
        resume = directory.checkpoint(key)
        if resume is None:
            if key == order.resume:
                log(f"checkpoint {key} is gone")
            continue
        if key != order.resume:
            log(f"going on from {key}")
        try:
            return train(recipe, place, report, resume)
        except CheckpointError as error:
            log(str(error))
    if order.resume:
        log("starting from the beginning")
    return train(recipe, place, report, None)


def _evaluate(
    order: Order, workplace: Workplace, place: Place, directory: WorkDirectory, report: Callable[[Progress], None]
) -> Result:
    """Call the function `evaluate` of the training function's module; raises _KeptWeightsError if that fails."""
    evaluation = order.evaluation
    resolve(workplace.train)
    evaluate = getattr(sys.modules[workplace.train.partition(":")[0]], "evaluate", None)
    if evaluation is None or not callable(evaluate):
        raise _KeptWeightsError(f"the module of {workplace.train} has no function `evaluate`")
    weights = directory.checkpoint(evaluation.weights)
    if weights is None:
        raise _KeptWeightsError(f"the kept weights {evaluation.weights} are not in the storage any more")
    try:
        return cast("Evaluate", evaluate)(
            Recipe.model_validate(order.recipe), place, report, weights, evaluation.metrics
        )
    except CheckpointError as error:
        raise _KeptWeightsError(str(error)) from error


def _checkpoints(order: Order) -> Iterator[str]:
    """The checkpoints to continue from, the best first: the one that the order names, then earlier attempts'."""
    if order.resume:
        yield order.resume
        name = PurePosixPath(order.resume).name
        others = (f"{order.training}/{number}/{name}" for number in range(order.number - 1, 0, -1))
        yield from (key for key in others if key != order.resume)


def _kind(error: BaseException, message: str) -> FailureKind:
    if isinstance(error, _KeptWeightsError):
        return "kept_weights"
    if isinstance(error, DataMissingError):
        return "missing"
    if isinstance(error, DataDamagedError):
        return "damaged"
    machine = isinstance(error, _INFRASTRUCTURE) and not isinstance(error, _MISSING)
    return "infrastructure" if machine or out_of_memory(message) else "recipe"


def _failure(error: BaseException) -> dict[str, Any]:
    text = str(error).strip().splitlines()
    named = "kept weights" if isinstance(error, _KeptWeightsError) else type(error).__name__
    message = f"{named}: {text[0] if text else ''}"[:1000]
    return {
        "kind": _kind(error, message),
        "message": explained(message),
        "trace": "".join(traceback.format_exception(error))[-TRACE_CHARACTERS:],
    }


def inspect(workplace: Workplace, needs: Sequence[Need]) -> list[Finding]:
    """What the data folder of this machine has of each data set."""
    claim_code_caches()
    inspecting = cast("Inspect", pkgutil.resolve_name(workplace.inspect or ""))
    return inspecting(needs, workplace.data_root, scratch(), workplace.parts)


def inspection(machine: Node, needs: Sequence[Need], look: Callable[[], Iterable[Finding]]) -> list[Inspected]:
    """The results of inspecting data sets on a machine; `unknown` if the inspection fails."""
    try:
        found = list(look())
    except Exception as error:  # no failure of an inspection is a reason to hold a training back
        message = f"it could not be looked at: {type(error).__name__}: {error}"[:1000]
        found = [Finding(state="unknown", message=message)] * len(needs)
    now = datetime.now(UTC)
    return [Inspected(machine.uid, machine.host, *pair, now) for pair in zip(needs, found, strict=True)]


INSPECTION_SECONDS: Final = 120.0
"""How long an inspection may take; after that, a training itself reports what it lacks."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """An inspection that a machine makes now."""

    machine: Node
    needs: Sequence[Need]
    ended: Callable[[], object]
    findings: Callable[[], Iterable[Finding]]  # raises an error if it failed or has not ended
    began: float = field(default_factory=time.monotonic)


def results(inspections: list[Inspection]) -> list[Inspected]:
    """Remove the inspections that have ended or took too long, and return their results."""
    over = [one for one in inspections if one.ended() or time.monotonic() - one.began > INSPECTION_SECONDS]
    inspections[:] = [one for one in inspections if one not in over]
    return [found for one in over for found in inspection(one.machine, one.needs, one.findings)]
