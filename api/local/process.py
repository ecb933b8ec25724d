"""One supervised process: what it is, how it starts, when it is ready, and how it ends with all that it started."""

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import IO, Final

import psutil

import api.local.parent_death
from api.local.doorbell import Doorbell
from api.local.log_file import LogFile
from orchestrator.host.files import MASK

MARK: Final = "METRICSWEEP_SERVE"
"""Environment variable by which every process that one supervisor started, however deep, is known as its own."""

_SETTLED: Final = 1.0  # seconds that a process of which nothing is asked must live to count as ready


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A process to supervise; `command` is its argument list, the executable first."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)  # on top of what the supervisor gives all
    host: str = "127.0.0.1"
    port: int | None = None  # ready when it listens here
    socket: Path | None = None  # the Unix socket on which it listens; it must listen on no TCP port
    says: str | None = None  # has written this to its log, and
    health: str | None = None  # answers 200 on this path, e.g. /healthz; with neither: when it has lived for a second
    after: frozenset[str] = frozenset()  # starts once these have been ready
    needs: frozenset[str] = frozenset()  # the same, and starts again whenever one of these does
    outlived_by: frozenset[str] = frozenset()  # it starts without these, and at the end they are there until it is gone
    grace: float = 10.0  # seconds between SIGTERM and SIGKILL
    awaited: bool = True  # without it there is no service; else it begins last, may come later, and is tried for ever
    on_demand: bool = False  # it starts once somebody rings the doorbell next to its socket
    loads_first: bool = False  # is started at once, and goes on from what it has loaded at a line on its input

    @property
    def end_later(self) -> frozenset[str]:
        """What ends only once this one has."""
        return self.after | self.needs | self.outlived_by


class Child:
    """A process of ours. Start it from a thread that lives as long as it should: it ends with that thread."""

    def __init__(self, spec: ChildSpec, log: Path) -> None:
        self.spec = spec
        self.log = LogFile(log)
        self._process: subprocess.Popen[bytes] | None = None
        self._bell = Doorbell(spec.socket) if spec.on_demand and spec.socket is not None else None
        self._watches_bell = False
        self._known: set[psutil.Process] = set()
        self._born = 0.0

    @property
    def pid(self) -> int:
        """Its process id, 0 before the first start."""
        return self._process.pid if self._process else 0

    def start(self, environment: Mapping[str, str]) -> None:
        """Start it, or start it again; its output is appended to its log.

        Raises OSError where that cannot be done now, such as on a full disk. A process that is ready by what its log
        says needs a log that takes lines; any other is started without.
        """
        bound = [sys.executable, "-I", "-S", str(api.local.parent_death.__file__), str(os.getpid())]
        self._close_input()
        end_processes(self._known, 0.0)  # children of a process that was killed may live on
        self._watch_bell()
        with self._output() as log:
            self._process = subprocess.Popen(  # noqa: S603  the command is our own
                [*bound, *self.spec.command],
                stdin=subprocess.PIPE if self.spec.loads_first else subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**environment, **self.spec.environment},
                umask=MASK,
                start_new_session=True,  # Ctrl-C in the terminal reaches the supervisor alone, which ends them in order
            )
        self._born = time.monotonic()

    def _output(self) -> IO[bytes]:
        try:
            return self.log.begin(self.spec.name)
        except OSError:
            if self.spec.says is not None:
                raise
            return Path(os.devnull).open("ab")

    def is_wanted(self) -> bool:
        """Whether it is to start: at once, or because somebody has rung its doorbell."""
        if self._bell is None:
            return True
        if not self._watches_bell:
            self._watch_bell()
        return self._bell.has_rung()

    def _watch_bell(self) -> None:
        if self._bell is not None:
            self._bell.listen()  # what an earlier supervisor left there does not count
            self._watches_bell = True

    def close(self) -> None:
        """Remove its socket and its doorbell: nobody can ask for it any more."""
        if self._bell is not None:
            self._bell.remove()
        if self.spec.socket is not None:
            with suppress(OSError):
                self.spec.socket.unlink(missing_ok=True)

    def tcp_ports(self) -> list[int]:
        """The TCP ports on which it, or a process that it started, listens."""
        tree = self.tree()
        if self.spec.socket is not None:
            self._known.update(tree)
        return sorted({port for process in tree for port in _tcp_ports(process)})

    def go_on(self) -> None:
        """Tell one that loads first that all it needs is there; the others wait for no word."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(b"go on\n")
                self._process.stdin.flush()
        self._close_input()
        self._born = time.monotonic()

    def _close_input(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # of what it did not read
                self._process.stdin.close()

    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs or before it was started."""
        return self._process.poll() if self._process else None

    def is_ready(self) -> bool:
        """Whether it, and not a stranger on the same port, answers."""
        if self.exit_code() is not None:
            return False
        spec = self.spec
        if spec.port is None and spec.says is None and time.monotonic() - self._born < _SETTLED:
            return False
        if spec.says is not None and not self.log.has_said(spec.says):
            return False
        if spec.port is not None and spec.port not in self.tcp_ports():
            return False  # asked last: it reads the sockets of every process of the tree
        return spec.health is None or _answers(spec, spec.health)

    def tree(self) -> list[psutil.Process]:
        """The process and all that it started, itself first; empty when it is gone."""
        if self._process is None or self._process.poll() is not None:
            return []
        with suppress(psutil.Error):
            own = psutil.Process(self.pid)
            return [own, *own.children(recursive=True)]
        return []

    def ask_to_end(self) -> None:
        """Send SIGTERM to the process itself, which ends what it started."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def end(self, hurry: Event) -> None:
        """End it and all that it started; SIGKILL for what outlives its grace, at once when `hurry` is set."""
        tree = set(self.tree())
        self.ask_to_end()
        deadline = time.monotonic() + self.spec.grace
        while self.tree() and time.monotonic() < deadline and not hurry.is_set():
            time.sleep(0.02)
        stubborn = self.tree()  # with what was started meanwhile
        end_processes(tree.union(stubborn), 0.0 if stubborn or hurry.is_set() else 3.0)
        if self._process is not None:
            self._process.wait()
            self._close_input()
        self.close()


def end_processes(processes: Collection[psutil.Process], grace: float) -> None:
    """Wait `grace` seconds for processes to end and kill the rest; psutil never touches a reused pid."""
    _, alive = psutil.wait_procs(processes, timeout=grace)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=5)


def marked(mark: str) -> list[psutil.Process]:
    """Every process of this user whose environment holds the mark, wherever it was re-parented to."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                found.append(process)
    return found


def describe_exit(code: int) -> str:
    """An exit code for people: `exit code 1`, `SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def loopback_past_proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """The `no_proxy` variables with this machine added: our processes talk to one another directly."""
    names: Iterable[str] = ("no_proxy", "NO_PROXY")
    already = next((environment[name] for name in names if environment.get(name)), "")
    return dict.fromkeys(names, ",".join(filter(None, [already, "127.0.0.1", "localhost", "::1"])))


def _tcp_ports(process: psutil.Process) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        listening = process.net_connections("tcp")
        return [found.laddr.port for found in listening if found.status == psutil.CONN_LISTEN]
    return []


def _answers(spec: ChildSpec, path: str) -> bool:
    if spec.port is None:
        return True  # nobody knows where to ask
    connection = http.client.HTTPConnection(spec.host, spec.port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
