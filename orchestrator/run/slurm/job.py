"""The job of a slot: what is asked of Slurm for it, what it offers, and the script that it runs."""

import hashlib
import math
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

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
