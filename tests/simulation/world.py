"""A world: its clock, its processes that take turns at transactions and sleeps, and the story of what they did."""

import datetime
import logging
import random
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final
from unittest.mock import patch

from greenlet import getcurrent, greenlet

BEGINNING: Final = 2_000_000_000.0
"""The database's clock when a world begins, in seconds since 1970."""
_monotonic, _sleep, _uuid4 = time.monotonic, time.sleep, uuid.uuid4


class Killed(BaseException):
    """Ends a process where it stands, as SIGKILL does: what it still tries to do afterwards does not happen."""


class BrokenWorldError(AssertionError):
    """An invariant does not hold, or a world that nothing disturbs any more comes to no end."""


@dataclass(eq=False)
class Thread:
    """One line of execution of a process."""

    name: str
    process: "Process"
    line: greenlet
    wake: float
    writing: int = 0  # transactions that write and are open: others' would wait for them


@dataclass(eq=False)
class Process:
    """What dies as a whole, and stands still as a whole."""

    name: str
    mortal: bool = True
    alive: bool = True
    frozen: float = 0.0  # until when it stands still
    threads: list[Thread] = field(default_factory=list)
    farewell: list[Callable[[], object]] = field(default_factory=list)
    """What the operating system does once it is dead, such as to close its files."""


class World:
    """Everything happens in the thread that calls `run`; what happens next is drawn by the seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.drawn = random.Random(seed)
        self.now = 1_000.0  # seconds of the monotonic clock, the same for all
        self.turns = 0
        self.story: list[str] = []
        self.faults: Counter[str] = Counter()  # that struck, by kind
        self.crashes = self.stalls = 0.0  # chances at a transaction
        self.jumps = 0.0  # the chance, at a turn, that the machines' clock is set
        self.awake = 0.0  # when all that stood still will have gone on
        self.skew = 0.0  # seconds by which it is wrong
        self.wrote = False  # since the last look
        self.looks: list[Callable[[], None]] = []
        """Called after every turn in which something was written."""
        self._processes: list[Process] = []
        self._acting: Thread | None = None
        self._home = threading.get_ident()
        self._hub = getcurrent()

    @property
    def here(self) -> bool:
        # A server of another test lives on in a thread of its own: with this world's clock its loop would sleep on for
        # as long as this world is ahead of its time.
        return threading.get_ident() == self._home

    @property
    def _current(self) -> Thread | None:
        return self._acting if self.here else None

    def process(self) -> Process:
        """The process that acts now."""
        assert self._current is not None
        return self._current.process

    def thread(self) -> Thread | None:
        """The thread that acts now; none: nothing of this world does."""
        return self._current

    def tell(self, what: str) -> None:
        """Note what happened, for people."""
        self.story.append(f"{self.now - 1_000.0:8.2f} s  {what}")

    def fault(self, kind: str, what: str) -> None:
        """Note a fault."""
        self.faults[kind] += 1
        self.tell(what)

    def chance(self, share: float) -> bool:
        """Whether something happens that happens so often; draws nothing where it never does."""
        return share > 0 and self.drawn.random() < share

    def begin(self, process: Process, name: str, act: Callable[[], object], after: float = 0.0) -> Thread:
        """Add a thread to a process, which begins after so many seconds."""
        if process not in self._processes:
            self._processes.append(process)
        thread = Thread(f"{process.name}/{name}" if name else process.name, process, greenlet(None), self.now + after)
        thread.line = greenlet(lambda: self._live(thread, act), parent=self._hub)
        process.threads.append(thread)
        return thread

    def _live(self, thread: Thread, act: Callable[[], object]) -> None:
        try:
            act()
        except Killed:
            pass
        finally:
            thread.process.threads.remove(thread)

    def kill(self, process: Process, why: str) -> None:
        """End a process at once; called from the hub or from another process."""
        if process.alive:
            process.alive = False
            self.tell(f"{process.name} is killed {why}")

    def reap(self) -> None:
        """Have the threads of dead processes end; from the hub only."""
        for process in [one for one in self._processes if not one.alive]:
            for thread in list(process.threads):
                if not thread.line:  # it never began
                    process.threads.remove(thread)
                    continue
                self._acting = thread
                thread.line.throw(Killed)
                self._acting = None
            self._processes.remove(process)
            for act in process.farewell:
                act()

    def turn(self) -> bool:
        """Let one thread go on to its next transaction or sleep; False where none is left."""
        self.reap()
        threads = [thread for process in self._processes for thread in process.threads]
        if not threads:
            return False
        self.now = max(self.now, min(max(one.wake, one.process.frozen) for one in threads))
        due = [one for one in threads if max(one.wake, one.process.frozen) <= self.now]
        thread = self.drawn.choice(due)
        self.now += 0.001
        if self.chance(self.jumps):
            self.skew = self.drawn.choice([-3_600.0, -20.0, 0.0, 20.0, 3_600.0])
            self.fault("jumps of the clock", f"the machines' clock is set, and is {self.skew:+g} s wrong")
        self.turns += 1
        self._acting = thread
        try:
            thread.line.switch()
        finally:
            self._acting = None
        self.reap()
        if self.wrote:
            self.wrote = False
            for look in self.looks:
                look()
        return True

    def run(self, until: Callable[[], bool], most: int) -> None:
        """Take turns until something holds; BrokenWorldError where it never does."""
        for number in range(most):
            if number % 20 == 0 and until():
                return
            if not self.turn():
                break
        if not until():
            raise BrokenWorldError(f"after {most} more turns the world has not come to rest")

    def end(self) -> None:
        """Kill all that is left, without a word."""
        for process in self._processes:
            process.alive = False
        self.reap()

    def point(self, what: str) -> None:
        """A point at which others may act, and at which a fault may strike; nothing outside of a process."""
        thread = self._current
        if thread is None:
            return
        if not thread.process.alive:
            raise Killed
        if thread.writing:
            return
        self._hub.switch()
        if not thread.process.alive:
            raise Killed
        self.strike(what)

    def strike(self, what: str) -> None:
        """Let a fault come over the current process, or not."""
        thread = self._current
        if thread is None or not thread.process.mortal:
            return
        self.strike_within(what)
        self.stall(what)

    def stall(self, what: str) -> None:
        """Let the current process stand still here for longer than a lease at times, or not."""
        thread = self._current
        if thread is not None and thread.process.mortal and self.chance(self.stalls):
            self.stand_still(self.drawn.choice([1.0, 4.0, 12.0]), what)

    def freeze(self, process: Process, seconds: float) -> None:
        """Have a process do nothing for a while; called from another one, or by `stand_still`."""
        process.frozen = self.now + seconds
        self.awake = max(self.awake, process.frozen + 3.0)

    def stand_still(self, seconds: float, what: str, kind: str = "stops") -> None:
        """Have the current process stand still, as SIGSTOP does."""
        thread = self._current
        assert thread is not None
        self.freeze(thread.process, seconds)
        self.fault(kind, f"{thread.process.name} stands still for {seconds:g} s {what}")
        self._hub.switch()
        if not thread.process.alive:
            raise Killed

    def strike_within(self, what: str) -> None:
        """As `strike`, where the others cannot act: a process may die, and not stand still."""
        thread = self._current
        if thread is not None and not thread.process.alive:
            raise Killed
        if thread is not None and thread.process.mortal and self.chance(self.crashes):
            self.faults["crashes"] += 1
            self.kill(thread.process, what)
            raise Killed

    def sleep(self, seconds: float) -> None:
        """`time.sleep` to a process of the world."""
        if self._current is None:
            _sleep(seconds)
            return
        self._current.wake = self.now + seconds
        self.point("while it sleeps")

    def monotonic(self) -> float:
        """`time.monotonic` to a process of the world."""
        return _monotonic() if self._current is None else self.now

    def julianday(self, _: str) -> float:
        """The database's clock, as SQLite asks for it."""
        return (BEGINNING + self.now + self.skew) / 86_400.0 + 2_440_587.5

    def wall(self, zone: datetime.tzinfo | None = None) -> datetime.datetime:
        """`datetime.now` of this world."""
        if not self.here:
            return datetime.datetime.now(zone)
        return datetime.datetime.fromtimestamp(BEGINNING + self.now + self.skew, zone)

    def uid(self) -> uuid.UUID:
        """`uuid.uuid4` of this world."""
        if not self.here:
            return _uuid4()
        return uuid.UUID(int=self.drawn.getrandbits(128), version=4)

    @contextmanager
    def laws(self, clocked: Iterable[type] = ()) -> Iterator[None]:
        """What holds in this world: its clocks and its chance.

        `clocked` have the monotonic clock as a default argument, which was bound when they were imported.
        """
        with ExitStack() as laws:
            for target, law in (
                ("time.sleep", self.sleep), ("time.monotonic", self.monotonic), ("uuid.uuid4", self.uid),
            ):  # fmt: skip
                laws.enter_context(patch(target, law))
            for made in (getattr(one, "__init__") for one in clocked):  # noqa: B009 - of a class
                defaults = tuple(self.monotonic if one is _monotonic else one for one in made.__defaults__)
                laws.enter_context(patch.object(made, "__defaults__", defaults))
            stamped = type("datetime", (datetime.datetime,), {"now": self.wall})
            for module in _dating():
                laws.enter_context(patch.object(module, "datetime", stamped))
            logging.disable(logging.CRITICAL)
            laws.callback(logging.disable, logging.NOTSET)
            yield


def _dating() -> Iterable[object]:
    """The product's modules that write down when something happened."""
    rooms = ("orchestrator.conduct.", "orchestrator.record.")
    named = [module for name, module in sys.modules.items() if name.startswith(rooms)]
    return [module for module in named if vars(module).get("datetime") is datetime.datetime]
