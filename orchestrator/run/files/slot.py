"""A slot that joins over a shared folder: its resources, its mailbox, and its work from joining to leaving."""

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
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

import psutil
from pydantic import ConfigDict, TypeAdapter, WrapValidator

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
T = TypeVar("T")

FORM: Final = 1  # the version of the files
_SLOTS_FOLDER: Final = "slots"  # the folder of all slots, in the storage
JOINED_FOLDER: Final = "joined"  # in that folder; it has a folder for each slot
ORDER, STATE, DEMAND, OWNER = "order.json", "state.json", "demand.json", "installation.json"
SILENT_SECONDS: Final = 60.0
"""A slot that has not written for so long counts as lost; one that could not write for half of it stops."""
LEFT_SECONDS: Final = 3_600.0  # the age at which unfinished files are removed
POLL_SECONDS: Final = 1.0  # how often a slot reads its instruction
_BEAT_SECONDS: Final = 5.0  # how often a slot writes its state while nothing changes

Phase = Literal["joined", "leaving", "left"]
Command = Literal["keep", "train", "stop", "end", "renew"]
ORDERS: Final = TypeAdapter(Order)
WORKPLACES: Final = TypeAdapter(Workplace)
NEEDS: Final = TypeAdapter(list[Need])
FINDINGS: Final = TypeAdapter(list[Finding])


@dataclass(frozen=True, slots=True)
class Instruction:
    """The latest instruction of the conductor to a slot."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)

    fence: int = 0  # the fence of the lease; a slot ignores instructions with a lower fence than an earlier one had
    number: int = 0
    do: Command = "keep"
    """`keep` changes nothing, and only asks for an acknowledgement; `renew`: continue as another process."""
    attempt: str | None = None  # the attempt to stop
    order: Mapping[str, Any] | None = None  # the order to train
    workplace: Mapping[str, Any] | None = None
    inspection: int = 0  # the number of the inspection to make
    needs: list[Any] = field(default_factory=list)  # of that inspection


@dataclass(frozen=True, slots=True)
class State:
    """The state of a slot, as the slot writes it for the conductor."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)

    form: int = FORM
    beat: int = 0  # grows each time it is written
    phase: Phase = "joined"
    fence: int = 0  # of the last instruction that it has acknowledged
    acknowledged: int = 0  # the number of that instruction
    host: str = ""
    pid: int = 0
    job: str = ""  # its scheduler's number
    resources: Mapping[str, float] = field(default_factory=dict)
    edition: str = ""
    attempt: str | None = None
    busy: bool = False
    replace_reason: str | None = None  # why the conductor should replace the process
    message_count: int = 0  # messages of the attempt
    message_ages: list[float] = field(default_factory=list)  # seconds since the latest messages were made
    usage: Mapping[str, Any] | None = None
    last: str | None = None  # the last message of a failed attempt, which its spool may lack
    inspected: int = 0  # the number of the last inspection that has ended
    found: list[Any] | None = None
    problem: str | None = None  # why the inspection failed


class Mailbox:
    """The folder through which the conductor and one slot exchange instructions and states. Methods raise OSError."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name

    def make(self, state: State) -> None:
        """Make the folder of a slot with its files, and then move it into place."""
        hidden = self.folder.with_name(f".{self.name}")
        hidden.mkdir()
        write(hidden / ORDER, asdict(Instruction()))
        write(hidden / STATE, asdict(state))
        hidden.rename(self.folder)
        settle(self.folder.parent)

    def instruction(self) -> Instruction:
        """The latest instruction for the slot; raises FileNotFoundError if the slot has been removed."""
        return read_as(_INSTRUCTIONS, self.folder / ORDER)

    def instruct(self, instruction: Instruction) -> None:
        """Replace the instruction for the slot."""
        write(self.folder / ORDER, asdict(instruction))

    def state(self) -> State | None:
        """The last state of the slot; `None` if its files have another version."""
        return read_as(_STATES, self.folder / STATE)

    def put_state(self, state: State) -> None:
        """Replace the state of the slot."""
        write(self.folder / STATE, asdict(state))

    def remove(self) -> None:
        """Remove the folder of a slot, which ends once it notices; raises nothing."""
        hidden = self.folder.with_name(f".{self.name}")
        with suppress(OSError):
            self.folder.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)


class FileSlot:
    """A slot: passes the instructions of its mailbox to a slot actor, which trains, and writes its state."""

    def __init__(
        self,
        mailbox: Mailbox,
        storage: Path,
        state: State,
        *,
        idle: float,
        poll: float = POLL_SECONDS,
    ) -> None:
        self._mailbox, self._storage, self._state = mailbox, storage, state
        self._idle, self._poll = idle, poll
        self._actor = SlotActor(orphaned_after=1e9, edition=state.edition)
        self._wake = threading.Event()
        self.why: str | None = None
        """Why the slot leaves."""
        self._renew = False
        self._last_inspection = 0  # its number
        self._findings: dict[str, Any] = {}  # of the last inspection that has ended
        self._beat, self._last_state = 0, State()
        self._last_written = time.monotonic()  # its state
        self._last_read = self._last_used = time.monotonic()  # its mailbox; when it trained

    def leave(self, why: str) -> None:
        """Stop the training at a checkpoint, and end the slot. Safe in signal handlers."""
        self.why = self.why or why
        self._wake.set()

    def run(self) -> bool:
        """Serve orders until the slot leaves; returns whether another process is to replace it."""
        self._mailbox.make(self._state)
        while True:
            self._turn()
            described = self._actor.describe()
            if self.why is not None:
                if not described["busy"]:
                    break
                self._actor.stop(described["attempt"])
            elif described["busy"]:
                self._last_used = time.monotonic()
            elif time.monotonic() - self._last_used > self._idle:
                self.leave(f"it had nothing to train for {self._idle:g} s")
            if self._wake.wait(self._poll):
                self._wake.clear()
                if self.why is not None:
                    time.sleep(min(self._poll, 0.1))  # the training needs a moment to stop
        self._end()
        return self._renew

    def _turn(self) -> None:
        """Obey the instruction and write the state; leave if the slot was removed or the storage does not answer."""
        try:
            self._obey(self._mailbox.instruction())
            self._report()
            self._last_read = time.monotonic()
        except FileNotFoundError:
            self.leave("the conductor has removed it")
        except OSError as error:
            if time.monotonic() - self._last_read > SILENT_SECONDS / 2:
                self.leave(f"the storage does not answer: {error}")
        except ValueError as error:  # such as an order of another release; the conductor notices a slot that leaves
            self.leave(f"its instruction cannot be read: {' '.join(str(error).split())[:500]}")

    def _obey(self, given: Instruction) -> None:
        if given.fence < self._state.fence:
            return  # from a conductor that has lost its lease
        if given.inspection > self._last_inspection:
            self._last_inspection = given.inspection
            threading.Thread(target=self._inspect, args=(given,), daemon=True).start()
        if (given.fence, given.number) <= (self._state.fence, self._state.acknowledged):
            return
        if given.do == "train" and self.why is None:
            self._last_used = time.monotonic()
            self._actor.start(ORDERS.validate_python(given.order), self._workplace(given), given.fence)
        elif given.do == "stop" and given.attempt:
            self._actor.stop(given.attempt)
        elif given.do in ("end", "renew"):
            self._renew = given.do == "renew"
            self.leave("the conductor ended it")
        self._state = replace(self._state, fence=given.fence, acknowledged=given.number)

    def _workplace(self, given: Instruction) -> Workplace:
        """The conductor's workplace, with the folders of the storage and of own parts on this machine."""
        parts = os.path.expanduser(os.environ.get("METRICSWEEP_PARTS", ""))
        workplace = WORKPLACES.validate_python(given.workplace)
        return replace(workplace, storage=self._storage, parts=Path(parts) if parts else workplace.parts)

    def _report(self) -> None:
        """Write the state if it has changed, or if the last one is old."""
        described = self._actor.describe()
        changed = {key: described[key] for key in ("attempt", "busy", "replace_reason")}
        phase: Phase = "joined" if self.why is None else "leaving"
        self._state = replace(self._state, phase=phase, **changed, **self._findings)
        if self._state != self._last_state or time.monotonic() - self._last_written >= _BEAT_SECONDS:
            self._write(described)

    def _write(self, described: Mapping[str, Any]) -> None:
        self._beat += 1
        usage = {key: described[key] for key in ("message_count", "message_ages", "usage")}
        self._mailbox.put_state(replace(self._state, beat=self._beat, last=self._failure(described), **usage))
        self._last_state, self._last_written = self._state, time.monotonic()

    def _failure(self, described: Mapping[str, Any]) -> str | None:
        """The message of a failed attempt; a failure of the slot itself is in no spool."""
        if described["attempt"] is None or described["busy"] or not described["message_count"]:
            return None
        lines = self._actor.poll(described["attempt"], described["message_count"] - 1, 0)
        return lines[-1].decode() if lines and Message.of(lines[-1]).kind == "failed" else None

    def _inspect(self, given: Instruction) -> None:
        """Inspect the data root of this machine; the next state has the findings."""
        found: list[Any] | None = None
        problem: str | None = None
        try:
            findings = inspect(self._workplace(given), NEEDS.validate_python(given.needs))
            found = FINDINGS.dump_python(findings, mode="json")
        except Exception as error:  # of any kind; the conductor reports it
            problem = f"{type(error).__name__}: {error}"[:1000]
        self._findings = {"inspected": given.inspection, "found": found, "problem": problem}
        self._wake.set()

    def _end(self) -> None:
        """Write that the slot has left; if that fails, the conductor notices that the slot is silent."""
        with suppress(OSError):
            described = self._actor.describe()
            self._state = replace(self._state, phase="left", attempt=described["attempt"], busy=False)
            self._write(described)


def write(file: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file whole, synced to disk; raises OSError."""
    with replacing(file, mode=0o600) as made:
        made.write(json.dumps(content).encode())
    settle(file.parent)


def settle(folder: Path) -> None:
    """Sync the names in a folder to disk, so that a renamed file survives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class DamagedFileError(OSError):
    """The content of a slot's file is not valid."""


def read_as(reader: TypeAdapter[T], file: Path) -> T:
    """The validated content of a JSON file; raises OSError, and DamagedFileError if it is not valid."""
    content = file.read_bytes()
    try:
        return reader.validate_python(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{file} is damaged: {' '.join(str(error).split())[:500]}") from error


def _of_our_form(found: Any, read: Callable[[Any], State]) -> State | None:
    """The state in a file, or `None` if it has another version, whose fields we do not know."""
    return None if isinstance(found, dict) and found.get("form") != FORM else read(found)


_INSTRUCTIONS: Final = TypeAdapter(Instruction)
_STATES: Final[TypeAdapter[State | None]] = TypeAdapter(Annotated[State, WrapValidator(_of_our_form)])


def allocation(environment: Mapping[str, str]) -> tuple[str, dict[str, float]]:
    """The job and the CPUs, GPUs and memory of this process, by Ray's names: Slurm's, else those of the machine.

    The job is Slurm's number, with the number of its requeues; empty outside of a job.
    """

    def number(*names: str) -> int | None:
        return next((int(given) for name in names if (given := environment.get(name, "")).isdigit()), None)

    array = environment.get("SLURM_ARRAY_JOB_ID")
    job = f"{array}_{environment.get('SLURM_ARRAY_TASK_ID', '')}" if array else environment.get("SLURM_JOB_ID", "")
    again = environment.get("SLURM_RESTART_COUNT", "0")
    cpus = number("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE")
    if cpus is None:
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        gpus = len([device for device in visible.split(",") if device.strip() not in ("", "-1")])
    else:
        gpus = (number("SLURM_GPUS_ON_NODE") or 0) if job else _installed_gpus()
    megabytes = number("SLURM_MEM_PER_NODE") or (number("SLURM_MEM_PER_CPU") or 0) * cpus
    memory = megabytes * MEGABYTE or psutil.virtual_memory().total
    resources = {"CPU": float(cpus), "GPU": float(gpus), "memory": float(memory)}
    return (f"{job}r{again}" if job and again != "0" else job), resources


def _installed_gpus() -> int:
    try:
        import pynvml

        pynvml.nvmlInit()
        return int(pynvml.nvmlDeviceGetCount())
    except Exception:  # no module, no library, no driver
        return 0


def mailboxes(root: Path) -> list[Mailbox]:
    """The mailboxes of all slots under a folder, by the name of the slot; raises OSError."""
    return [Mailbox(path) for path in sorted((root / JOINED_FOLDER).iterdir()) if not path.name.startswith(".")]


def slots_folder(storage: Path | str) -> Path:
    """The folder of all slots in a storage, made on first use, and only accessible to this user.

    Anyone who can write there can have slots call functions by name. Raises MetricsweepError for a bucket, and if the
    folder belongs to another user.
    """
    there = opened(storage)
    if not isinstance(there, Folder):
        raise MetricsweepError(
            "METRICSWEEP_STORAGE_URL: slots that join by files need a folder that they and the conductor see, "
            f"found {storage}"
        )
    own_folder(there.root / _SLOTS_FOLDER)
    own_folder(there.root / _SLOTS_FOLDER / JOINED_FOLDER)
    return there.root / _SLOTS_FOLDER


def tidy(root: Path) -> None:
    """Remove unfinished files of killed processes, and the remains of removed slots."""
    before = time.time() - LEFT_SECONDS  # an hour is more than the clocks of machines differ
    for path in (*root.glob(".*"), *(root / JOINED_FOLDER).glob(".*")):
        with suppress(OSError):
            if path.lstat().st_mtime < before:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()


def state_of(resources: Mapping[str, float], edition: str, job: str) -> State:
    """The first state of a slot on this machine."""
    return State(host=socket.gethostname(), pid=os.getpid(), job=job, resources=dict(resources), edition=edition)
