"""A meter: what a command takes by the clock, and of the processors, with all the processes that it starts."""

import ctypes
import resource
import subprocess
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import psutil

_EVERY: Final = 0.2
_LEFT_BEHIND: Final = 60.0
"""Seconds within which what a command leaves behind has to end."""
_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER: what a command leaves behind becomes our child


class Metered(NamedTuple):
    """Seconds by the clock and of the processors, these also by the command line of each process."""

    wall: float
    cpu: float
    by_command: Mapping[str, float]


def metered(command: Sequence[str], environment: Mapping[str, str]) -> Metered:
    """Run a command and wait for all that it has started; raises CalledProcessError where it fails, and
    SystemExit where some of that does not end.

    What the kernel sums of ended children misses those whose parent ignored that they ended, and looking five times a
    second misses the last moments of each: the greater value is reported.
    """
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    before, began = _reaped(), time.perf_counter()
    seen: dict[tuple[int, float], tuple[str, float]] = {}
    with subprocess.Popen(command, env=dict(environment), stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            _look(seen)
            time.sleep(_EVERY)
    wall = time.perf_counter() - began
    _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=_LEFT_BEHIND)
    if alive:
        raise SystemExit(f"{command[0]} left processes behind: {', '.join(str(one.pid) for one in alive)}")
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    looked: defaultdict[str, float] = defaultdict(float)
    for name, seconds in seen.values():
        looked[name] += seconds
    return Metered(wall, max(_reaped() - before, sum(looked.values())), looked)


def _look(seen: dict[tuple[int, float], tuple[str, float]]) -> None:
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            command = " ".join(process.cmdline()).strip()
            if command:
                times = process.cpu_times()
                seen[process.pid, process.create_time()] = command, times.user + times.system


def _reaped() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
