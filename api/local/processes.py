"""The processes of `serve`: their command lines, logs, start and end."""

import http.client
import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import IO, Final

import psutil
from pydantic import SecretStr

import api.local.parent_death
from api.local.doorbell import Doorbell
from orchestrator.host.checks import sqlite_url
from orchestrator.host.files import MASK, close_files, own_folder
from orchestrator.host.slot_environment import for_slots
from orchestrator.settings import SECRET_FILES, Settings

LOG_BYTES: Final = 10_000_000
"""About a week of a busy service; what is longer is put aside while the process goes on writing."""
KEPT: Final = 2
"""How many logs that were put aside are kept, as `<name>.log.1`, the younger, and `<name>.log.2`."""


class LogFile:
    """A file that a process, and all that it starts, hold open for appending.

    It is cut in place: nobody has to open it anew, and no pipe breaks where the supervisor is killed. What is written
    between the copy and the cut, some lines in weeks, is lost.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._from = 0

    def begin(self, name: str) -> IO[bytes]:
        """The file opened for a new start of the process; the caller closes it. Raises OSError if it takes no line."""
        own_folder(self.path.parent)
        self.cut()
        log = open(self.path, "ab", buffering=0, opener=_ours)  # noqa: SIM115  the caller closes it
        try:
            log.write(f"--- {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {name} starts\n".encode())
            self._from = os.fstat(log.fileno()).st_size
        except OSError as error:
            log.close()
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        return log

    def cut(self) -> None:
        """Put aside what is in it where that is too long; on a disk that takes no change it stays as it is."""
        with suppress(OSError):
            if self.path.stat().st_size <= LOG_BYTES:
                return
            with suppress(OSError):  # a full disk: then only the cut helps
                for number in range(KEPT - 1, 0, -1):
                    if self._aside(number).exists():
                        self._aside(number).replace(self._aside(number + 1))
                shutil.copyfile(self.path, self._aside(1))
                close_files([self._aside(1)])
            os.truncate(self.path, 0)
            self._from = 0

    def has_said(self, text: str) -> bool:
        """Whether the process has written this since it started, as far as the log can be read."""
        with suppress(OSError), self.path.open("rb") as log:
            log.seek(self._from)
            return text.encode() in log.read(LOG_BYTES)
        return False

    def last_lines(self, count: int) -> str:
        """The end of it."""
        with suppress(OSError), self.path.open("rb") as log:
            log.seek(max(0, self.path.stat().st_size - 8_000))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])
        return ""

    def _aside(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def _ours(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


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


PREFIX: Final = "METRICSWEEP_"
WEBHOOK: Final = ("webhook_url", "webhook_secret", "webhook_secret_file")
"""The settings that only who tells the webhook needs."""
OBJECT_STORE_BYTES: Final = 256 * 1024 * 1024  # Ray's least is 75 MiB; recipes and results stay under 1 MiB
GIVING_BACK_SECONDS: Final = 20.0
"""How long slots have, once the conductor has ended, to write a checkpoint of what they train."""
MLFLOW_SWITCHES: Final[Mapping[str, str]] = {
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS": "false",
    "MLFLOW_ENABLE_AI_GATEWAY": "false",
    "MLFLOW_ENABLE_REMOTE_ASSISTANT": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
}
"""What of an MLflow server is switched off, beyond what `api.mlflow` lets nobody reach."""

# Ray 2.60 takes 127.0.0.1 as its address only where its clusters are switched off, as they are on macOS and Windows:
# otherwise it replaces it by the machine's own and its servers listen on every interface. Drivers need the same.
LOOPBACK_RAY: Final[Mapping[str, str]] = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def mlflow_server(home: Path, socket: Path) -> ChildSpec:
    """MLflow's server over SQLite: on a Unix socket and no port, one worker, no job runners, no gateway.

    It asks nobody for a password, and every account may write to its socket: the folder of the socket must be closed.
    It takes seconds and hundreds of MB to start, and no training needs it: it starts with the first sweep or when
    somebody opens it.
    """
    # By default uvicorn looks for modules in the current folder first.
    uvicorn = (
        "--uds",
        str(socket),
        "--log-level",
        "info",
        "--no-access-log",
        "--app-dir",
        sysconfig.get_path("purelib"),
    )
    return ChildSpec(
        name="mlflow",
        command=(
            *(sys.executable, "-m", "mlflow", "server"),
            *("--workers", "1"),
            *("--backend-store-uri", sqlite_url(home / "mlflow.db")),
            *("--artifacts-destination", (home / "mlartifacts").absolute().as_uri()),
            *("--uvicorn-opts", shlex.join(uvicorn)),
        ),
        environment=MLFLOW_SWITCHES,
        socket=socket,
        says="Uvicorn running",
        awaited=False,
        on_demand=True,
    )


def ray_head(folder: Path, ports: Mapping[str, int], token: str, settings: Settings) -> ChildSpec:
    """A Ray of one machine: on loopback, with a token, without dashboard, autoscaler and log monitor. Before it ends
    its slots give back what they train.

    `ports` has `ray` and, where Ray Client is installed, `ray_client`; all others Ray takes free ones for, so that
    several heads share a machine. Workers inherit the environment: the data root, and nothing secret but Ray's token.
    """
    client = ("--ray-client-server-port", str(ports["ray_client"])) if "ray_client" in ports else ()
    theirs = {name: value for name, value in settings_environment(settings).items() if name in _FOR_WORKERS}
    return ChildSpec(
        name="ray",
        command=(
            *(sys.executable, "-m", "orchestrator.run.ray", "--grace", f"{GIVING_BACK_SECONDS:g}", "--heard", "0"),
            *("--head", "--block"),
            *("--port", str(ports["ray"]), *client),
            *("--min-worker-port", "0", "--max-worker-port", "0", "--dashboard-agent-listen-port", "0"),
            *("--object-store-memory", str(OBJECT_STORE_BYTES), "--temp-dir", str(folder)),
            *("--include-dashboard", "false", "--include-log-monitor", "false", "--no-monitor"),
            *("--disable-usage-stats", "--log-color", "false"),
        ),
        environment={
            **ray_environment(token),
            **theirs,
            # On SIGTERM Ray otherwise waits 30 s for its actors, which are detached and never end by themselves.
            "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
            # Each file of its session's logs, those of the slots too: by default 512 MiB, five times, or without end.
            "RAY_ROTATION_MAX_BYTES": str(LOG_BYTES),
            "RAY_ROTATION_BACKUP_COUNT": str(KEPT),
            **for_slots(os.environ),
        },
        port=ports["ray"],
        says="Ray runtime started",  # its first server listens a second before there is a node
        grace=GIVING_BACK_SECONDS + 10.0,
    )


def applications() -> list[ChildSpec]:
    """Our own two. The conductor waits for the API, so that one process migrates the database, and loads meanwhile.

    It ends first, since it writes what MLflow still lacks through the API.
    """
    conduct = (sys.executable, "-m", "orchestrator", "conduct", "--when-told")
    return [
        ChildSpec("api", (sys.executable, "-m", "api"), health="/healthz"),
        ChildSpec(
            "conductor",
            conduct,
            says="serving the queue",
            after=_API,
            needs=_RAY,
            outlived_by=_MLFLOW,
            grace=20.0,
            loads_first=True,
        ),
    ]


def ray_environment(token: str) -> dict[str, str]:
    """What Ray's processes and its drivers share."""
    return {
        **LOOPBACK_RAY,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def has_ray_client() -> bool:
    """Whether Ray would start its client server, which it does wherever grpc happens to be installed."""
    return importlib.util.find_spec("grpc") is not None


def settings_environment(settings: Settings) -> dict[str, str]:
    """Settings as METRICSWEEP_* variables with absolute paths, without what only one child gets."""
    absolute = settings.model_copy(
        update={
            "home": settings.resolved_home,
            "database_url": settings.database,
            "storage_url": str(settings.storage),
            "data": settings.data_root.absolute(),
            "parts": settings.parts and settings.parts.absolute(),
            "mlflow_socket": settings.mlflow_socket and settings.mlflow_socket.absolute(),
        }
    )
    withheld = {"token", "oidc_client_secret", *WEBHOOK, *SECRET_FILES}
    values = {name: getattr(absolute, name) for name in Settings.model_fields if name not in withheld}
    return {PREFIX + name.upper(): str(value) for name, value in values.items() if value is not None}


def own_environments(settings: Settings) -> dict[str, dict[str, str]]:
    """What only one child gets, by its name: the API the token and what it shows the provider, the conductor the
    webhook and MLflow's login.

    Both get the file of the database's password.
    """
    files = {name: file.absolute() for name in SECRET_FILES if (file := getattr(settings, name))}
    both = {"database_password_file": files.get("database_password_file")}
    own: dict[str, dict[str, object]] = {
        "api": {name: getattr(settings, name) for name in ("token", "oidc_client_secret")} | both
    }
    own["api"] |= {name: files.get(name) for name in ("token_file", "oidc_client_secret_file")}
    of_conductor = ("webhook_secret_file", "mlflow_token_file", "mlflow_password_file")
    own["conductor"] = {name: getattr(settings, name) for name in WEBHOOK} | both
    own["conductor"] |= {name: files.get(name) for name in of_conductor}
    environments = {
        child: {PREFIX + name.upper(): _plain(value) for name, value in values.items() if value is not None}
        for child, values in own.items()
    }
    if settings.engine == "inline":  # the conductor itself trains
        environments["conductor"] |= for_slots(os.environ)
    return environments


def _plain(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def inherited_environment(*, own_mlflow: bool = False) -> dict[str, str]:
    """This process's environment without our settings, another Ray's address and, for our own MLflow, any word to one.
    No process looks for modules in its current folder.

    What a person set for the `mlflow` command (a server with its password, plugins, remote assistants) is not for ours.
    """
    dropped = {PREFIX + name.upper() for name in Settings.model_fields} | {"RAY_ADDRESS"}
    words = ("MLFLOW_", "_MLFLOW_") if own_mlflow else ()
    kept = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith(words)}
    folders = kept.get("PYTHONPATH", "").split(os.pathsep)
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, folders))  # an empty one is the current folder
    return kept | {"PYTHONSAFEPATH": "1"}


_API: Final = frozenset({"api"})
_RAY: Final = frozenset({"ray"})
_MLFLOW: Final = frozenset({"mlflow"})
_FOR_WORKERS: Final = {PREFIX + name for name in ("HOME", "DATA", "PARTS", "STORAGE_URL", "TRAIN", "TRACES_URL")}
