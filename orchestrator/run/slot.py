"""The process of a slot: trains one attempt at a time, reports its usage, and stops when its node ends."""

import contextlib
import fcntl
import logging
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, Final

import psutil

from orchestrator.host.tracing import begin_tracing
from orchestrator.run.attempt import (
    GIB,
    MEMORY,
    TRACE_CHARACTERS,
    MemoryGrowth,
    Workplace,
    execute,
    own_memory,
    release,
)
from orchestrator.run.spool import Message
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.operations import SYSTEM, GpuUsage, ProcessUsage
from orchestrator.views.runs import Order
from workers.data.scratch import unmade

VARIABLE: Final = "METRICSWEEP_NODE_FOLDER"
"""The folder that the slots of a node share; set by the process that starts the node."""
REASON: Final = "its node ends"
CHECK_SECONDS: Final = 0.5  # how often a slot checks whether its node ends
_MEMORY_SHARE: Final = 100
"""The pause between two measurements of memory, as a multiple of the time that one takes (0.1 s for a gigabyte)."""
_CURVE_MEMORY_SHARE: Final = 300  # the training itself waits for these measurements
_CURVE_SECONDS: Final = 1.0  # the least time between two points of the curves of usage

log = logging.getLogger(__name__)

PROTOCOL: Final = 6
"""The version of the interface of slots. A conductor stops slots of another version, and continues in new ones."""
_MOST_ENDED: Final = 32  # ended attempts whose last message a slot keeps, for a reader that polls slowly
MOST_AGES: Final = 100  # ages of messages that a slot reports
_ORPHANED_SECONDS: Final = 1_800.0
"""An idle slot that got no request for so long ends itself, since its conductor may be gone for good."""


def lag(count: int, ages: Sequence[float], recorded: int | None) -> float | None:
    """The age of the oldest of `count` messages that is not recorded; `ages` has those of the latest messages."""
    if recorded is None or recorded >= count or not ages:
        return None
    return ages[max(0, recorded - (count - len(ages)))]


class Preemption:
    """A folder that the processes of one node share: it announces that the node ends, and shows which slots train.

    A file announces the end. All slots that train share a lock, which the system releases when a process is killed.
    """

    def __init__(self, folder: Path) -> None:
        self._notice, self._lock = folder / "ends", folder / "training"

    @classmethod
    def named_by(cls, environment: Mapping[str, str]) -> "Preemption | None":
        """The folder that announces the end of this process's node; `None` if the end will not be announced."""
        folder = environment.get(VARIABLE)
        return cls(Path(folder)) if folder else None

    def prepare(self) -> None:
        """Make the file of the shared lock; raises OSError. No slot makes it, so that all lock the same file."""
        self._lock.touch(mode=0o600)

    def announce(self) -> None:
        """Announce that the node ends; raises OSError."""
        self._notice.touch(mode=0o600)

    @property
    def announced(self) -> bool:
        """Whether the end of the node was announced."""
        return self._notice.exists()

    @contextmanager
    def training(self) -> Iterator[None]:
        """Hold the shared lock while training; does nothing if the folder is gone."""
        held: IO[bytes] | None = None
        with suppress(OSError):
            held = self._lock.open("rb")
            fcntl.flock(held, fcntl.LOCK_SH)
        try:
            yield
        finally:
            if held is not None:
                with suppress(OSError):
                    fcntl.flock(held, fcntl.LOCK_UN)  # a child process of the training may still have the file open
                held.close()

    def is_idle(self) -> bool:
        """Whether no slot of the node trains now; raises OSError if the folder is gone."""
        with self._lock.open("rb") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True


class SlotActor:
    """The actor of a slot, detached in Ray, so that training outlives the conductor. Its methods are thread-safe.

    All attempts train in one thread, since the C library gives each new thread its own pool of memory and keeps it.
    """

    def __init__(
        self, orphaned_after: float = _ORPHANED_SECONDS, leave: Callable[[int], object] = os._exit, edition: str = ""
    ) -> None:
        try:
            begin_tracing("slot", os.environ.get("METRICSWEEP_TRACES_URL", ""))
        except MetricsweepError as error:
            log.warning("this slot is not traced: %s", error)
        self._edition = edition  # of the code that this process imports
        self._last_request = time.monotonic()
        self._changed = threading.Condition()
        self._fence = 0  # the highest fence of all requests
        self._attempt: str | None = None
        self._messages: list[Message] = []
        self._last_messages: dict[str, Message] = {}  # the last message of earlier attempts
        self._stop = threading.Event()
        self._message_times: list[float] = []
        self._growth = MemoryGrowth()
        self._unmeasured: tuple[Order, Workplace] | None = None  # the last training, if its memory was not measured
        self._meter = Meter()
        self._held: Mapping[str, int] = {}  # bytes by kind, after the last training
        self._replace_reason: str | None = None  # why to replace this process
        self._preemption = Preemption.named_by(os.environ)
        self._node_ends = False
        self._queue: SimpleQueue[tuple[Order, Workplace, threading.Event]] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        threading.Thread(target=self._end_when_orphaned, args=(orphaned_after, leave), daemon=True).start()
        if self._preemption is not None:
            threading.Thread(target=self._watch_node, args=(self._preemption,), daemon=True).start()

    def describe(self) -> dict[str, Any]:
        """The slot's host, usage and current attempt, which stays after its end until another attempt starts.

        `replace_reason` says why to replace the slot before the next training; `None` means that there is no need.
        `message_count` is the number of messages, and `message_ages` the seconds since the latest messages were made.
        """
        usage = self._meter.usage().model_dump()
        with self._changed:
            self._last_request = now = time.monotonic()
            return {
                "protocol": PROTOCOL,
                "fence": self._fence,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "edition": self._edition,
                "usage": usage,
                "message_count": len(self._message_times),
                "message_ages": [now - at for at in self._message_times[-MOST_AGES:]],
                "attempt": self._attempt,
                "busy": self._busy(),
                "held": self._held,
                "replace_reason": REASON if self._node_ends else self._replace_reason,
            }

    def greet(self, fence: int) -> dict[str, Any]:
        """Refuse orders of conductors with a lower fence from now on; return what `describe` returns.

        A conductor that was suspended while its lease passed on may still send an order that it had claimed.
        """
        with self._changed:
            self._fence = max(self._fence, fence)
            return self.describe()

    def start(self, order: Order, workplace: Workplace, fence: int) -> bool:
        """Start an attempt; idempotent. False if another attempt trains, or the fence is out of date."""
        with self._changed:
            self._last_request = time.monotonic()
            if fence < self._fence:
                return False
            self._fence = fence
            if self._attempt == order.attempt:
                return True
            if self._busy():
                return False
            if self._attempt is not None and self._ended():
                self._last_messages[self._attempt] = self._messages[-1]
                if len(self._last_messages) > _MOST_ENDED:
                    del self._last_messages[next(iter(self._last_messages))]
            self._attempt, self._messages, self._stop = order.attempt, [], threading.Event()
            self._message_times = []
            self._queue.put((order, workplace, self._stop))
            return True

    def poll(self, attempt: str, seen: int, wait: float) -> list[bytes]:
        """The lines of the messages after number `seen`, of an earlier attempt only the last; waits for the first."""
        with self._changed:
            self._last_request = time.monotonic()
            self._changed.wait_for(lambda: self._attempt == attempt and len(self._messages) > seen, timeout=wait)
            if self._attempt == attempt:
                return [message.line for message in self._messages[seen:]]
            last = self._last_messages.get(attempt)
            return [last.line] if last is not None and last.seq > seen else []

    def follow(self, attempt: str, seen: int, wait: float) -> list[bytes]:
        """The same as `poll`, once the attempt has ended or after `wait` seconds."""
        with self._changed:
            self._changed.wait_for(
                lambda: attempt in self._last_messages or (self._attempt == attempt and self._ended()), wait
            )
            return self.poll(attempt, seen, 0.0)

    def listen(self, attempt: str, seen: int, wait: float) -> dict[str, Any]:
        """The same as `poll`, with the host and why to replace the slot, for the conductor."""
        lines = self.poll(attempt, seen, wait)
        return {
            "lines": lines,
            "host": socket.gethostname(),
            "replace_reason": REASON if self._node_ends else self._replace_reason,
        }

    def stop(self, attempt: str) -> None:
        """Ask an attempt to stop at its next step."""
        with self._changed:
            if self._attempt == attempt:
                self._stop.set()

    def _end_when_orphaned(self, orphaned_after: float, leave: Callable[[int], object]) -> None:
        while True:
            time.sleep(orphaned_after / 10)
            with self._changed:
                if self._busy():
                    self._last_request = time.monotonic()
                elif time.monotonic() - self._last_request > orphaned_after:
                    break
        leave(0)

    def _watch_node(self, preemption: Preemption) -> None:
        """Stop the attempt at a checkpoint once the node ends."""
        while not preemption.announced:
            time.sleep(CHECK_SECONDS)
        with self._changed:
            self._node_ends = True
            self._stop.set()

    def _busy(self) -> bool:
        return self._attempt is not None and self._thread.is_alive() and not self._ended()

    def _ended(self) -> bool:
        return bool(self._messages) and self._messages[-1].final

    def _work(self) -> None:
        while True:
            unmeasured = self._unmeasured
            try:
                given = self._queue.get(timeout=None if unmeasured is None else unmeasured[1].allowance.seconds)
            except Empty:  # the slot is idle after a short training, and need not keep its memory
                assert unmeasured is not None
                self._free_memory(*unmeasured)
            else:
                self._train(*given)

    def _train(self, order: Order, workplace: Workplace, stop: threading.Event) -> None:
        def deliver(message: Message) -> None:
            # The memory is measured before the end is reported, after which the slot gets another order.
            if message.final:
                self._growth.ended()
                self._unmeasured = order, workplace
                if message.kind == "failed" or self._growth.due(workplace.allowance):
                    self._free_memory(order, workplace)
            with self._changed:
                self._messages.append(message)
                self._message_times.append(time.monotonic())
                self._changed.notify_all()

        try:
            with contextlib.nullcontext() if self._preemption is None else self._preemption.training():
                if self._node_ends:  # the attempt continues on another node
                    deliver(Message.made(1, "stopped", {}))
                    return
                execute(order, workplace, stop.is_set, deliver, Meter(_CURVE_MEMORY_SHARE).points)
        except BaseException as error:  # otherwise the attempt would be silent until it counts as stalled
            trace = "".join(traceback.format_exception(error))[-TRACE_CHARACTERS:]
            body = {"kind": "infrastructure", "message": f"{type(error).__name__}: {error}"[:1000], "trace": trace}
            deliver(Message.made(len(self._messages) + 1, "failed", body))

    def _free_memory(self, order: Order, workplace: Workplace) -> None:
        """Free what the attempt left, and decide from what the process still holds whether to replace it."""
        self._unmeasured = None
        gigabytes = order.slot.memory_gb
        try:
            more = release(workplace.train)
            held = {MEMORY: own_memory(), **more}
            declared = None if gigabytes is None else int(gigabytes * GIB)
            replace_reason = self._growth.note(held, workplace.allowance, declared)
        except Exception as error:  # after some GPU errors, every call in this process fails
            held, replace_reason = {}, f"its memory cannot be freed: {type(error).__name__}: {error}"[:1000]
        with self._changed:
            self._held, self._replace_reason = held, replace_reason


class Meter:
    """Measures how much CPU, memory and GPU this process uses."""

    def __init__(self, share: float = _MEMORY_SHARE) -> None:
        self._share, self._memory, self._until = share, 0, float("-inf")
        self._process = psutil.Process()
        self._process.cpu_percent(None)  # later calls give the mean since the previous call
        self._nvml: Any = None
        self._without_gpus = False
        self._points_from = float("-inf")

    def points(self) -> dict[str, float]:
        """The usage as points of curves: CPUs and share of GPUs in use, memory in GiB. Empty within a second."""
        now = time.monotonic()
        if now < self._points_from:
            return {}
        self._points_from = now + _CURVE_SECONDS
        try:
            usage = self.usage()
        except (OSError, psutil.Error):
            return {}
        found = {f"{SYSTEM}cpu": usage.cpus, f"{SYSTEM}memory": usage.memory_bytes / GIB}
        if usage.gpus:
            found[f"{SYSTEM}gpu_memory"] = sum(gpu.memory_used_bytes for gpu in usage.gpus) / GIB
            if busy := [gpu.busy for gpu in usage.gpus if gpu.busy is not None]:
                found[f"{SYSTEM}gpu"] = sum(busy) / len(busy)
        return found

    def usage(self) -> ProcessUsage:
        """The CPU, memory and GPU use of this process now; for CPUs, the mean since the last call."""
        memory = psutil.virtual_memory()
        return ProcessUsage(
            memory_bytes=self._own_memory(),
            cpus=self._process.cpu_percent(None) / 100,
            machine_memory_bytes=memory.total,
            machine_memory_free_bytes=memory.available,
            machine_cpus=os.cpu_count() or 1,
            machine_load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            gpus=self._gpus(),
        )

    def _own_memory(self) -> int:
        began = time.monotonic()
        if began >= self._until:
            self._memory = own_memory()
            now = time.monotonic()
            self._until = now + self._share * (now - began)
        return self._memory

    def _gpus(self) -> list[GpuUsage] | None:
        """The GPUs that this process may use; `None` without a GPU, a driver or NVML."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        if self._without_gpus or visible == "":
            return None
        try:
            return list(self._measured_gpus(visible)) or None
        except Exception:  # no module, no library, no driver, no permission, or a broken GPU
            self._without_gpus = self._nvml is None
            return None

    def _measured_gpus(self, visible: str | None) -> Iterator[GpuUsage]:
        if self._nvml is None:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
        nvml = self._nvml
        names = range(nvml.nvmlDeviceGetCount()) if visible is None else visible.split(",")
        for index, name in enumerate(names):
            uid = str(name).strip()
            by_index = uid.isdigit()
            handle = nvml.nvmlDeviceGetHandleByIndex(int(uid)) if by_index else nvml.nvmlDeviceGetHandleByUUID(uid)
            memory, label = nvml.nvmlDeviceGetMemoryInfo(handle), nvml.nvmlDeviceGetName(handle)
            yield GpuUsage(
                index=index,
                name=label.decode() if isinstance(label, bytes) else label,
                memory_bytes=memory.total,
                memory_used_bytes=memory.used,
                busy=_busy(nvml, handle),
            )


def _busy(nvml: Any, handle: Any) -> float | None:
    try:
        return float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu) / 100
    except nvml.NVMLError:  # NVML has no such figure for a part of a GPU (MIG)
        return None


def decoded_bytes() -> int | None:
    """The size in bytes of the decoded images on this machine; `None` if their folder cannot be read."""
    try:
        folders = [folder for folder in (unmade() / "decoded").iterdir() if folder.is_dir() and not folder.is_symlink()]
        return sum(file.lstat().st_size for folder in folders for file in folder.iterdir())
    except FileNotFoundError:
        return 0
    except OSError:
        return None
