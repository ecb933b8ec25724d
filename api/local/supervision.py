"""Keeps a set of processes running: starts each when what it needs is ready, and again when it ends."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Final, Literal

from api.local.process import Child, describe_exit
from orchestrator.host.logs import printable
from orchestrator.views.errors import UnavailableError

Tell = Callable[[str, str], None]
"""Called with a process's name and its state in words, from the supervisor's thread."""

FIRST_DELAY: Final = 0.5
LONGEST_DELAY: Final = 30.0
_LONG_LIFE: Final = 60.0  # seconds after which an exit counts as the first again
HELD_SECONDS: Final = 5.0
"""How often a start is tried again that the system refused, such as for want of room on the disk."""
READY_SECONDS: Final = 180.0
"""How long a process that was ready before may take to be ready again; its log may have lost the line that says so."""
_SEARCH_SECONDS: Final = 1.0  # between two searches for open TCP ports
_TOLD_LINES: Final = 8  # of the log of a process that cannot be started
_FIRST_TRIES: Final = 3  # exits of a process that was never ready before the start is given up


@dataclass(slots=True)
class _Watched:
    """One child's place in its life; `at` is when it was started, or when it may be started again."""

    child: Child
    state: Literal["waiting", "loading", "starting", "ready", "ending", "refused"] = "waiting"
    at: float = 0.0
    delay: float = FIRST_DELAY
    was_ready: bool = False
    exits: int = 0
    held: str = ""
    """Why the system refused to start it last."""
    searched: float = 0.0
    """When open TCP ports were looked for last."""


class Supervision:
    """Call `tick` often from one thread that lives as long as the children; `started` is called after every start."""

    def __init__(
        self, children: Sequence[Child], environment: Mapping[str, str], tell: Tell, started: Callable[[], None]
    ) -> None:
        self._watched = {child.spec.name: _Watched(child) for child in children}
        self._environment = environment
        self._tell = tell
        self._started = started

    def all_ready(self) -> bool:
        """Whether every process that is waited for has been ready at least once."""
        return not self._missing()

    def missing(self) -> str:
        """The names of those that have not been ready yet."""
        return ", ".join(self._missing())

    def _missing(self) -> list[str]:
        return [name for name, each in self._watched.items() if each.child.spec.awaited and not each.was_ready]

    def tick(self) -> None:
        """Look at every process once; raises UnavailableError when one cannot be brought up for the first time."""
        for name, each in self._watched.items():
            try:
                self._look_at(name, each)
            except OSError as error:  # a full disk, no more processes, and whatever else passes: the others live on
                self._hold(name, each, error)

    def _look_at(self, name: str, each: _Watched) -> None:
        if each.state == "refused":
            return
        code = each.child.exit_code()
        each.child.log.cut()
        if each.state == "waiting":
            if time.monotonic() >= each.at and self._may_begin(each):
                self._start(name, each)
        elif code is not None:
            self._note_exit(name, each, code)
        elif each.state == "loading":
            self._let_go_on(each)
        elif each.state == "starting":
            self._look_at_start(name, each, ready=each.child.is_ready())
        elif each.state == "ending" and time.monotonic() - each.at > each.child.spec.grace:
            _hurried(each.child)

    def _look_at_start(self, name: str, each: _Watched, *, ready: bool) -> None:
        if self._has_open_port(name, each, ready=ready):
            return
        if ready:
            each.state, each.was_ready = "ready", True
            self._tell(name, "ready")
        elif each.was_ready and time.monotonic() - each.at > READY_SECONDS:
            self._tell(name, f"not ready after {READY_SECONDS:g} s; starting again")
            each.child.ask_to_end()
            each.state, each.at = "ending", time.monotonic()

    def _has_open_port(self, name: str, each: _Watched, *, ready: bool) -> bool:
        """Whether a process that was given a Unix socket listens on a TCP port: then it is ended, and stays so.

        Looked for every second while it starts, and once more when it is ready.
        """
        if each.child.spec.socket is None or (time.monotonic() < each.searched + _SEARCH_SECONDS and not ready):
            return False
        each.searched = time.monotonic()
        ports = each.child.tcp_ports()
        if ports:
            each.state = "refused"
            _hurried(each.child)
            self._tell(
                name,
                f"listens on TCP port {', '.join(map(str, ports))}, which is open to every account of this machine; "
                f"expected the Unix socket {each.child.spec.socket} alone; ended, and not started again",
            )
        return bool(ports)

    def _hold(self, name: str, each: _Watched, error: OSError) -> None:
        """Try a start that the system refused again later; raises UnavailableError where it was the first.

        Tells the reason once.
        """
        if each.state != "waiting":
            return  # looked at again at the next tick
        each.exits += 1
        each.at = time.monotonic() + (HELD_SECONDS if each.was_ready else FIRST_DELAY)
        reason = error.strerror or str(error)
        if each.child.spec.awaited and not each.was_ready and each.exits >= _FIRST_TRIES:
            raise UnavailableError(f"{name} cannot be started: {error}") from error
        if reason != each.held:
            each.held = reason
            self._tell(name, f"cannot be started: {reason}; it is tried again until it can be")

    def end_all(self, hurry: Event) -> None:
        """End each once those that started after it have ended, and at the same time those that may."""
        left = {name for name, each in self._watched.items() if each.child.pid and each.child.exit_code() is None}
        with ThreadPoolExecutor(max(1, len(self._watched))) as threads:
            while left:
                later = frozenset().union(*(self._watched[name].child.spec.end_later for name in left))
                free = [name for name in self._watched if name in left - later]
                for _ in threads.map(lambda name: self._end(name, hurry), free):  # which raises what one raised
                    pass
                left -= set(free)
        for each in self._watched.values():
            each.child.close()

    def _end(self, name: str, hurry: Event) -> None:
        self._tell(name, "stopping")
        self._watched[name].child.end(hurry)
        self._tell(name, "stopped")

    def _may_begin(self, each: _Watched) -> bool:
        return each.child.is_wanted() and (each.child.spec.loads_first or self._may_go_on(each))

    def _may_go_on(self, each: _Watched) -> bool:
        spec = each.child.spec
        after = [self._watched[name] for name in spec.after if name in self._watched]
        needs = [self._watched[name] for name in spec.needs if name in self._watched]
        if not (all(other.was_ready for other in after) and all(other.state == "ready" for other in needs)):
            return False
        # What nobody waits for leaves the processors to what is waited for.
        return spec.awaited or self.all_ready()

    def _start(self, name: str, each: _Watched) -> None:
        each.child.start(self._environment)
        each.state, each.at, each.held = "loading", time.monotonic(), ""
        self._tell(name, "starting")
        self._started()
        self._let_go_on(each)

    def _let_go_on(self, each: _Watched) -> None:
        if self._may_go_on(each):
            each.child.go_on()
            each.state = "starting"

    def _note_exit(self, name: str, each: _Watched, code: int) -> None:
        asked, lived = each.state == "ending", time.monotonic() - each.at
        each.exits += 1
        each.state = "waiting"
        if asked:
            each.at = 0.0
            return
        said = f"ended with {describe_exit(code)}; its log is {each.child.log.path}"
        if each.child.spec.awaited and not each.was_ready and each.exits >= _FIRST_TRIES:
            raise UnavailableError(f"{name} {said}\n{printable(each.child.log.last_lines(_TOLD_LINES))}".rstrip())
        each.delay = FIRST_DELAY if lived > _LONG_LIFE or each.exits == 1 else min(2 * each.delay, LONGEST_DELAY)
        each.at = time.monotonic() + each.delay
        self._tell(name, f"{said}; starting again in {each.delay:g} s")
        for other_name, other in self._watched.items():
            if name in other.child.spec.needs and other.state in {"starting", "ready"}:
                self._tell(other_name, f"starts again with {name}")
                other.child.ask_to_end()
                other.state, other.at = "ending", time.monotonic()


def _hurried(child: Child) -> None:
    at_once = Event()
    at_once.set()
    child.end(at_once)
