"""`python -m orchestrator.run.ray`: `ray start --block` for a node that gives back what it trains before it ends."""

import argparse
import ctypes
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

from orchestrator.host.logs import begin_logging
from orchestrator.run.ray import require_tokens
from orchestrator.run.slot import LOOK_SECONDS, VARIABLE, Departure
from orchestrator.views.errors import MetricsweepError

log = logging.getLogger("orchestrator.run.ray")

GENERATED: Final = "KUBERAY_GEN_RAY_START_CMD"
"""Where KubeRay leaves the command that it would have run itself."""
GRACE_SECONDS: Final = 25.0
"""Kubernetes kills a pod 30 s after its notice, unless the pod says otherwise."""
HEARD_SECONDS: Final = 2.0
"""How long a node stays once nothing trains: a slot may have been about to begin, and who listens asks for the rest."""
NOTICES: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)

_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h


def _end_with_parent() -> None:
    """Else the Ray of a node whose process was killed would keep its port, and another could not begin."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


class RayNode:
    """A node of Ray as a child of this process, and the folder by which its slots hear that it ends."""

    def __init__(self, command: Sequence[str], folder: Path, grace: float, heard: float = HEARD_SECONDS) -> None:
        self._departure, self._grace, self._heard = Departure(folder), grace, heard
        self._departure.prepare()
        self._notice: int | None = None
        for number in NOTICES:
            signal.signal(number, self._heed)
        log.info("starting %s", shlex.join(command))
        environment = {**os.environ, VARIABLE: str(folder)}
        self._child = subprocess.Popen(  # noqa: S603
            command,
            env=environment,
            start_new_session=True,  # Ctrl-C is ours
            preexec_fn=_end_with_parent if _LIBC else None,  # noqa: PLW1509  no thread of ours lives yet
        )

    def run(self) -> int:
        """Serve until Ray ends or a notice comes; the exit code of Ray, 0 after a notice."""
        while (ended := self._ended()) is None:
            if self._notice is not None:
                self._leave()
                break
            time.sleep(LOOK_SECONDS)
        while ended is None:
            ended = self._ended()
            time.sleep(0.1)
        return ended if self._notice is None else 0  # of a signal that we sent Ray makes an error

    def _heed(self, number: int, frame: FrameType | None) -> None:
        self._notice = self._notice or number

    def _leave(self) -> None:
        """Have the slots give back what they train, then end Ray."""
        until = time.monotonic() + self._grace
        log.info("%s: what trains here is given back", signal.Signals(self._notice or 0).name)
        try:
            self._departure.tell()
            time.sleep(min(self._heard, self._grace))  # by then every slot has looked
            while not (quiet := self._departure.quiet()) and time.monotonic() < until and self._ended() is None:
                time.sleep(0.1)
            log.info("nothing trains any more" if quiet else "not all of it in time: its steps since a checkpoint go")
            time.sleep(max(0.0, min(self._heard, until - time.monotonic())))
        except OSError as error:
            log.warning("the slots cannot be told: %s", error)
        if self._ended() is None:
            self._child.terminate()

    def _ended(self) -> int | None:
        """The exit code of Ray, once it has one. As the first process of a container it also buries the orphans."""
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


def command_of(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """`ray start --block` with these options, or else as KubeRay has it; ValueError where nothing is to be started."""
    given = list(words) or shlex.split(environment.get(GENERATED, ""))
    if given[:2] == ["ray", "start"]:
        given = given[2:]
    if not given:
        raise ValueError("name the options of `ray start`, such as --address=HEAD:6379")
    ray = Path(sys.executable).with_name("ray")
    return [str(ray) if ray.exists() else "ray", "start", *given, *([] if "--block" in given else ["--block"])]


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a node and serve until it ends."""
    parser = argparse.ArgumentParser(
        prog="python -m orchestrator.run.ray", description=__doc__, allow_abbrev=False,
        epilog=f"Everything else is given to `ray start`; without it, {GENERATED} of KubeRay says what is started. On"
        " SIGTERM, SIGINT or SIGUSR1 each slot of the node writes a checkpoint and gives its training back, then Ray"
        " ends.",
    )  # fmt: skip
    parser.add_argument("--grace", type=float, default=GRACE_SECONDS,
                        help=f"seconds that its slots have for that at most (default {GRACE_SECONDS:g})")  # fmt: skip
    parser.add_argument("--heard", type=float, default=HEARD_SECONDS,
                        help="seconds for whoever gives orders to hear of it, 0 where nobody does any more"
                        f" (default {HEARD_SECONDS:g})")  # fmt: skip
    options, words = parser.parse_known_args(arguments)
    begin_logging()
    try:
        require_tokens()
        command = command_of(words, os.environ)
        with tempfile.TemporaryDirectory(prefix="metricsweep-node-") as folder:
            return RayNode(command, Path(folder), options.grace, options.heard).run()
    except (MetricsweepError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
