"""How many iterations of a seed are done in a second: by separate trainings in turn, and by fused ones."""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

import torch

from benchmarks.fused.recipes import ENDLESS, Candidate
from benchmarks.fused.training import FusedTraining
from workers.training import determinism
from workers.training.loop import iteration
from workers.training.progress_log import ProgressLog

_WARM: Final = 2  # iterations before anything is measured
_LATE: Final = 0.2  # seconds after an order in which all processes begin


class Layout(NamedTuple):
    """How the seeds of a candidate share cores."""

    kind: str
    """`separate`, `fused`, or `at once`: fused, with the losses of all seeds at once."""
    processes: int
    """Each with all seeds: two train two candidates."""
    threads: int
    """Of each process."""

    def __str__(self) -> str:
        """What the table calls it."""
        processes = "1 process" if self.processes == 1 else f"{self.processes} processes"
        return f"{self.kind}, {processes} of {self.threads} thread{'s' * (self.threads > 1)}"


class Took(NamedTuple):
    """What an iteration of a seed took, in milliseconds."""

    wall: float
    cpu: float


def layouts(cores: int, kinds: Sequence[str]) -> list[Layout]:
    """Those of one core, and of all `cores`."""
    several = [Layout(kind, cores, 1) for kind in kinds] + [Layout(kind, 1, cores) for kind in kinds[1:]]
    return [Layout(kind, 1, 1) for kind in kinds] + (several if cores > 1 else [])


def _training(candidate: Candidate, kind: str) -> Callable[[int], None]:
    """What trains all seeds so many iterations further: separate ones one seed after the other."""
    sessions = candidate.sessions(ENDLESS)
    journal = ProgressLog(100 * ENDLESS, ENDLESS, {}, lambda _: None)  # no iteration is a point of its curves

    def separate(count: int) -> None:
        for session in sessions:
            for _ in range(count):
                iteration(session, journal)

    if kind == "separate":
        return separate
    fused = FusedTraining(sessions, candidate.place("fused"), at_once=kind == "at once")

    def together(count: int) -> None:
        for _ in range(count):
            fused.iteration([journal] * len(sessions))

    return together


def _work(candidate: Candidate, kinds: Sequence[str], threads: int, orders: Connection) -> None:
    """The process that trains: takes `(kind, iterations, begin)`, and says when it began and ended, and its CPU time.

    All seeds do that many iterations, without evaluations.
    """
    with determinism.applied(torch.device(candidate.device), threads):
        trainings = {kind: _training(candidate, kind) for kind in kinds}
        for train in trainings.values():
            train(_WARM)
        orders.send(None)
        while (order := orders.recv()) is not None:
            kind, count, begin = order
            time.sleep(max(0.0, begin - time.time()))
            began, used = time.time(), time.process_time()
            trainings[kind](count)
            if candidate.device.startswith("cuda"):
                torch.cuda.synchronize()
            orders.send((began, time.time(), time.process_time() - used))


class Crew:
    """Processes that train a candidate in these layouts, one layout at a time; to be closed."""

    def __init__(self, candidate: Candidate, wanted: Sequence[Layout]) -> None:
        context = multiprocessing.get_context("spawn")
        self._seeds = candidate.seeds
        self._pipes: dict[int, list[Connection]] = {}
        self._processes = []
        for threads in sorted({layout.threads for layout in wanted}):
            here = [layout for layout in wanted if layout.threads == threads]
            kinds = [*dict.fromkeys(layout.kind for layout in here)]
            for _ in range(max(layout.processes for layout in here)):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(candidate, kinds, threads, theirs), daemon=True)
                process.start()
                theirs.close()  # so that the end of a process ends what waits for its answer
                ours.recv()
                self._pipes.setdefault(threads, []).append(ours)
                self._processes.append(process)

    def took(self, layout: Layout, count: int) -> Took:
        """What so many iterations of every seed took; wall is the whole time over all that was trained meanwhile."""
        pipes, begin = self._pipes[layout.threads][: layout.processes], time.time() + _LATE
        for pipe in pipes:
            pipe.send((layout.kind, count, begin))
        told = [pipe.recv() for pipe in pipes]
        done = count * self._seeds * layout.processes
        wall = max(ended for _, ended, _ in told) - min(began for began, _, _ in told)
        return Took(1000 * wall / done, 1000 * sum(cpu for *_, cpu in told) / done)

    def close(self) -> None:
        """End the processes."""
        for pipe in (pipe for pipes in self._pipes.values() for pipe in pipes):
            with suppress(BrokenPipeError):
                pipe.send(None)
        for process in self._processes:
            process.join()


class Row(NamedTuple):
    """A layout beside separate trainings that have as many cores: medians over rounds."""

    layout: Layout
    took: Took
    gain: Took
    """The time of separate trainings over its own, in the same round."""


def measured(candidate: Candidate, wanted: Sequence[Layout], count: int, rounds: int) -> list[Row]:
    """So many iterations in every layout, all in turn in each round."""
    crew = Crew(candidate, wanted)
    try:
        every = [{layout: crew.took(layout, count) for layout in wanted} for _ in range(rounds)]
    finally:
        crew.close()
    rows = []
    for layout in wanted:
        beside = Layout("separate", layout.processes * layout.threads, 1)
        gains = [Took(*(a / b for a, b in zip(told[beside], told[layout], strict=True))) for told in every]
        took = [told[layout] for told in every]
        rows.append(Row(layout, _median(took), _median(gains)))
    return rows


def _median(every: Sequence[Took]) -> Took:
    return Took(*(statistics.median(values) for values in zip(*every, strict=True)))
