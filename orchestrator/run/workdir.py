"""The folder in which an attempt trains, and how its files get into the storage."""

import errno
import fcntl
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, TypeVar

from orchestrator.host.storage import Bucket, Folder, Storage
from orchestrator.run.spool import FileSpool, Message, MessageKind, PartedSpool, attempt_folder
from orchestrator.views.runs import Order
from workers.contract import Progress, Result
from workers.data.scratch import private

_FETCHED: Final = "resumed.pt"  # the checkpoint that was fetched from the bucket
HELD: Final = ".held"  # locked while the process that trains in a folder lives
ON_THE_WAY: Final = (1.0,)  # seconds between the attempts to store a checkpoint; the next checkpoint comes soon
AT_THE_END: Final = (1.0, 2.0, 4.0, 8.0, 16.0, *(30.0,) * 18)
"""The same for the checkpoint at the start and for results, which another attempt would have to train again."""
REST: Final = 9
"""After a checkpoint took more than a second to store, the pause to the next, as a multiple of that time."""

T = TypeVar("T")


def work_directory_for(storage: Storage, order: Order, scratch: Path, stop: Callable[[], bool]) -> "WorkDirectory":
    """The work directory for an attempt, for a shared folder or a bucket; `open` makes its folder."""
    if isinstance(storage, Bucket):
        return RemoteWorkDirectory(storage, order, scratch, stop)
    return LocalWorkDirectory(storage, order)


class RemoteWorkDirectory:
    """The work directory of an attempt on this machine; checkpoints and results are sent to a bucket."""

    def __init__(self, storage: Bucket, order: Order, scratch: Path, stop: Callable[[], bool]) -> None:
        self._storage, self._stop = storage, stop
        self._key = attempt_folder(order)
        self.folder = scratch / "attempts" / self._key
        self._spool = PartedSpool(storage, self._key)
        self._lock: IO[str] | None = None
        self._rests_until = 0.0
        self._away = False  # the bucket did not take the latest checkpoint
        self._stored: set[str] = set()  # checkpoints

    def open(self) -> None:
        """Make the work directory, and remove those whose process was killed. Raises OSError."""
        attempts = private(private(self.folder.parents[2]) / self.folder.parents[1].name)
        with (attempts / ".gate").open("w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            for held in attempts.glob(f"*/*/{HELD}"):
                _remove_abandoned(held)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / HELD).open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def checkpoint(self, key: str) -> Path | None:
        """Fetch a checkpoint from the bucket as a file, or `None`; raises OSError."""
        path = self.folder / _FETCHED
        try:
            self._insist(lambda: self._storage.fetch(key, path), AT_THE_END)
        except FileNotFoundError:
            return None
        return path

    def report(self, progress: Progress) -> Message:
        """Spool a progress message, without its checkpoint if that cannot be stored; then store the spool."""
        if progress.checkpoint is not None:
            progress = self._with_checkpoint(progress, progress.checkpoint)
        message = self._spool.append("progress", progress.model_dump(mode="json"))
        if progress.checkpoint is not None:
            with suppress(OSError):  # the next part will hold these messages too
                self._spool.flush()
        return message

    def keep(self, result: Result) -> None:
        """Store the files that a result names in the bucket; raises OSError."""
        for name in result.artifacts:
            if _is_within(self.folder, name) and (self.folder / name).is_file():
                self._send(name, AT_THE_END)

    def end(self, kind: MessageKind, body: dict[str, Any]) -> Message:
        """Spool the last message, store the spool and remove the folder; raises nothing."""
        message = self._spool.append(kind, body)
        if not (kind == "stopped" and self._away):  # a stop must not wait for a bucket that does not answer
            with suppress(OSError):  # the conductor hears the message all the same, or counts the attempt as lost
                self._insist(self._spool.flush, AT_THE_END if kind == "finished" else ON_THE_WAY)
        if kind == "finished" and self._spool.flushed:  # otherwise another attempt may need these checkpoints
            with suppress(OSError):
                for name in self._stored.difference(body["artifacts"]):
                    self._storage.discard(self._key, name)
        if self._lock is not None:
            self._lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # another attempt at this training may run on this machine
            self.folder.parent.rmdir()
        return message

    def _with_checkpoint(self, progress: Progress, name: str) -> Progress:
        """The progress after its checkpoint is stored, or without the checkpoint and with a line that says why."""
        began = time.monotonic()
        if began < self._rests_until and not self._stop():
            return progress.model_copy(update={"checkpoint": None})
        changed = {}
        try:
            if not _is_within(self.folder, name):
                raise OSError(errno.EINVAL, f"the checkpoint is outside of the attempt's folder {self.folder}", name)
            self._send(name, ON_THE_WAY)
            self._stored.add(name)
            self._away = False
        except OSError as error:
            self._away = True
            changed = {"checkpoint": None, "log": f"{progress.log}checkpoint not stored: {error}; going on\n"}
        took = time.monotonic() - began
        if took > 1:  # a slow or unavailable bucket may cost a tenth of the time at most
            self._rests_until = began + (1 + REST) * took
        return progress.model_copy(update=changed)

    def _send(self, name: str, waits: Sequence[float]) -> None:
        self._insist(lambda: self._storage.put(self.folder / name, self._key, name), waits)

    def _insist(self, act: Callable[[], T], waits: Iterable[float]) -> T:
        """Repeat an action after each wait until it succeeds; only once if the attempt is to stop. Raises OSError."""
        for wait in waits:
            try:
                return act()
            except FileNotFoundError:
                raise
            except OSError:
                until = time.monotonic() + wait
                while time.monotonic() < until:
                    if self._stop():
                        raise
                    time.sleep(min(wait, 0.5))
        return act()


def _remove_abandoned(locked: Path) -> None:
    """Remove the folder of an attempt unless its process lives."""
    with suppress(OSError), locked.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(locked.parent, ignore_errors=True)
        locked.parent.parent.rmdir()


def _is_within(folder: Path, name: str) -> bool:
    """Whether a name that a training gave stays within its folder."""
    path = PurePosixPath(name)
    plain = not path.is_absolute() and ".." not in path.parts
    return plain and (folder / name).resolve().is_relative_to(folder.resolve())


class LocalWorkDirectory:
    """The work directory of an attempt in a shared storage folder: written files are stored at once."""

    def __init__(self, storage: Folder, order: Order) -> None:
        self._root = storage.root
        self.folder = storage.root / attempt_folder(order)
        self._spool = FileSpool(self.folder)

    def open(self) -> None:
        """Make the attempt's folder in the storage; raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)

    def checkpoint(self, key: str) -> Path | None:
        """The file of a checkpoint in the storage, or `None`."""
        path = self._root / key
        return path if path.exists() else None

    def report(self, progress: Progress) -> Message:
        """Spool a progress message."""
        return self._spool.append("progress", progress.model_dump(mode="json"))

    def keep(self, result: Result) -> None:
        """Do nothing: the files are in the storage."""

    def end(self, kind: MessageKind, body: dict[str, Any]) -> Message:
        """Spool the last message of the attempt."""
        message = self._spool.append(kind, body)
        self._spool.close()
        return message


WorkDirectory = LocalWorkDirectory | RemoteWorkDirectory
