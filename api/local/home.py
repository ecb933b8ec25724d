"""The home folder of one `serve`: its lock, secrets and ports, and the record of its processes."""

import fcntl
import hashlib
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final

import psutil

from api.local.processes import Child, end_processes, marked
from api.local.record import read, write
from orchestrator.host.files import close_files, own_folder
from orchestrator.views.errors import ConflictError, MetricsweepError

LEFTOVER_GRACE: Final = 5.0
"""Seconds between SIGTERM and SIGKILL for processes that an earlier supervisor left."""
_SOCKET_PATH: Final = 107  # the longest path of a Unix socket on Linux, in bytes; macOS has 103
_RAY_BELOW: Final = 68  # the length of /session_<time>_<pid>/sockets/plasma_store, which Ray appends
_CLOCK_STEP: Final = 2.0  # seconds by which a corrected clock may shift the time at which a process was created


class Home:
    """The home folder while a supervisor holds it; `close` releases it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held = ExitStack()
        self.url = ""
        """The address of the API while it is served, which `note` records for the commands of this user."""
        try:
            self._was_open = own_folder(folder)
        except OSError as error:
            raise MetricsweepError(unwritable(folder, error.strerror)) from error
        self._ports: dict[str, int] = {}

    def lock(self) -> None:
        """Lock the folder.

        Raises ConflictError if another supervisor holds it, and MetricsweepError if it cannot be written.
        """
        try:
            file = self._held.enter_context(_ours(self.folder / "serve.lock"))
            if not _flock(file):
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise ConflictError(
                    f"metricsweep already serves {self.folder} (process {holder}); stop it first, "
                    "or set METRICSWEEP_HOME to another folder"
                )
            os.ftruncate(file.fileno(), 0)
            os.pwrite(file.fileno(), f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise MetricsweepError(unwritable(self.folder, error.strerror)) from error

    def close(self) -> None:
        """Release the home folder and the ports."""
        self._held.close()

    def close_to_others(self) -> str:
        """Make the home's files inaccessible to other accounts; returns a message if any was accessible."""
        files = (*self.folder.iterdir(), *(self.folder / "logs").glob("*"))
        closed = close_files(file for file in files if file.is_file())
        return f"closed {self.folder}, which was open to other accounts" if self._was_open or closed else ""

    def end_leftovers(self) -> list[str]:
        """End the processes that a killed supervisor left; returns their names and pids.

        A recorded pid counts only if its process was created at the recorded time; further processes are recognized by
        the random mark in their environment.
        """
        known = read(self.folder)
        mark = known.get("mark")
        leftovers: dict[int, psutil.Process] = {process.pid: process for process in (marked(str(mark)) if mark else [])}
        names = {}
        for entry in known.get("children") or ():
            with suppress(psutil.Error, KeyError, TypeError):
                process = psutil.Process(int(entry["pid"]))
                if (
                    process.status() != psutil.STATUS_ZOMBIE
                    and abs(process.create_time() - entry["created"]) < _CLOCK_STEP
                ):
                    names[process.pid] = str(entry["name"])
                    leftovers |= {each.pid: each for each in [process, *process.children(recursive=True)]}
        for process in leftovers.values():
            with suppress(psutil.Error):
                process.terminate()
        end_processes(list(leftovers.values()), LEFTOVER_GRACE)
        return [
            f"{names.get(pid, 'process')} {pid}" for pid in sorted(leftovers, key=lambda pid: (pid not in names, pid))
        ]

    def note(self, mark: str, children: Sequence[Child]) -> None:
        """Record the running processes in the home, so that the next start can end them if this process is killed."""
        entries = []
        for child in children:
            with suppress(psutil.Error):
                if child.exit_code() is None and child.pid:
                    born = psutil.Process(child.pid).create_time()
                    entries.append({"name": child.spec.name, "pid": child.pid, "created": born})
        ports = {**self._known_ports(), **self._ports}
        write(self.folder, {"pid": os.getpid(), "mark": mark, "ports": ports, "children": entries}, self.url)

    def port(self, name: str, preferred: Sequence[int] = (), host: str = "127.0.0.1") -> int:
        """A free port for a process: the last one, else one of `preferred`, else any.

        It is locked against other metricsweeps of this user, which may choose one at the same time.
        """
        known = self._known_ports().get(name)
        for port in ([known] if known else []) + list(preferred) + [0] * 50:
            chosen = port or _any_port()
            if is_free(host, chosen) and self._claim(chosen):
                self._ports[name] = chosen
                return chosen
        raise MetricsweepError(f"no free port for {name} on {host}")

    def ray_folder(self) -> Path:
        """An empty folder for Ray's sessions, which Ray makes writable to everybody; earlier sessions are deleted."""
        sessions = self._closed("ray") / "t"
        shutil.rmtree(sessions, ignore_errors=True)
        return sessions

    def mlflow_socket(self) -> Path:
        """MLflow's socket, which is writable to everybody."""
        return self._closed("mlflow") / "s"

    def _closed(self, name: str) -> Path:
        """A folder that other users cannot enter, in /tmp if the path of the home is too long for sockets."""
        folder = self.folder / name
        if len(os.fsencode(folder / "t")) > _SOCKET_PATH - _RAY_BELOW:
            digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:8]
            folder = Path("/tmp") / f"metricsweep-{os.getuid()}-{digest}"  # noqa: S108  made with mode 0700
        own_folder(folder)
        return folder

    def _known_ports(self) -> dict[str, int]:
        ports = read(self.folder).get("ports")
        return {str(name): int(port) for name, port in ports.items()} if isinstance(ports, dict) else {}

    def _claim(self, port: int) -> bool:
        folder = Path(tempfile.gettempdir()) / f"metricsweep-ports-{os.getuid()}"
        own_folder(folder)
        file = _ours(folder / str(port))
        if _flock(file):
            self._held.enter_context(file)
            return True
        file.close()
        return False


def holder(port: int) -> str:
    """The process that listens on a port, in words, as far as this user may know."""
    with suppress(psutil.Error):  # on macOS only root may list connections
        for found in psutil.net_connections("tcp"):
            if found.status == psutil.CONN_LISTEN and found.laddr and found.laddr.port == port:
                with suppress(psutil.Error):
                    return f"process {found.pid} ({psutil.Process(found.pid).name()})" if found.pid else "another user"
    return "another process"


def is_free(host: str, port: int) -> bool:
    """Whether a port is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def _any_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ours(file: Path) -> IO[str]:
    """A file for a lock, which only this user can open."""
    return os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+")


def _flock(file: IO[str]) -> bool:
    deadline = time.monotonic() + 0.2
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        else:
            return True


def unwritable(home: Path, reason: str | None) -> str:
    """The message for a home folder that cannot be written."""
    return (
        f"the home folder {home} cannot be written: {reason}; make room or make it writable, "
        "or name another folder by --home or METRICSWEEP_HOME"
    )
