"""Slurm's queue as its commands tell it: the jobs of one name, more of them, fewer of them."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.settings import SECRET_VARIABLES

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
