"""A service that is up before the clock starts, as it is all day: what a command takes through it, by process."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from benchmarks.meter import Metered
from tests.ports import free_port

_PATIENCE: Final = 180.0
_Spent = dict[tuple[int, float], tuple[str, float]]


@contextmanager
def running_service(home: Path, environment: Mapping[str, str]) -> Iterator[psutil.Process]:
    """`metricsweep serve` over a fresh home, until the end of the block."""
    home.mkdir(mode=0o700)
    said = home / "serve.out"
    command = [sys.executable, "-m", "api.cli", "serve", "--home", str(home), "--port", str(free_port())]
    with said.open("w") as log:
        process = subprocess.Popen(command, env=dict(environment), stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + _PATIENCE
        while "Ctrl-C" not in said.read_text(encoding="utf-8"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"it is not up: {said.read_text(encoding='utf-8')[-2_000:]}")
            time.sleep(0.2)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def metered_through(service: psutil.Process, command: Sequence[str], environment: Mapping[str, str]) -> Metered:
    """What a command and the processes of a service take until the command has ended; raises CalledProcessError.

    A process of the service that both began and ended meanwhile is counted as it was seen last, five times a second.
    """
    before, spent = spent_so_far(service), _Spent()
    began = time.perf_counter()
    with subprocess.Popen(command, env=dict(environment), stdout=subprocess.DEVNULL) as process:
        client = psutil.Process(process.pid)
        while process.poll() is None:
            spent |= spent_so_far(service) | spent_so_far(client)
            time.sleep(0.2)
    wall = time.perf_counter() - began
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    spent |= spent_so_far(service)
    taken: dict[str, float] = {}
    for key, (name, seconds) in spent.items():
        taken[name] = taken.get(name, 0.0) + seconds - before.get(key, ("", 0.0))[1]
    return Metered(wall, sum(taken.values()), taken)


def spent_so_far(root: psutil.Process) -> _Spent:
    """Seconds of the processors of a process and of all below it so far, by pid and birth."""
    found = _Spent()
    with suppress(psutil.Error):
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                times = process.cpu_times()
                found[process.pid, process.create_time()] = (
                    " ".join(process.cmdline()).strip(),
                    times.user + times.system,
                )
    return found
