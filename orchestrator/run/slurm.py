"""Slots as Slurm jobs: submits them on demand, watches the queue, and finds those that died."""

import hashlib
import math
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orchestrator.run.files.engine import Demanded
from orchestrator.run.files.slot import Box, boxes
from orchestrator.settings import SECRET_VARIABLES

_GPUS: Final = re.compile(r"gpu(?::[A-Za-z][\w.-]*)?(?::(?P<count>\d+))?(?:\(.*\))?")
_MEMORY: Final = re.compile(r"(?P<amount>\d+)(?P<unit>[KMGT]?)", re.IGNORECASE)
_UNITS: Final = {"K": 2**10, "": 2**20, "M": 2**20, "G": 2**30, "T": 2**40}
LOGS: Final = "logs"
"""The folder of the jobs' logs in the room of the slots."""
PLENTY: Final = float(2**60)
"""The memory of a job that names none: its partition decides."""


@dataclass(frozen=True, slots=True)
class SlotJob:
    """One slot's job; each field but the last ones is passed to sbatch as it is."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    gres: str | None = None
    cpus: int = 1
    mem: str | None = None
    time: str | None = None
    requeue: bool = True
    signal: int = 120
    """Seconds before its limit in which it is told that its time is nearly up."""
    more: Sequence[str] = ()  # further options of sbatch
    setup: Sequence[str] = ()  # lines of the script before the slot
    python: str = sys.executable
    idle: float = 300.0
    resources: Mapping[str, float] = field(default_factory=dict)  # custom ones that it offers

    def __post_init__(self) -> None:
        if self.mem is not None and not _MEMORY.fullmatch(self.mem):
            raise ValueError(f"--mem: expected a number with K, M, G or T behind it, such as 16G, found {self.mem!r}")
        for name, amount in self.resources.items():
            if not name or not name.isprintable() or not (math.isfinite(amount) and amount > 0):
                raise ValueError(f"--resource: expected NAME=AMOUNT, such as a100=1, found {f'{name}={amount:g}'!r}")

    @property
    def offer(self) -> dict[str, float]:
        """What a slot of it can hold, by the names that slots are counted in."""
        gpus = sum(int(found["count"] or 1) for one in (self.gres or "").split(",") if (found := _GPUS.fullmatch(one)))
        return {"CPU": float(self.cpus), "GPU": float(gpus), "memory": self._memory(), **self.resources}

    def name(self, room: Path) -> str:
        """By which its jobs are known: the same for each keeper of such slots over this storage, and for no other."""
        kind = [str(room), self.partition, self.account, self.qos, self.constraint, self.gres, self.cpus, self.mem]
        return f"metricsweep-{hashlib.sha256(repr(kind).encode()).hexdigest()[:8]}"

    def options(self, room: Path, count: int) -> list[str]:
        """The options of sbatch for an array of so many."""
        named = {
            "partition": self.partition, "account": self.account, "qos": self.qos, "constraint": self.constraint,
            "gres": self.gres, "mem": self.mem, "time": self.time,
        }  # fmt: skip
        return [
            "--parsable",
            f"--job-name={self.name(room)}",
            f"--array=1-{count}",
            "--ntasks=1",
            f"--cpus-per-task={self.cpus}",
            f"--signal=B:USR1@{self.signal}",
            "--requeue" if self.requeue else "--no-requeue",
            "--open-mode=append",
            f"--output={str(room / LOGS).replace('%', '%%')}/%A_%a.log",
            *(f"--{option}={value}" for option, value in named.items() if value is not None),
            *self.more,
        ]

    def script(self, variables: Mapping[str, str]) -> str:
        """What each of them runs. The slot takes the shell's place, so that Slurm's signals reach it."""
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

    def _memory(self) -> float:
        found = _MEMORY.fullmatch(self.mem or "")
        return float(int(found["amount"]) * _UNITS[found["unit"].upper()]) if found else PLENTY


KEPT: Final = 200
"""Logs of jobs that are done, the latest ones."""
MOST_BYTES: Final = 64 * 2**20
"""Of one log; it then begins anew, as whoever writes it appends."""
LOOK_SECONDS: Final = 60.0


class JobLogs:
    """A folder in which each job of an array has its log: 12_3.log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._looked = float("-inf")
        folder.mkdir(mode=0o700, exist_ok=True)

    def tidy(self, known: Collection[str]) -> None:
        """Remove what is too much, where it is time to; `known` are the jobs that Slurm has not done with."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        with suppress(OSError):
            done = sorted(one for one in self._logs() if one[1].stem not in known)
            for _, path in done[: max(0, len(done) - KEPT)]:
                path.unlink(missing_ok=True)

    def _logs(self) -> Iterator[tuple[float, Path]]:
        for path in self.folder.glob("*.log"):
            with suppress(OSError):
                if (found := path.lstat()).st_size > MOST_BYTES:
                    os.truncate(path, 0)
                yield found.st_mtime, path


PATIENCE_SECONDS: Final = 120.0
"""Slurm's commands try for some time themselves while slurmctld does not answer."""


class SlurmError(RuntimeError):
    """A command of Slurm's failed; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Queued:
    """One job of an array."""

    number: str  # such as 12_3
    state: str
    reason: str

    @property
    def ends(self) -> bool:
        """Whether its processes are being ended."""
        return self.state == "COMPLETING"

    @property
    def pending(self) -> bool:
        """Whether it has no node yet."""
        return self.state == "PENDING"


class Queue:
    """The jobs of one name and of this user."""

    def __init__(self, name: str) -> None:
        self._name = name

    def jobs(self) -> list[Queued]:
        """Those that Slurm has not done with. Raises SlurmError."""
        states = "PENDING,RUNNING,CONFIGURING,SUSPENDED,COMPLETING"
        wanted = ("--noheader", "--array", f"--states={states}", f"--name={self._name}", f"--user={os.getuid()}")
        lines = _said(["squeue", *wanted, "--format=%i|%T|%r"]).splitlines()
        return [Queued(*line.strip().split("|", 2)) for line in lines if line.count("|") >= 2]

    def submit(self, options: Sequence[str], script: str) -> str:
        """Submit an array; its number. Raises SlurmError."""
        return _said(["sbatch", *options], script).strip().partition(";")[0]

    def cancel(self, jobs: Sequence[Queued]) -> None:
        """Cancel jobs that wait; one that has begun meanwhile goes on. Raises SlurmError."""
        if jobs:
            _said(["scancel", "--state=PENDING", *(job.number for job in jobs)])


def _said(command: Sequence[str], given: str | None = None) -> str:
    """What a command prints; raises SlurmError with what it says of an error."""
    try:
        answer = subprocess.run(  # noqa: S603  the command is our own
            command, input=given, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
            env=_without_secrets(os.environ),
        )  # fmt: skip
    except FileNotFoundError as error:
        raise SlurmError(f"there is no `{command[0]}` here: run this where jobs are submitted") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"{command[0]}: {error}") from error
    if answer.returncode:
        said = " ".join(answer.stderr.split()) or f"exit code {answer.returncode}"
        raise SlurmError(f"{command[0]}: {said}"[:1000])
    return answer.stdout


def _without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Slurm gives a job all of it, and keeps it on its own disk: no token or password of ours goes there."""
    ours = {name for name in environment if name.upper().startswith("METRICSWEEP_")}
    return {name: value for name, value in environment.items() if name not in ours | set(SECRET_VARIABLES)}


class Graves:
    """Gives up the slots of jobs that were killed, so that their trainings go on at once.

    Of jobs that it has seen itself alone, and of those that two looks in a row do not show and whose slots have told
    nothing between them: another keeper's are not its business, a slurmctld that was killed has forgotten for a while
    which jobs have begun, and silence tells of the others within the minute.
    """

    def __init__(self, room: Path) -> None:
        self._room = room
        self._seen: set[str] = set()
        self._missed: dict[str, int] = {}  # by slot, its latest beat

    def bury(self, jobs: Iterable[Queued]) -> None:
        """Give up what is not among the jobs that have a node, or has been started anew since."""
        alive = {job.number for job in jobs if not job.pending}
        self._seen |= alive
        missed: dict[str, int] = {}
        with suppress(OSError):
            dead = self._dead(boxes(self._room), alive)
            for box in dead:
                beat = _beat(box)
                if self._missed.get(box.name) == beat:
                    box.remove()
                else:
                    missed[box.name] = beat
        self._missed = missed

    def joined(self) -> set[str]:
        """The jobs that have a slot, whatever Slurm says of them."""
        with suppress(OSError):
            return {_run(box)[0] for box in boxes(self._room)}
        return set()

    def _dead(self, there: list[Box], alive: set[str]) -> list[Box]:
        runs = [(box, *_run(box)) for box in there]
        latest: dict[str, int] = {}
        for _, job, again in runs:
            latest[job] = max(again, latest.get(job, 0))
        mine = [(box, job, again) for box, job, again in runs if job in self._seen]
        return [box for box, job, again in mine if job not in alive or again < latest[job]]


def _beat(box: Box) -> int:
    """How often a slot has told of itself; -1 where that cannot be read."""
    try:
        state = box.state()
    except OSError:
        return -1
    return -1 if state is None else state.beat


def _run(box: Box) -> tuple[str, int]:
    """The job of a slot, and how often that had been requeued before, as its name tells: 12_3r1-0a1b2c3d."""
    job, _, _ = box.name.rpartition("-")
    number, _, again = job.partition("r")
    return number, int(again) if again.isdigit() else 0


SHORT_SECONDS: Final = 60.0
"""Where all jobs of a submission are gone so soon, something is wrong with them."""
LONGEST_PAUSE: Final = 600.0


class Keeper:
    """Remembers nothing that it cannot do without: Slurm knows which jobs there are, the demand how many are wanted.

    So it may be killed and started again at any time, and slurmctld may be away: then it asks again. What a job
    becomes is told by Slurm, what its slot trains by the conductor.
    """

    def __init__(
        self,
        room: Path,
        job: SlotJob,
        most: int,
        variables: Mapping[str, str],
        tell: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room, self._job, self._most, self._variables = room, job, most, variables
        self._tell, self._now = tell, now
        self.name = job.name(room)
        self._queue, self._demanded = Queue(self.name), Demanded(room)
        self._graves = Graves(room)
        self._told = ""
        self._submitted: float | None = None  # the last time, if nothing was seen to come of it yet
        self._short = 0
        self._ending: dict[str, float] = {}  # by job, since when
        self._not_before = float("-inf")
        self._logs = JobLogs(room / LOGS)

    def turn(self) -> None:
        """Look once, and do what is to be done; what Slurm refuses or does not answer is told, and tried again."""
        try:
            self._turn()
        except SlurmError as error:
            self._say(str(error))
            self._rest()

    def _turn(self) -> None:
        wanted = self._demanded.slots(self._job.offer)
        known = self._queue.jobs()
        self._graves.bury(known)
        self._logs.tidy({job.number for job in known})
        jobs = self._counted(known)
        if wanted is None:
            self._say(f"{_of(jobs)}; no conductor tells what it has use for, so nothing more is submitted")
            return
        wanted = min(wanted, self._most)
        self._judge(jobs, wanted)
        if len(jobs) < wanted and self._now() >= self._not_before:
            self._submit(wanted - len(jobs))
            return
        if len(jobs) > wanted:
            joined = self._graves.joined()  # a slurmctld that was killed may say that what trains waits
            waiting = [job for job in jobs if job.pending and job.number not in joined]
            self._queue.cancel(waiting[: len(jobs) - wanted])
        self._say(f"use for {wanted}: {_of(jobs)}")

    def _counted(self, known: list[Queued]) -> list[Queued]:
        """The jobs but for those that have been ending for long: one that is preempted comes back."""
        ending = {job.number for job in known if job.ends}
        self._ending = {number: self._ending.get(number, self._now()) for number in ending}
        return [job for job in known if self._now() - self._ending.get(job.number, self._now()) < SHORT_SECONDS]

    def _judge(self, jobs: list[Queued], wanted: int) -> None:
        """Notice jobs that end as soon as they begin: they would be submitted for ever."""
        if self._submitted is None:
            return
        age = self._now() - self._submitted
        if jobs and (age > SHORT_SECONDS or all(job.pending for job in jobs)):
            self._submitted, self._short = (None, 0) if age > SHORT_SECONDS else (self._now(), self._short)
        elif not jobs and wanted:
            self._submitted = None
            self._say(f"the jobs ended as soon as they had begun; their logs in {self._logs.folder} say why")
            self._rest()

    def _submit(self, count: int) -> None:
        number = self._queue.submit(self._job.options(self._room, count), self._job.script(self._variables))
        self._submitted = self._now()
        self._say(f"submitted array {number} of {count}")

    def _rest(self) -> None:
        """Submit nothing for a while, each time for longer."""
        self._short += 1
        self._not_before = self._now() + min(LONGEST_PAUSE, 5.0 * 2**self._short)

    def _say(self, line: str) -> None:
        if line != self._told:
            self._tell(line)
        self._told = line


def _of(jobs: list[Queued]) -> str:
    """How many run and wait, and what these wait for."""
    waiting = [job for job in jobs if job.pending]
    reasons = ", ".join(sorted({job.reason for job in waiting}))
    return f"{len(jobs) - len(waiting)} run, {len(waiting)} wait" + (f" ({reasons})" if reasons else "")
