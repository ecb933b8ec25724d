"""The keeper: submits a slot's job where the conductor has use for one more, and takes back what waits in vain."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from orchestrator.run.files.demand import Demanded
from orchestrator.run.slurm.graves import Graves
from orchestrator.run.slurm.job import LOGS, SlotJob
from orchestrator.run.slurm.logs import JobLogs
from orchestrator.run.slurm.queue import Queue, Queued, SlurmError

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
