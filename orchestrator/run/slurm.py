"""Slots as Slurm jobs: submits them on demand and watches the queue."""

import hashlib
import math
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import ConfigDict, TypeAdapter

from orchestrator.run.files.slot import DEMAND, mailboxes, read_as
from orchestrator.settings import SECRET_VARIABLES
from orchestrator.views.operations import Node, Shape, holds

_GPUS: Final = re.compile(r"gpu(?::[A-Za-z][\w.-]*)?(?::(?P<count>\d+))?(?:\(.*\))?")
_MEMORY: Final = re.compile(r"(?P<amount>\d+)(?P<unit>[KMGT]?)", re.IGNORECASE)
_UNITS: Final = {"K": 2**10, "": 2**20, "M": 2**20, "G": 2**30, "T": 2**40}
_LOGS: Final = "logs"  # the folder of the jobs' logs, in the folder of all slots
PLENTY: Final = float(2**60)  # the memory of a job without `mem`: its partition decides

KEPT: Final = 200  # logs of ended jobs that are kept, the latest ones
MOST_BYTES: Final = 64 * 2**20  # of one log; a larger log is emptied, and its job appends to it
TIMEOUT_SECONDS: Final = 120.0
"""Of a command; Slurm's commands themselves try for some time while slurmctld does not answer."""
_SHORT_SECONDS: Final = 60.0  # if all jobs of a submission end so soon, something is wrong with them
STALE_SECONDS: Final = 90.0  # if the demand is not written for so long, there is no conductor
LONGEST_PAUSE: Final = 600.0


@dataclass(frozen=True, slots=True)
class SlotJob:
    """The Slurm job of one slot; the first fields are options of sbatch."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    gres: str | None = None
    cpus: int = 1
    mem: str | None = None
    time: str | None = None
    requeue: bool = True
    signal: int = 120  # seconds before its time limit at which Slurm sends it a signal
    more: Sequence[str] = ()  # further options of sbatch
    setup: Sequence[str] = ()  # lines of the script before the slot
    python: str = sys.executable
    idle: float = 300.0
    resources: Mapping[str, float] = field(default_factory=dict)  # custom resources that it offers

    def __post_init__(self) -> None:
        if self.mem is not None and not _MEMORY.fullmatch(self.mem):
            raise ValueError(f"--mem: expected a number with K, M, G or T behind it, such as 16G, found {self.mem!r}")
        for name, amount in self.resources.items():
            if not name or not name.isprintable() or not (math.isfinite(amount) and amount > 0):
                raise ValueError(f"--resource: expected NAME=AMOUNT, such as a100=1, found {f'{name}={amount:g}'!r}")

    @property
    def offer(self) -> dict[str, float]:
        """The resources of the job's slot, by Ray's names."""
        gres = (self.gres or "").split(",")
        gpus = sum(int(found["count"] or 1) for kind in gres if (found := _GPUS.fullmatch(kind)))
        found = _MEMORY.fullmatch(self.mem or "")
        memory = float(int(found["amount"]) * _UNITS[found["unit"].upper()]) if found else PLENTY
        return {"CPU": float(self.cpus), "GPU": float(gpus), "memory": memory, **self.resources}

    def name(self, root: Path) -> str:
        """The name of the jobs, the same for all keepers of such slots over this storage, and for no other keeper."""
        kind = [str(root), self.partition, self.account, self.qos, self.constraint, self.gres, self.cpus, self.mem]
        return f"metricsweep-{hashlib.sha256(repr(kind).encode()).hexdigest()[:8]}"

    def options(self, root: Path, count: int) -> list[str]:
        """The options of sbatch for an array of `count` jobs."""
        names = ("partition", "account", "qos", "constraint", "gres", "mem", "time")
        named = {name: value for name in names if (value := getattr(self, name)) is not None}
        return [
            "--parsable",
            f"--job-name={self.name(root)}",
            f"--array=1-{count}",
            "--ntasks=1",
            f"--cpus-per-task={self.cpus}",
            f"--signal=B:USR1@{self.signal}",
            "--requeue" if self.requeue else "--no-requeue",
            "--open-mode=append",
            f"--output={str(root / _LOGS).replace('%', '%%')}/%A_%a.log",
            *(f"--{option}={value}" for option, value in named.items()),
            *self.more,
        ]

    def script(self, variables: Mapping[str, str]) -> str:
        """The shell script of each job. The slot replaces the shell, so that it gets Slurm's signals."""
        resources = [f"--resource={name}={amount:g}" for name, amount in self.resources.items()]
        slot = [self.python, "-P", "-m", "orchestrator.run.files", f"--idle={self.idle:g}", *resources]
        lines = [
            "#!/bin/bash",
            "# A slot of metricsweep, by `metricsweep slots --slurm`.",
            "umask 077",
            *(f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
            *self.setup,
            f"exec {shlex.join(slot)}",
        ]
        return "\n".join(lines) + "\n"


class DemandReader:
    """Reads the demand for slots from its file, so that a keeper starts as many slots."""

    def __init__(self, root: Path) -> None:
        self._file = root / DEMAND
        self._beat: Any = None
        self._changed = float("-inf")

    def slots(self, offer: Mapping[str, float]) -> int | None:
        """The number of slots with these resources that are needed; `None` if no conductor wrote recently."""
        try:
            demand = read_as(_READER, self._file)
        except OSError:
            return None
        if demand.beat != self._beat:
            first, self._beat = self._beat is None, demand.beat
            if not first or time.time() - demand.beat[0] < STALE_SECONDS:  # the first may be an old file
                self._changed = time.monotonic()
        if time.monotonic() - self._changed > STALE_SECONDS:
            return None
        node = Node("", "", offer)
        return sum(holds(node, (), Shape.of(bundle)) for bundle in (*demand.training, *demand.waiting))


@dataclass(frozen=True, slots=True)
class _Demand:
    """The content of the file: the slots that train and are waited for, as bundles of resources."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)

    training: list[dict[str, float]]
    waiting: list[dict[str, float]]
    beat: tuple[float, int]  # the time of writing, and a number that grows each time


_READER: Final = TypeAdapter(_Demand)


@dataclass(frozen=True, slots=True)
class Queued:
    """A job of an array in Slurm's queue."""

    number: str  # such as 12_3
    state: str
    reason: str

    @property
    def pending(self) -> bool:
        """Whether the job has no node yet."""
        return self.state == "PENDING"


class Keeper:
    """Keeps as many slot jobs in Slurm's queue as the conductor needs.

    Slurm knows which jobs exist, and the demand how many are needed: the keeper may be killed and started again at any
    time, and slurmctld may be away for a while.
    """

    def __init__(
        self, root: Path, job: SlotJob, most: int, variables: Mapping[str, str], notify: Callable[[str], None]
    ) -> None:
        self._root, self._job, self._most, self._variables, self._notify = root, job, most, variables, notify
        self.name = job.name(root)
        self._demand = DemandReader(root)
        self._line = ""  # the last line that was printed
        self._submitted: float | None = None  # the time of the last submission, until its jobs were seen to run
        self._short = 0  # failed submissions in a row
        self._ending: dict[str, float] = {}  # by job, the time since when it has been ending
        self._not_before = float("-inf")
        self._logs = root / _LOGS
        self._logs.mkdir(mode=0o700, exist_ok=True)

    def turn(self) -> None:
        """Check Slurm's queue once, and submit or cancel jobs; errors of Slurm are printed, and tried again later."""
        try:
            self._turn()
        except SlurmError as error:
            self._print(str(error))
            self._pause()

    def _turn(self) -> None:
        needed = self._demand.slots(self._job.offer)
        known = queued(self.name)
        tidy_logs(self._logs, {job.number for job in known})
        jobs = self._counted(known)
        if needed is None:
            self._print(f"{_summary(jobs)}; no conductor says how many slots it needs, so nothing more is submitted")
            return
        needed = min(needed, self._most)
        self._judge(jobs, needed)
        if len(jobs) < needed and time.monotonic() >= self._not_before:
            self._submit(needed - len(jobs))
            return
        if len(jobs) > needed:
            joined = self._joined()  # after a crash slurmctld may report a job with a slot as pending
            waiting = [job for job in jobs if job.pending and job.number not in joined]
            cancel(waiting[: len(jobs) - needed])
        self._print(f"use for {needed}: {_summary(jobs)}")

    def _counted(self, known: list[Queued]) -> list[Queued]:
        """The jobs without those that have been ending for long, as on a dead node; a preempted job ends soon."""
        now = time.monotonic()
        self._ending = {job.number: self._ending.get(job.number, now) for job in known if job.state == "COMPLETING"}
        return [job for job in known if now - self._ending.get(job.number, now) < _SHORT_SECONDS]

    def _joined(self) -> set[str]:
        """The Slurm jobs whose slot has joined, whatever Slurm reports; 12_3r1-0a1b2c3d is a slot of the job 12_3."""
        with suppress(OSError):
            return {mailbox.name.rpartition("-")[0].partition("r")[0] for mailbox in mailboxes(self._root)}
        return set()

    def _judge(self, jobs: list[Queued], needed: int) -> None:
        """Pause if the submitted jobs ended as soon as they began, instead of submitting them again and again."""
        if self._submitted is None:
            return
        age = time.monotonic() - self._submitted
        if jobs and (age > _SHORT_SECONDS or all(job.pending for job in jobs)):
            self._submitted, self._short = (None, 0) if age > _SHORT_SECONDS else (time.monotonic(), self._short)
        elif not jobs and needed:
            self._submitted = None
            self._print(f"the jobs ended as soon as they had begun; their logs in {self._logs} say why")
            self._pause()

    def _submit(self, count: int) -> None:
        number = submit(self._job.options(self._root, count), self._job.script(self._variables))
        self._submitted = time.monotonic()
        self._print(f"submitted array {number} of {count}")

    def _pause(self) -> None:
        """Submit nothing for a while, each time longer."""
        self._short += 1
        self._not_before = time.monotonic() + min(LONGEST_PAUSE, 5.0 * 2**self._short)

    def _print(self, line: str) -> None:
        if line != self._line:
            self._notify(line)
        self._line = line


def queued(name: str) -> list[Queued]:
    """The jobs of this user with a name in Slurm's queue that have not ended; raises SlurmError."""
    states = "PENDING,RUNNING,CONFIGURING,SUSPENDED,COMPLETING"
    wanted = ("--noheader", "--array", f"--states={states}", f"--name={name}", f"--user={os.getuid()}")
    lines = _run(["squeue", *wanted, "--format=%i|%T|%r"]).splitlines()
    return [Queued(*line.strip().split("|", 2)) for line in lines if line.count("|") >= 2]


def submit(options: Sequence[str], script: str) -> str:
    """Submit an array of jobs; returns its number. Raises SlurmError."""
    return _run(["sbatch", *options], script).strip().partition(";")[0]


def cancel(jobs: Sequence[Queued]) -> None:
    """Cancel pending jobs; a job that has begun meanwhile continues. Raises SlurmError."""
    if jobs:
        _run(["scancel", "--state=PENDING", *(job.number for job in jobs)])


def _run(command: Sequence[str], given: str | None = None) -> str:
    """The output of a command; raises SlurmError with its error message."""
    try:
        answer = subprocess.run(  # noqa: S603  the command is our own
            command,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
            env=_without_secrets(os.environ),
        )
    except FileNotFoundError as error:
        raise SlurmError(
            f"no command `{command[0]}` on this machine; run this where Slurm jobs are submitted"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"{command[0]}: {error}") from error
    if answer.returncode:
        message = " ".join(answer.stderr.split()) or f"exit code {answer.returncode}"
        raise SlurmError(f"{command[0]}: {message}"[:1000])
    return answer.stdout


def _without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Slurm passes the whole environment to a job and keeps it on disk, so our secrets are left out."""
    ours = {name for name in environment if name.upper().startswith("METRICSWEEP_")}
    return {name: value for name, value in environment.items() if name not in ours | set(SECRET_VARIABLES)}


class SlurmError(RuntimeError):
    """A command of Slurm failed; the message is that of the command."""


def tidy_logs(folder: Path, known: Collection[str]) -> None:
    """Remove old logs of ended jobs, such as 12_3.log, and empty those that are too large; `known` jobs live."""
    with suppress(OSError):
        logs = sorted(folder.glob("*.log"), key=lambda path: path.lstat().st_mtime)
        for path in logs:
            if path.lstat().st_size > MOST_BYTES:
                os.truncate(path, 0)
        for path in [path for path in logs if path.stem not in known][:-KEPT]:
            path.unlink(missing_ok=True)


def _summary(jobs: list[Queued]) -> str:
    waiting = [job for job in jobs if job.pending]
    reasons = ", ".join(sorted({job.reason for job in waiting}))
    return f"{len(jobs) - len(waiting)} run, {len(waiting)} wait" + (f" ({reasons})" if reasons else "")
