"""A slot's process: trains one attempt at a time, measures its usage, and leaves when its node ends."""

import contextlib
import fcntl
import logging
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, Final

import psutil

from orchestrator.host.tracing import begin_tracing
from orchestrator.run.attempt import GIB, TRACE_CHARACTERS, MemoryGrowth, Workplace, execute, own_memory, weighed
from orchestrator.run.spool import Message
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.operations import GpuUsage, ProcessUsage
from orchestrator.views.runs import Order
from workers.data.scratch import unmade

VARIABLE: Final = "METRICSWEEP_NODE_FOLDER"
"""Names the folder to the slots of a node; whoever starts the node sets it, and nobody else."""
REASON: Final = "its node ends"
LOOK_SECONDS: Final = 0.5
"""How often a slot looks whether its node ends."""


class Departure:
    """A folder of one machine that the processes of one node share. It needs no port, no Ray and no conductor.

    A file in it says that the node ends. A lock is held together by all slots that train, and goes with a process that
    is killed; the file behind it is made anew by nobody, so that one lock is meant by all.
    """

    def __init__(self, folder: Path) -> None:
        self._sign, self._lock = folder / "ends", folder / "training"

    @classmethod
    def named_by(cls, environment: Mapping[str, str]) -> "Departure | None":
        """That of the node in which this process runs; none: nobody will tell of its end."""
        folder = environment.get(VARIABLE)
        return cls(Path(folder)) if folder else None

    def prepare(self) -> None:
        """Make what all share. Raises OSError."""
        self._lock.touch(mode=0o600)

    def tell(self) -> None:
        """Say that the node ends. Raises OSError."""
        self._sign.touch(mode=0o600)

    @property
    def told(self) -> bool:
        """Whether it was said."""
        return self._sign.exists()

    @contextmanager
    def training(self) -> Iterator[None]:
        """What the node waits for. A folder that is gone is no reason not to train."""
        held: IO[bytes] | None = None
        with suppress(OSError):
            held = self._lock.open("rb")
            fcntl.flock(held, fcntl.LOCK_SH)
        try:
            yield
        finally:
            if held is not None:
                with suppress(OSError):
                    fcntl.flock(held, fcntl.LOCK_UN)  # closing is not enough: a process of the training may share it
                held.close()

    def quiet(self) -> bool:
        """Whether no slot of the node trains. Raises OSError where the folder is gone."""
        with self._lock.open("rb") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True


MEMORY_SHARE: Final = 100
"""The memory is measured again after so many times what that took: page by page, a gigabyte takes a tenth of a second,
and slots are asked several times in a training."""


class Meter:
    """Measures the process that it lives in."""

    def __init__(self, share: float = MEMORY_SHARE) -> None:
        self._share, self._memory, self._until = share, 0, float("-inf")
        self._process = psutil.Process()
        self._process.cpu_percent(None)  # the next answer is of the time since this one
        self._nvml: Any = None
        self._without_gpus = False

    def usage(self) -> ProcessUsage:
        """What the process takes now; CPUs are those since it was asked last."""
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
        """The GPUs that this process may use; none where there is no GPU, no driver or no NVML."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        if self._without_gpus or visible == "":
            return None
        try:
            return list(self._asked(visible)) or None
        except Exception:  # no module, no library, no driver, no permission, a GPU that fell off its bus
            self._without_gpus = self._nvml is None
            return None

    def _asked(self, visible: str | None) -> Iterator[GpuUsage]:
        if self._nvml is None:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
        nvml = self._nvml
        names = range(nvml.nvmlDeviceGetCount()) if visible is None else visible.split(",")
        for index, name in enumerate(names):
            handle = _handle(nvml, str(name).strip())
            memory, label = nvml.nvmlDeviceGetMemoryInfo(handle), nvml.nvmlDeviceGetName(handle)
            yield GpuUsage(
                index=index,
                name=label.decode() if isinstance(label, bytes) else label,
                memory_bytes=memory.total,
                memory_used_bytes=memory.used,
                busy=_busy(nvml, handle),
            )


def _handle(nvml: Any, name: str) -> Any:
    """The device of an index, or of a UUID, as CUDA_VISIBLE_DEVICES names them."""
    return nvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdigit() else nvml.nvmlDeviceGetHandleByUUID(name)


def _busy(nvml: Any, handle: Any) -> float | None:
    """A part of a GPU (MIG) has no such figure."""
    try:
        return float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu) / 100
    except nvml.NVMLError:
        return None


def decoded_bytes() -> int | None:
    """The bytes of the images that lie decoded on this machine; none where that cannot be seen."""
    try:
        folders = [folder for folder in (unmade() / "decoded").iterdir() if folder.is_dir() and not folder.is_symlink()]
        return sum(file.lstat().st_size for folder in folders for file in folder.iterdir())
    except FileNotFoundError:
        return 0
    except OSError:
        return None


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
