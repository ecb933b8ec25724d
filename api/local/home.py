"""The home folder of one `serve`: its lock, its secrets, its ports, and the processes that it runs."""

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
from orchestrator.host.files import close_files, own_folder, own_secret
from orchestrator.views.errors import ConflictError, MetricsweepError

LEFTOVER_GRACE: Final = 5.0
"""Seconds between SIGTERM and SIGKILL for what an earlier supervisor left."""
_SOCKET_PATH: Final = 107  # bytes of a Unix socket's path on Linux; macOS has 103
_RAY_BELOW: Final = 68  # of these Ray adds /session_<time>_<pid>/sockets/plasma_store
_CLOCK_STEP: Final = 2.0  # seconds by which a corrected clock may shift the time at which a process was created


class Home:
    """The home folder while a supervisor holds it; `close` lets it go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held = ExitStack()
        self.url = ""
        """Address of the API, where it is served; noted for the commands of this user."""
        try:
            self._was_open = own_folder(folder)
        except OSError as error:
            raise MetricsweepError(unwritable(folder, error.strerror)) from error
        self._ports: dict[str, int] = {}

    def lock(self) -> None:
        """Hold the folder.

        Raises ConflictError where another supervisor does, and MetricsweepError where nothing can be written.
        """
        try:
            self._lock()
        except OSError as error:
            raise MetricsweepError(unwritable(self.folder, error.strerror)) from error

    def _lock(self) -> None:
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

    def close(self) -> None:
        """Let the folder and the ports go."""
        self._held.close()

    def close_to_others(self) -> str:
        """Close what an earlier version left open to other accounts; says what it closed, or nothing."""
        files = (*self.folder.iterdir(), *(self.folder / "logs").glob("*"))
        closed = close_files(file for file in files if file.is_file())
        if not self._was_open and not closed:
            return ""
        return f"closed {self.folder} to other accounts, which an earlier version had left open to them"

    def end_leftovers(self) -> list[str]:
        """End what a killed supervisor left running; returns their names and pids, for telling.

        A recorded pid counts only when its process was created at the recorded time; the others are known by the
        random mark in their environment.
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
        """Record what runs, so that the next start can end it should this process be killed."""
        entries = []
        for child in children:
            with suppress(psutil.Error):
                if child.exit_code() is None and child.pid:
                    born = psutil.Process(child.pid).create_time()
                    entries.append({"name": child.spec.name, "pid": child.pid, "created": born})
        noted = {
            "pid": os.getpid(),
            "mark": mark,
            "ports": {**self._known_ports(), **self._ports},
            "children": entries,
        }
        write(self.folder, noted, self.url)

    def port(self, name: str, preferred: Sequence[int] = (), host: str = "127.0.0.1") -> int:
        """A free port for a process: the one it had last, else one of `preferred`, else any.

        It stays claimed against other metricsweeps of this user, which may be choosing at this moment.
        """
        known = self._known_ports().get(name)
        for port in ([known] if known else []) + list(preferred) + [0] * 50:
            chosen = port or _any_port()
            if is_free(host, chosen) and self._claim(chosen):
                self._ports[name] = chosen
                return chosen
        raise MetricsweepError(f"no free port for {name} on {host}")

    def ray_token(self) -> str:
        """The token of this home's Ray, made on first use and readable by its owner only."""
        return own_secret(self.folder / "ray.token")

    def ray_folder(self) -> Path:
        """An empty folder for Ray's sessions, closed to other users; what earlier sessions left is deleted.

        Ray makes its own folders writable to everybody, hence the closed one around them. Its sockets need a short
        path: a deep home has it in the folder for temporary files.
        """
        around = self.folder / "ray"
        if len(os.fsencode(around / "t")) > _SOCKET_PATH - _RAY_BELOW:
            around = self._short()
        own_folder(around)
        shutil.rmtree(around / "t", ignore_errors=True)
        return around / "t"

    def mlflow_socket(self) -> Path:
        """Where MLflow listens: in a folder closed to other users, since the socket itself is writable to everybody."""
        around = self.folder / "mlflow"
        if len(os.fsencode(around / "s")) > _SOCKET_PATH - 4:
            around = self._short("-mlflow")
        own_folder(around)
        return around / "s"

    def _short(self, name: str = "") -> Path:
        """A folder with a short path for what a deep home has no room for."""
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:8]
        return Path("/tmp") / f"metricsweep-{os.getuid()}-{digest}{name}"  # noqa: S108  made with mode 0700

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
    """Who listens on a port, as far as this user may know."""
    with suppress(psutil.Error):  # macOS tells only root
        for one in psutil.net_connections("tcp"):
            if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port:
                with suppress(psutil.Error):
                    return f"process {one.pid} ({psutil.Process(one.pid).name()})" if one.pid else "another user"
    return "another process"


def is_free(host: str, port: int) -> bool:
    """Whether a listener may bind here now."""
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
    """A file to lock, which only this user can open."""
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
    """The sentence for a home folder in which nothing can be written."""
    return (
        f"the home folder {home} cannot be written: {reason}; make room or make it writable, "
        "or name another folder by --home or METRICSWEEP_HOME"
    )
