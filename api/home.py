"""What one `serve` keeps in its home folder: the lock, the ports and processes in `serve.json`, Ray's token."""

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, Final

import psutil

from api.process import Child, end_processes, marked
from orchestrator.errors import ConflictError, MetricsweepError

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
        folder.mkdir(parents=True, exist_ok=True)
        self._record = folder / "serve.json"
        self._ports: dict[str, int] = {}

    def lock(self) -> None:
        """Hold the folder; raises ConflictError where another supervisor does."""
        file = self._held.enter_context((self.folder / "serve.lock").open("a+"))
        if not _flock(file):
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise ConflictError(
                f"metricsweep already serves {self.folder} (process {holder}); stop it first, "
                "or set METRICSWEEP_HOME to another folder"
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()

    def close(self) -> None:
        """Let the folder and the ports go."""
        self._held.close()

    def end_leftovers(self) -> list[str]:
        """End what a killed supervisor left running; returns their names and pids, for telling.

        A recorded pid counts only when its process was created at the recorded time; the others are known by the
        random mark in their environment.
        """
        record = self._read()
        mark = record.get("mark")
        found: dict[int, psutil.Process] = {process.pid: process for process in (marked(str(mark)) if mark else [])}
        names = {}
        for entry in record.get("children") or ():
            with suppress(psutil.Error, KeyError, TypeError):
                process = psutil.Process(int(entry["pid"]))
                if (
                    process.status() != psutil.STATUS_ZOMBIE
                    and abs(process.create_time() - entry["created"]) < _CLOCK_STEP
                ):
                    names[process.pid] = str(entry["name"])
                    found |= {each.pid: each for each in [process, *process.children(recursive=True)]}
        for process in found.values():
            with suppress(psutil.Error):
                process.terminate()
        end_processes(list(found.values()), LEFTOVER_GRACE)
        return [f"{names.get(pid, 'process')} {pid}" for pid in sorted(found, key=lambda pid: (pid not in names, pid))]

    def note(self, mark: str, children: Sequence[Child]) -> None:
        """Record what runs, so that the next start can end it should this process be killed."""
        entries = []
        for child in children:
            with suppress(psutil.Error):
                if child.exit_code() is None and child.pid:
                    born = psutil.Process(child.pid).create_time()
                    entries.append({"name": child.spec.name, "pid": child.pid, "created": born})
        record = {
            "pid": os.getpid(),
            "mark": mark,
            "ports": {**self._known_ports(), **self._ports},
            "children": entries,
        }
        aside = self._record.with_suffix(".tmp")
        aside.write_text(json.dumps(record, indent=1))
        aside.replace(self._record)

    def port(self, name: str, preferred: Sequence[int] = ()) -> int:
        """A free loopback port for a process: the one it had last, else one of `preferred`, else any.

        It stays claimed against other metricsweeps of this user, which may be choosing at this moment.
        """
        known = self._known_ports().get(name)
        for port in ([known] if known else []) + list(preferred) + [0] * 50:
            chosen = port or _any_port()
            if is_free("127.0.0.1", chosen) and self._claim(chosen):
                self._ports[name] = chosen
                return chosen
        raise MetricsweepError(f"no free port for {name} on 127.0.0.1")

    def ray_token(self) -> str:
        """The token of this home's Ray, made on first use and readable by its owner only."""
        path = self.folder / "ray.token"
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32))
        path.chmod(0o600)
        return path.read_text().strip()

    def ray_folder(self) -> Path:
        """An empty folder for Ray's sessions, closed to other users; what earlier sessions left is deleted.

        Ray makes its own folders writable to everybody, hence the closed one around them. Its sockets need a short
        path: a deep home has it in the folder for temporary files.
        """
        around = self.folder / "ray"
        if len(os.fsencode(around / "t")) > _SOCKET_PATH - _RAY_BELOW:
            digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:8]
            around = Path("/tmp") / f"metricsweep-{os.getuid()}-{digest}"  # noqa: S108  made below with mode 0700
        _private(around)
        shutil.rmtree(around / "t", ignore_errors=True)
        return around / "t"

    def _known_ports(self) -> dict[str, int]:
        ports = self._read().get("ports")
        return {str(name): int(port) for name, port in ports.items()} if isinstance(ports, dict) else {}

    def _read(self) -> Mapping[str, Any]:
        with suppress(OSError, ValueError):
            record = json.loads(self._record.read_text())
            return record if isinstance(record, dict) else {}
        return {}

    def _claim(self, port: int) -> bool:
        folder = Path(tempfile.gettempdir()) / f"metricsweep-ports-{os.getuid()}"
        _private(folder)
        file = (folder / str(port)).open("w")
        if _flock(file):
            self._held.enter_context(file)
            return True
        file.close()
        return False


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


def _private(folder: Path) -> None:
    """Make a folder that only this user can enter; refuse one that somebody else made at its place."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise MetricsweepError(f"{folder} belongs to somebody else; remove it")
    folder.chmod(0o700)


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
