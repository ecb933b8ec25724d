"""A slot that joins by files: its resources, its mailbox, and its life from joining to leaving."""

import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeVar

import psutil
from pydantic import ConfigDict, TypeAdapter

from orchestrator.host.disk import replacing
from orchestrator.host.files import own_folder
from orchestrator.host.storage import Folder, opened
from orchestrator.run.attempt import Workplace, inspect
from orchestrator.run.slot import SlotActor
from orchestrator.run.spool import Message
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.runs import Order
from workers.catalog import Finding, Need

MEGABYTE: Final = 2**20


class Allocation:
    """Read off the environment that Slurm gives a job; without one it is the machine's."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._told = environment

    @property
    def job(self) -> str:
        """What the scheduler calls it, with the number of times that it was requeued; empty: there is none."""
        told = self._told
        array = told.get("SLURM_ARRAY_JOB_ID")
        job = f"{array}_{told.get('SLURM_ARRAY_TASK_ID', '')}" if array else told.get("SLURM_JOB_ID", "")
        again = told.get("SLURM_RESTART_COUNT", "0")
        return f"{job}r{again}" if job and again != "0" else job

    def resources(self) -> dict[str, float]:
        """CPUs, GPUs and memory by the names that slots are counted in."""
        return {"CPU": self._cpus(), "GPU": float(self._gpus()), "memory": float(self._memory())}

    def _cpus(self) -> float:
        for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
            if self._told.get(name, "").isdigit():
                return float(self._told[name])
        return float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

    def _gpus(self) -> int:
        visible = self._told.get("CUDA_VISIBLE_DEVICES")
        if visible is not None:
            return len([one for one in visible.split(",") if one.strip() and one.strip() != "-1"])
        told = self._told.get("SLURM_GPUS_ON_NODE", "")
        if self.job:
            return int(told) if told.isdigit() else 0
        return _installed()

    def _memory(self) -> int:
        per_node, per_cpu = self._told.get("SLURM_MEM_PER_NODE", ""), self._told.get("SLURM_MEM_PER_CPU", "")
        if per_node.isdigit() and int(per_node):
            return int(per_node) * MEGABYTE
        if per_cpu.isdigit() and int(per_cpu):
            return int(int(per_cpu) * self._cpus()) * MEGABYTE
        return int(psutil.virtual_memory().total)


def _installed() -> int:
    """The GPUs that NVML tells of; 0 where there is none that does."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return int(pynvml.nvmlDeviceGetCount())
    except Exception:  # no module, no library, no driver
        return 0


MOST_BYTES: Final = 16 * 2**20
"""Of a file that one side writes: an order with its recipe and an inspection of thousands of data sets take a tenth."""
T = TypeVar("T")


class DamagedFileError(OSError):
    """A file does not hold what the other side writes there."""


def write(file: Path, content: Mapping[str, Any]) -> None:
    """Replace a file whole, on disk before anybody sees it; raises OSError."""
    with replacing(file, mode=0o600) as made:
        made.write(json.dumps(content).encode())
    settle(file.parent)


def read(file: Path) -> dict[str, Any]:
    """What stands in a file; raises OSError, DamagedFileError where that is no object of JSON."""
    with file.open("rb") as opened_file:
        content = opened_file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DamagedFileError(f"{file} is damaged: it is larger than {MOST_BYTES // 2**20} MiB")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{file} is damaged: {error}") from error
    if not isinstance(found, dict):
        raise DamagedFileError(f"{file} is damaged: expected an object, found {str(found)[:80]}")
    return found


def read_as(reader: TypeAdapter[T], file: Path) -> T:
    """What stands in a file as what its other side writes; raises OSError, DamagedFileError where it is not."""
    return valid(reader, read(file), file)


def valid(reader: TypeAdapter[T], found: Mapping[str, Any], file: Path) -> T:
    """What was read, as that; raises DamagedFileError."""
    try:
        return reader.validate_python(found)
    except ValueError as error:
        raise DamagedFileError(f"{file} is damaged: {' '.join(str(error).split())[:500]}") from error


def settle(folder: Path) -> None:
    """Have the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


FORM: Final = 1
"""Of what the two sides write."""
ROOM: Final = "slots"
"""The folder in the storage."""
HERE: Final = "here"
"""The folder in that, with a folder for each slot."""
ORDER, STATE, DEMAND, OWNER = "order.json", "state.json", "demand.json", "installation.json"
SILENT_SECONDS: Final = 60.0
"""A slot that has told nothing for so long counts as lost; one that could tell nothing for half of it stops."""

LEFT_SECONDS: Final = 3_600.0
"""What was written aside and never put in its place is removed after so long."""

Phase = Literal["here", "leaving", "left"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """What the conductor wants of a slot: the latest one alone counts."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)

    fence: int = 0
    """The lease's. A slot that has seen a higher one does nothing of what stands beside a lower one."""
    number: int = 0
    do: Literal["keep", "train", "stop", "end", "renew"] = "keep"
    """`keep` is a greeting, which a slot answers like any other; `renew`: end, and begin anew as another process."""
    attempt: str | None = None  # that is to be stopped
    order: Mapping[str, Any] | None = None  # that is to be trained
    workplace: Mapping[str, Any] | None = None
    look: int = 0  # the number of the inspection that is asked for
    needs: list[Any] = field(default_factory=list)  # that it looks for


@dataclass(frozen=True, slots=True)
class State:
    """What a slot says of itself."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)

    form: int = FORM
    beat: int = 0  # grows with every writing
    phase: Phase = "here"
    fence: int = 0  # of the instruction that it has taken last, and that one's number
    taken: int = 0
    host: str = ""
    pid: int = 0
    job: str = ""  # what its scheduler calls it
    resources: Mapping[str, float] = field(default_factory=dict)
    edition: str = ""
    attempt: str | None = None
    busy: bool = False
    worn: str | None = None
    said: int = 0
    ages: list[float] = field(default_factory=list)
    usage: Mapping[str, Any] | None = None
    last: str | None = None  # the last message of an attempt that failed, which its spool may lack
    looked: int = 0  # the number of the inspection that has ended
    found: list[Any] | None = None
    problem: str | None = None  # why it found nothing


_INSTRUCTIONS: Final = TypeAdapter(Instruction)
_STATES: Final = TypeAdapter(State)


class Box:
    """The folder of one slot."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name

    def make(self, state: State) -> None:
        """Make it; nobody sees it before it is whole."""
        aside = self.folder.with_name(f".{self.name}")
        aside.mkdir()
        write(aside / ORDER, asdict(Instruction()))
        write(aside / STATE, asdict(state))
        aside.rename(self.folder)
        settle(self.folder.parent)

    def instruction(self) -> Instruction:
        """The latest instruction; raises OSError, FileNotFoundError where the slot has been given up."""
        return read_as(_INSTRUCTIONS, self.folder / ORDER)

    def instruct(self, instruction: Instruction) -> None:
        """Replace the instruction; raises OSError."""
        write(self.folder / ORDER, asdict(instruction))

    def state(self) -> State | None:
        """What the slot said last; none: in a form that is not ours. Raises OSError."""
        found = read(self.folder / STATE)
        return valid(_STATES, found, self.folder / STATE) if found.get("form") == FORM else None

    def tell(self, state: State) -> None:
        """Replace the state; raises OSError."""
        write(self.folder / STATE, asdict(state))

    def remove(self) -> None:
        """Give the slot up: it ends once it sees that."""
        aside = self.folder.with_name(f".{self.name}")
        with suppress(OSError):
            self.folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def room(storage: Path | str) -> Path:
    """The folder of all slots in a storage, made where it is not there and closed to others.

    Who can write there has slots call functions by name. Raises MetricsweepError for a bucket, and where the folder
    is somebody else's.
    """
    there = opened(storage)
    if not isinstance(there, Folder):
        raise MetricsweepError(
            "METRICSWEEP_STORAGE_URL: slots that join by files need a folder that they and the conductor see, "
            f"found {storage}"
        )
    own_folder(there.root / ROOM)
    own_folder(there.root / ROOM / HERE)
    return there.root / ROOM


def boxes(room: Path) -> list[Box]:
    """The slots that there are, by name."""
    return [Box(path) for path in sorted((room / HERE).iterdir()) if not path.name.startswith(".")]


def tidy(room: Path) -> None:
    """Remove what was written aside by who died before it was in its place, or given up and not removed whole."""
    before = time.time() - LEFT_SECONDS  # by the clock of whoever wrote it: an hour is far from any that is right
    for folder in (room, room / HERE):
        with suppress(OSError):
            for path in [one for one in folder.iterdir() if one.name.startswith(".")]:
                if path.lstat().st_mtime < before:
                    _discard(path)


def _discard(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


POLL_SECONDS: Final = 1.0
"""How often a slot looks for an instruction."""
BEAT_SECONDS: Final = 5.0
"""How often it tells of itself while nothing changes."""
ORDERS: Final = TypeAdapter(Order)
WORKPLACES: Final = TypeAdapter(Workplace)
NEEDS: Final = TypeAdapter(list[Need])
FINDINGS: Final = TypeAdapter(list[Finding])


class FileSlot:
    """One slot. What it trains, how, and what it holds afterwards is the slot actor's; here is how it is reached."""

    def __init__(
        self,
        box: Box,
        storage: Path,
        state: State,
        *,
        idle: float,
        poll: float = POLL_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._box, self._storage, self._state = box, storage, state
        self._idle, self._poll, self._now = idle, poll, now
        self._actor = SlotActor(lonely=1e9, edition=state.edition)
        self._wake = threading.Event()
        self._why: str | None = None  # it leaves
        self._renew = False
        self._looking, self._looked = 0, dict[str, Any]()  # the number of the inspection, and what the last one found
        self._beat, self._shown = 0, State()
        self._told = self._heard = self._used = now()

    def leave(self, why: str) -> None:
        """Give back what it trains, from its last checkpoint on, and end. Also for signal handlers."""
        self._why = self._why or why
        self._wake.set()

    def run(self) -> bool:
        """Serve until it is to leave; whether another process is to take its place."""
        self._box.make(self._state)
        while True:
            self._turn()
            described = self._actor.describe()
            if self._why is not None:
                if not described["busy"]:
                    break
                self._actor.stop(described["attempt"])
            elif described["busy"]:
                self._used = self._now()
            elif self._now() - self._used > self._idle:
                self.leave(f"it had nothing to train for {self._idle:g} s")
            if self._wake.wait(self._poll):
                self._wake.clear()
                if self._why is not None:
                    time.sleep(min(self._poll, 0.1))  # what it trains needs a moment to stop
        self._end()
        return self._renew

    def _turn(self) -> None:
        """Read the instruction and tell of itself; a storage that is away for long, or gave it up, ends the slot."""
        try:
            self._obey(self._box.instruction())
            self._tell()
            self._heard = self._now()
        except FileNotFoundError:
            self.leave("it was given up")
        except OSError as error:
            if self._now() - self._heard > SILENT_SECONDS / 2:
                self.leave(f"the storage does not answer: {error}")
        except ValueError as error:  # an order of another release, say: a slot that ends is noticed, a mute one late
            self.leave(f"what it is told cannot be read: {' '.join(str(error).split())[:500]}")

    def _obey(self, given: Instruction) -> None:
        if given.fence < self._state.fence:
            return  # of a conductor whose lease another one has taken
        if given.look > self._looking:
            self._looking = given.look
            threading.Thread(target=self._look, args=(given,), daemon=True).start()
        if (given.fence, given.number) <= (self._state.fence, self._state.taken):
            return
        if given.do == "train" and self._why is None:
            self._used = self._now()
            self._actor.start(ORDERS.validate_python(given.order), self._workplace(given), given.fence)
        elif given.do == "stop" and given.attempt:
            self._actor.stop(given.attempt)
        elif given.do in ("end", "renew"):
            self._renew = given.do == "renew"
            self.leave("it was asked to")
        self._state = replace(self._state, fence=given.fence, taken=given.number)

    def _workplace(self, given: Instruction) -> Workplace:
        """The conductor's, but for where the storage and one's own parts are on this machine."""
        parts = os.path.expanduser(os.environ.get("METRICSWEEP_PARTS", ""))
        told = WORKPLACES.validate_python(given.workplace)
        return replace(told, storage=self._storage, parts=Path(parts) if parts else told.parts)

    def _tell(self) -> None:
        """Write the state, where it has changed or where it is time to."""
        described = self._actor.describe()
        named = {key: described[key] for key in ("attempt", "busy", "worn")}
        phase: Phase = "here" if self._why is None else "leaving"
        self._state = replace(self._state, phase=phase, **named, **self._looked)
        if self._state != self._shown or self._now() - self._told >= BEAT_SECONDS:
            self._write(described)

    def _write(self, described: Mapping[str, Any]) -> None:
        self._beat += 1
        told = {key: described[key] for key in ("said", "ages", "usage")}
        self._box.tell(replace(self._state, beat=self._beat, last=self._last(described), **told))
        self._shown, self._told = self._state, self._now()

    def _last(self, described: Mapping[str, Any]) -> str | None:
        """The failure in which the attempt ended: the slot's own is in no spool."""
        if described["attempt"] is None or described["busy"] or not described["said"]:
            return None
        lines = self._actor.poll(described["attempt"], described["said"] - 1, 0)
        return lines[-1].decode() if lines and Message.of(lines[-1]).kind == "failed" else None

    def _look(self, given: Instruction) -> None:
        """Inspect this machine's data root; the state tells it at the next turn."""
        told: dict[str, Any]
        try:
            found = inspect(self._workplace(given), NEEDS.validate_python(given.needs))
            told = {"found": FINDINGS.dump_python(found, mode="json"), "problem": None}
        except Exception as error:  # whatever keeps it from looking: the conductor says so
            told = {"found": None, "problem": f"{type(error).__name__}: {error}"[:1000]}
        self._looked = {"looked": given.look, **told}
        self._wake.set()

    def _end(self) -> None:
        """Say that it has left; where that cannot be said, its silence does."""
        try:
            described = self._actor.describe()
            self._state = replace(self._state, phase="left", attempt=described["attempt"], busy=False)
            self._write(described)
        except OSError:
            return

    @property
    def why(self) -> str | None:
        """Why it leaves."""
        return self._why


def state_of(resources: Mapping[str, float], edition: str, job: str) -> State:
    """What a slot says of itself at first."""
    return State(host=socket.gethostname(), pid=os.getpid(), job=job, resources=dict(resources), edition=edition)
