"""Slots whose jobs are no more, though they never said that they leave: Slurm knows it before their silence tells."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from orchestrator.run.files.post import Box, boxes
from orchestrator.run.slurm.queue import Queued


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
