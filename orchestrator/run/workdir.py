"""The directory: the folder in which an attempt trains, and how what lies there gets into the storage."""

import errno
import fcntl
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Protocol, TypeVar

from orchestrator.host.storage import Bucket, Folder, Storage
from orchestrator.run.spool import FileSpool, Message, MessageKind, PartedSpool, attempt_folder
from orchestrator.views.runs import Order
from workers.contract import Progress, Result
from workers.data.scratch import private

RESUMED: Final = "resumed.pt"
"""The checkpoint that a directory fetched."""
HELD: Final = ".held"
"""Locked as long as the process lives that trains in a folder."""
ON_THE_WAY: Final = (1.0,)
"""Seconds between the tries to store a checkpoint; the next one is soon to come."""
AT_THE_END: Final = (1.0, 2.0, 4.0, 8.0, 16.0, *(30.0,) * 18)
"""The same for what is fetched at the start and for results, which another attempt would have to train again."""
REST: Final = 9
"""Where storing a checkpoint takes longer than a second, so many times as long passes before the next one is."""

T = TypeVar("T")


class WorkDirectory(Protocol):
    """One attempt's place of work."""

    folder: Path
    """What the training function is told to write into."""

    def open(self) -> None:
        """Make the folder; raises OSError."""

    def checkpoint(self, key: str) -> Path | None:
        """A checkpoint of the storage as a file to read; none where there is none. Raises OSError."""

    def report(self, progress: Progress) -> Message:
        """Spool a progress; a checkpoint that it names is stored by then, or no longer named."""

    def keep(self, result: Result) -> None:
        """Store the files that a result names; raises OSError."""

    def end(self, kind: MessageKind, body: dict[str, Any]) -> Message:
        """Spool the last message and clear away; raises nothing."""


class LocalWorkDirectory:
    """A directory in a storage that is a folder: what is written is stored."""

    def __init__(self, storage: Folder, order: Order) -> None:
        self._root = storage.root
        self.folder = storage.root / attempt_folder(order)
        self._spool = FileSpool(self.folder)

    def open(self) -> None:
        """Make the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)

    def checkpoint(self, key: str) -> Path | None:
        """The checkpoint where it lies."""
        path = self._root / key
        return path if path.exists() else None

    def report(self, progress: Progress) -> Message:
        """Spool a progress."""
        return self._spool.append("progress", progress.model_dump(mode="json"))

    def keep(self, result: Result) -> None:
        """Nothing is to be done."""

    def end(self, kind: MessageKind, body: dict[str, Any]) -> Message:
        """Spool the last message."""
        message = self._spool.append(kind, body)
        self._spool.close()
        return message


class RemoteWorkDirectory:
    """A folder of this machine, for a storage that is a bucket: checkpoints and results are sent there."""

    def __init__(self, storage: Bucket, order: Order, scratch: Path, stop: Callable[[], bool]) -> None:
        self._storage, self._stop = storage, stop
        self._key = attempt_folder(order)
        self.folder = scratch / "attempts" / self._key
        self._spool = PartedSpool(storage, self._key)
        self._lock: IO[str] | None = None
        self._rests_until = 0.0
        self._away = False  # the store did not take the latest checkpoint
        self._stored: set[str] = set()  # checkpoints

    def open(self) -> None:
        """Make the folder, and remove those whose process was killed: nobody else would."""
        attempts = private(private(self.folder.parents[2]) / self.folder.parents[1].name)
        with (attempts / ".gate").open("w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            for held in attempts.glob(f"*/*/{HELD}"):
                _remove_abandoned(held)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / HELD).open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def checkpoint(self, key: str) -> Path | None:
        """The checkpoint, fetched."""
        path = self.folder / RESUMED
        try:
            self._insist(lambda: self._storage.fetch(key, path), AT_THE_END)
        except FileNotFoundError:
            return None
        return path

    def report(self, progress: Progress) -> Message:
        """Store the checkpoint that a progress names, spool it, and store the spool up to it."""
        if progress.checkpoint is not None:
            progress = self._with_checkpoint(progress, progress.checkpoint)
        message = self._spool.append("progress", progress.model_dump(mode="json"))
        if progress.checkpoint is not None:
            with suppress(OSError):  # the next part holds these messages too
                self._spool.flush()
        return message

    def keep(self, result: Result) -> None:
        """Store the files that a result names."""
        for name in result.artifacts:
            if _is_within(self.folder, name) and (self.folder / name).is_file():
                self._send(name, AT_THE_END)

    def end(self, kind: MessageKind, body: dict[str, Any]) -> Message:
        """Spool the last message, store the spool and remove the folder of this machine."""
        message = self._spool.append(kind, body)
        if not (kind == "stopped" and self._away):  # who asked it to stop waits, and not for long
            with suppress(OSError):  # who listens hears it all the same; else the attempt counts as lost
                self._insist(self._spool.flush, AT_THE_END if kind == "finished" else ON_THE_WAY)
        if kind == "finished" and self._spool.flushed:  # else it may have to go on from there
            with suppress(OSError):
                for name in self._stored.difference(body["artifacts"]):
                    self._storage.discard(self._key, name)
        if self._lock is not None:
            self._lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # another attempt at this training may be under way here
            self.folder.parent.rmdir()
        return message

    def _with_checkpoint(self, progress: Progress, name: str) -> Progress:
        """The progress once its checkpoint is stored, or without it, and with a line that says why."""
        began = time.monotonic()
        if began < self._rests_until and not self._stop():
            return progress.model_copy(update={"checkpoint": None})
        said = {}
        try:
            if not _is_within(self.folder, name):
                raise OSError(errno.EINVAL, "not in the attempt's folder", name)
            self._send(name, ON_THE_WAY)
            self._stored.add(name)
            self._away = False
        except OSError as error:
            self._away = True
            said = {"checkpoint": None, "log": f"{progress.log}checkpoint not stored: {error}; going on\n"}
        took = time.monotonic() - began
        if took > 1:  # a slow store, or one that does not answer, shall cost a tenth of the time at most
            self._rests_until = began + (1 + REST) * took
        return progress.model_copy(update=said)

    def _send(self, name: str, waits: Sequence[float]) -> None:
        self._insist(lambda: self._storage.put(self.folder / name, self._key, name), waits)

    def _insist(self, act: Callable[[], T], waits: Iterable[float]) -> T:
        """Try until it succeeds, so many times, once only where the attempt is to stop; raises the last OSError."""
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


def work_directory_for(storage: Storage, order: Order, scratch: Path, stop: Callable[[], bool]) -> WorkDirectory:
    """The directory that suits the storage; nothing is made yet."""
    if isinstance(storage, Bucket):
        return RemoteWorkDirectory(storage, order, scratch, stop)
    return LocalWorkDirectory(storage, order)


def _is_within(folder: Path, name: str) -> bool:
    """Whether a name that a training gave is that of a file in its folder, and no way out of it."""
    path = PurePosixPath(name)
    plain = not path.is_absolute() and ".." not in path.parts
    return plain and (folder / name).resolve().is_relative_to(folder.resolve())


def _remove_abandoned(held: Path) -> None:
    """Remove a folder of an attempt whose process is gone."""
    with suppress(OSError), held.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(held.parent, ignore_errors=True)
        held.parent.parent.rmdir()
