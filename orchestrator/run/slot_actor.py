"""The slot actor: holds a slot's resources and trains one attempt at a time, whoever listens."""

import contextlib
import logging
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Final

from orchestrator.host.tracing import begin_tracing
from orchestrator.run.attempt import TRACE_CHARACTERS, Workplace, execute
from orchestrator.run.departure import LOOK_SECONDS, REASON, Departure
from orchestrator.run.memory_growth import GIB, MemoryGrowth, weighed
from orchestrator.run.message import Message
from orchestrator.run.usage import Meter
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.runs import Order

log = logging.getLogger(__name__)

FORM: Final = 6
"""Of what a slot is given and tells. A conductor stops one of another form, and its training goes on in a new one."""
PAST: Final = 32
"""Ended attempts whose last message a slot still gives, for a reader that polls at its own pace."""
AGES: Final = 100
"""Messages, the latest, of which a slot says how long ago they were said."""
LONELY_SECONDS: Final = 1_800.0
"""A slot that trains nothing and that nobody has asked anything for so long ends itself: its conductor may be gone for
good, and nobody else knows of it. What its last attempt said is in the spool."""


class SlotActor:
    """Lives detached in Ray, so that training outlives the conductor. Its methods are called from several threads.

    One thread trains for as long as it lives: the C library gives each new thread another pool of memory, and keeps it.
    """

    def __init__(
        self, lonely: float = LONELY_SECONDS, leave: Callable[[int], object] = os._exit, edition: str = ""
    ) -> None:
        _trace()
        self._edition = edition  # of the code that this process imports
        self._asked = time.monotonic()
        self._changed = threading.Condition()
        self._fence = 0  # the highest that it was greeted or given an order with
        self._attempt: str | None = None
        self._messages: list[Message] = []
        self._past: dict[str, Message] = {}  # the last message of earlier attempts
        self._stop = threading.Event()
        self._said_at: list[float] = []  # when, by message
        self._growth = MemoryGrowth()
        self._unweighed: tuple[Order, Workplace] | None = None  # of the last training, which was too short for it
        self._meter = Meter()
        self._held: Mapping[str, int] = {}  # bytes by kind, after the latest training
        self._worn: str | None = None  # why it is to be replaced
        self._departure = Departure.named_by(os.environ)
        self._leaves = False  # its node ends
        self._given: SimpleQueue[tuple[Order, Workplace, threading.Event]] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        threading.Thread(target=self._wait_for_company, args=(lonely, leave), daemon=True).start()
        if self._departure is not None:
            threading.Thread(target=self._watch_node, args=(self._departure,), daemon=True).start()

    def describe(self) -> dict[str, Any]:
        """Where the slot is, which attempt it holds, ended or not, until another is started, and what it has grown to.

        `worn` says why it is to be replaced before the next training; none: it is as good as new. `said` is how many
        messages there are, and `ages` how many seconds ago the latest of them were said, by this machine's clock alone.
        """
        usage = self._meter.usage().model_dump()
        with self._changed:
            self._asked = now = time.monotonic()
            ages = [now - at for at in self._said_at[-AGES:]]
            told = {"usage": usage, "said": len(self._said_at), "ages": ages}
            place = {"host": socket.gethostname(), "pid": os.getpid(), "edition": self._edition}
            worn = REASON if self._leaves else self._worn
            state = {"attempt": self._attempt, "busy": self._busy(), "held": self._held, "worn": worn}
            return {"form": FORM, "fence": self._fence, **place, **told, **state}

    def greet(self, fence: int) -> dict[str, Any]:
        """From now on begin nothing for a conductor with a lower fence; what is described is as of that moment.

        One that stood still while its lease passed on may still tell a slot to begin what it had claimed.
        """
        with self._changed:
            self._fence = max(self._fence, fence)
            return self.describe()

    def start(self, order: Order, workplace: Workplace, fence: int) -> bool:
        """Begin an attempt; the same one again changes nothing; False while another trains, and under an old fence."""
        with self._changed:
            self._asked = time.monotonic()
            if fence < self._fence:
                return False
            self._fence = fence
            if self._attempt == order.attempt:
                return True
            if self._busy():
                return False
            if self._attempt is not None and self._ended():
                self._past[self._attempt] = self._messages[-1]
                if len(self._past) > PAST:
                    del self._past[next(iter(self._past))]
            self._attempt, self._messages, self._stop = order.attempt, [], threading.Event()
            self._said_at = []
            self._given.put((order, workplace, self._stop))
            return True

    def poll(self, attempt: str, seen: int, wait: float) -> list[bytes]:
        """The lines of the messages after number `seen`, waiting up to `wait` seconds for the first.

        Of an attempt before the present one only the last is kept.
        """
        with self._changed:
            self._asked = time.monotonic()
            self._changed.wait_for(lambda: self._attempt == attempt and len(self._messages) > seen, timeout=wait)
            if self._attempt == attempt:
                return [message.line for message in self._messages[seen:]]
            last = self._past.get(attempt)
            return [last.line] if last is not None and last.seq > seen else []

    def follow(self, attempt: str, seen: int, wait: float) -> list[bytes]:
        """What `poll` gives once the attempt has ended, or after `wait` seconds, for a reader at its own pace."""
        with self._changed:
            self._changed.wait_for(lambda: attempt in self._past or (self._attempt == attempt and self._ended()), wait)
            return self.poll(attempt, seen, 0.0)

    def listen(self, attempt: str, seen: int, wait: float) -> dict[str, Any]:
        """What `poll` gives, with the machine's name and why the slot is to be replaced, for the conductor."""
        lines = self.poll(attempt, seen, wait)
        return {"lines": lines, "host": socket.gethostname(), "worn": REASON if self._leaves else self._worn}

    def stop(self, attempt: str) -> None:
        """Ask an attempt to stop at its next step."""
        with self._changed:
            if self._attempt == attempt:
                self._stop.set()

    def _wait_for_company(self, lonely: float, leave: Callable[[int], object]) -> None:
        while True:
            time.sleep(lonely / 10)
            with self._changed:
                if self._busy():
                    self._asked = time.monotonic()
                elif time.monotonic() - self._asked > lonely:
                    break
        leave(0)

    def _watch_node(self, departure: Departure) -> None:
        """Have what trains give itself back, from a checkpoint on, once the node is told to end."""
        while not departure.told:
            time.sleep(LOOK_SECONDS)
        with self._changed:
            self._leaves = True
            self._stop.set()

    def _busy(self) -> bool:
        return self._attempt is not None and self._thread.is_alive() and not self._ended()

    def _ended(self) -> bool:
        return bool(self._messages) and self._messages[-1].final

    def _work(self) -> None:
        while True:
            unweighed = self._unweighed
            try:
                given = self._given.get(timeout=None if unweighed is None else unweighed[1].allowance.seconds)
            except Empty:  # nothing came after a short training, whose memory an idle slot need not keep
                assert unweighed is not None
                self._weigh(*unweighed)
            else:
                self._train(*given)

    def _train(self, order: Order, workplace: Workplace, stop: threading.Event) -> None:
        def tell(message: Message) -> None:
            # Before anybody hears that it ended and gives out the slot again; what broke may have broken the process.
            if message.final:
                self._growth.ended()
                self._unweighed = order, workplace
                if message.kind == "failed" or self._growth.due(workplace.allowance):
                    self._weigh(order, workplace)
            with self._changed:
                self._messages.append(message)
                self._said_at.append(time.monotonic())
                self._changed.notify_all()

        try:
            with contextlib.nullcontext() if self._departure is None else self._departure.training():
                if self._leaves:  # before it has opened anything; it is given out again elsewhere
                    tell(Message.made(1, "stopped", {}))
                    return
                execute(order, workplace, stop.is_set, tell)
        except BaseException as error:  # else the attempt would be silent until it counts as stalled
            trace = "".join(traceback.format_exception(error))[-TRACE_CHARACTERS:]
            said = f"{type(error).__name__}: {error}"[:1000]
            body = {"kind": "infrastructure", "message": said, "trace": trace}
            tell(Message.made(len(self._messages) + 1, "failed", body))

    def _weigh(self, order: Order, workplace: Workplace) -> None:
        """Let go of what the attempt left, and judge what the process holds now."""
        self._unweighed = None
        gigabytes = order.slot.memory_gb
        try:
            held = weighed(workplace.train)
            declared = None if gigabytes is None else int(gigabytes * GIB)
            worn = self._growth.note(held, workplace.allowance, declared)
        except Exception as error:  # after some errors of a GPU nothing on it succeeds in this process any more
            held, worn = {}, f"its memory cannot be given back: {type(error).__name__}: {error}"[:1000]
        with self._changed:
            self._held, self._worn = held, worn


def _trace() -> None:
    """A machine without the packages for it trains all the same."""
    try:
        begin_tracing("slot", os.environ.get("METRICSWEEP_TRACES_URL", ""))
    except MetricsweepError as error:
        log.warning("this slot is not traced: %s", error)
