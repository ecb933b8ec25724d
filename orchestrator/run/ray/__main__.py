"""Run `ray start --block` for a node that returns its trainings before it ends."""

import argparse
import logging
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

import psutil

from orchestrator.host import parent_death
from orchestrator.host.logs import begin_logging
from orchestrator.run.slot import CHECK_SECONDS, VARIABLE, Preemption

log = logging.getLogger("orchestrator.run.ray")

_GENERATED: Final = "KUBERAY_GEN_RAY_START_CMD"
"""The variable in which KubeRay puts the command that it would run itself."""
GRACE_SECONDS: Final = 25.0  # by default, Kubernetes kills a pod 30 s after its notice
DRAIN_SECONDS: Final = 2.0
"""How long a node stays after its last training: a slot may be about to begin, and the conductor reads the messages."""
_NOTICES: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a Ray node and serve until it ends."""
    parser = argparse.ArgumentParser(
        prog="python -m orchestrator.run.ray",
        description=__doc__,
        allow_abbrev=False,
        epilog=f"All other options are passed to `ray start`; without any, KubeRay's command in {_GENERATED}"
        " runs. On SIGTERM, SIGINT or SIGUSR1 each slot of the node writes a checkpoint and returns its training;"
        " then Ray ends.",
    )
    grace = f"most seconds in which slots return their trainings (default {GRACE_SECONDS:g})"
    reading = f"seconds for the conductor to read the last messages, 0 without a conductor (default {DRAIN_SECONDS:g})"
    parser.add_argument("--grace", type=float, default=GRACE_SECONDS, help=grace)
    parser.add_argument("--drain", type=float, default=DRAIN_SECONDS, help=reading)
    options, words = parser.parse_known_args(arguments)
    begin_logging()
    try:
        command = _command_of(words, os.environ)
        with tempfile.TemporaryDirectory(prefix="metricsweep-node-") as folder:
            return RayNode(command, Path(folder), options.grace, options.drain).run()
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _command_of(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """`ray start --block` with these options, else with KubeRay's; raises ValueError if there are none."""
    given = list(words) or shlex.split(environment.get(_GENERATED, ""))
    if given[:2] == ["ray", "start"]:
        given = given[2:]
    if not given:
        raise ValueError("no options of `ray start` are given; name them, such as --address=HEAD:6379")
    ray = Path(sys.executable).with_name("ray")
    return [str(ray) if ray.exists() else "ray", "start", *given, *([] if "--block" in given else ["--block"])]


class RayNode:
    """A node of Ray as a child process, and the folder in which its end is announced to its slots."""

    def __init__(self, command: Sequence[str], folder: Path, grace: float, drain: float = DRAIN_SECONDS) -> None:
        self._preemption, self._grace, self._drain = Preemption(folder), grace, drain
        self._preemption.prepare()
        self._notice: int | None = None
        self._raylet: psutil.Process | None = None
        for number in _NOTICES:
            signal.signal(number, self._on_signal)
        log.info("starting %s", shlex.join(command))
        environment = {**os.environ, VARIABLE: str(folder)}
        self._child = subprocess.Popen(  # noqa: S603
            # Otherwise Ray would survive a killed parent and keep its port.
            [sys.executable, "-I", "-S", parent_death.__file__, str(os.getpid()), *command],
            env=environment,
            start_new_session=True,  # so that only this process gets Ctrl-C
        )

    def run(self) -> int:
        """Run the node until Ray ends or a signal comes; returns Ray's exit code, 0 after a signal."""
        lost = False
        while (ended := self._ended()) is None:
            if self._notice is not None:
                self._leave()
                break
            if lost := self._lost_raylet():
                log.error("the raylet has ended, without which nothing trains here: ending the node")
                self._child.terminate()
                break
            time.sleep(CHECK_SECONDS)
        while ended is None:
            ended = self._ended()
            time.sleep(0.1)
        if lost:
            return 1
        return ended if self._notice is None else 0  # Ray reports our own signal as an error

    def _lost_raylet(self) -> bool:
        """Whether the raylet has ended, on which `ray start --block` does not always end."""
        try:
            if self._raylet is None:
                children = psutil.Process(self._child.pid).children()
                self._raylet = next((child for child in children if child.name() == "raylet"), None)
            return self._raylet is not None and not self._raylet.is_running()
        except psutil.NoSuchProcess:  # the child has just ended, which `_ended` will notice
            return False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._notice = self._notice or number

    def _leave(self) -> None:
        """Have the slots return their trainings, then end Ray."""
        until = time.monotonic() + self._grace
        log.info("%s: the trainings of this node are returned", signal.Signals(self._notice or 0).name)
        try:
            self._preemption.announce()
            time.sleep(min(self._drain, self._grace))  # until every slot has noticed
            while not (idle := self._preemption.is_idle()) and time.monotonic() < until and self._ended() is None:
                time.sleep(0.1)
            log.info(
                "nothing trains any more"
                if idle
                else "a training did not stop in time: steps since its checkpoint are lost"
            )
            time.sleep(max(0.0, min(self._drain, until - time.monotonic())))
        except OSError as error:
            log.warning("the slots cannot be notified: %s", error)
        if self._ended() is None:
            self._child.terminate()

    def _ended(self) -> int | None:
        """The exit code of Ray, once it has one. Also reaps orphans, as the first process of a container must."""
        while self._child.returncode is None:
            try:
                number, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._child.returncode = 1
                break
            if number == 0:
                return None
            if number == self._child.pid:
                self._child.returncode = os.waitstatus_to_exitcode(status)
        return self._child.returncode


if __name__ == "__main__":
    sys.exit(main())
