"""The processes of `serve`: their command lines, environments, logs, start and end."""

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

from orchestrator.host import parent_death
from orchestrator.host.checks import sqlite_url
from orchestrator.host.files import MASK, close_files, own_folder
from orchestrator.host.slot_environment import for_slots
from orchestrator.settings import SECRET_FILES, Settings

LOG_BYTES: Final = 10_000_000
"""The size at which a log is rotated: about a week of a busy service."""
KEPT: Final = 2
"""How many rotated logs are kept: `<name>.log.1`, the newer, and `<name>.log.2`."""


class LogFile:
    """A log to which a process and its children append.

    It is copied and truncated, so that no process has to open it again, and no pipe breaks if the supervisor is killed.
    Lines that are written between the copy and the truncation are lost.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._from = 0

    def begin(self, name: str) -> IO[bytes]:
        """Open the file for a start of the process; the caller closes it. Raises OSError if it cannot be written."""
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
        """Rotate the log if it is too long; errors are ignored."""
        with suppress(OSError):
            if self.path.stat().st_size <= LOG_BYTES:
                return
            with suppress(OSError):  # on a full disk, only the truncation helps
                for number in range(KEPT - 1, 0, -1):
                    if self._aside(number).exists():
                        self._aside(number).replace(self._aside(number + 1))
                shutil.copyfile(self.path, self._aside(1))
                close_files([self._aside(1)])
            os.truncate(self.path, 0)
            self._from = 0

    def contains(self, text: str) -> bool:
        """Whether the process has written this since its start."""
        with suppress(OSError), self.path.open("rb") as log:
            log.seek(self._from)
            return text.encode() in log.read(LOG_BYTES)
        return False

    def last_lines(self, count: int) -> str:
        """The last lines of the log."""
        with suppress(OSError), self.path.open("rb") as log:
            log.seek(max(0, self.path.stat().st_size - 8_000))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])
        return ""

    def _aside(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def _ours(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


MARK: Final = "METRICSWEEP_SERVE"
"""The environment variable that marks every process that a supervisor and its children started."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A process to supervise; `command` is its argument list, the executable first."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)  # in addition to the supervisor's
    host: str = "127.0.0.1"
    port: int | None = None  # it is ready when it listens on this port,
    socket: Path | None = None  # the Unix socket on which it listens; it must not listen on a TCP port
    ready_text: str | None = None  # has written this to its log,
    health: str | None = None  # and answers 200 on this path, e.g. /healthz
    after: frozenset[str] = frozenset()  # it starts when these have been ready
    needs: frozenset[str] = frozenset()  # the same, and it restarts whenever one of these does
    outlived_by: frozenset[str] = frozenset()  # it starts without these, but they end after it
    grace: float = 10.0  # seconds between SIGTERM and SIGKILL
    awaited: bool = True  # the start waits for it; otherwise it begins last, and is restarted for ever

    @property
    def end_later(self) -> frozenset[str]:
        """The processes that end only after this one."""
        return self.after | self.needs | self.outlived_by


class Child:
    """A child process. It ends with the thread that starts it."""

    def __init__(self, spec: ChildSpec, log: Path) -> None:
        self.spec = spec
        self.log = LogFile(log)
        self._process: subprocess.Popen[bytes] | None = None
        self._known: set[psutil.Process] = set()

    @property
    def pid(self) -> int:
        """The process id of the child, 0 before the first start."""
        return self._process.pid if self._process else 0

    def start(self, environment: Mapping[str, str]) -> None:
        """Start the process, or start it again; its output is appended to its log.

        Raises OSError if that is not possible now, such as on a full disk. A process whose log says when it is ready
        needs a log that can be written; any other is started without.
        """
        bound = [sys.executable, "-I", "-S", parent_death.__file__, str(os.getpid())]
        end_processes(self._known, 0.0)  # children of a killed process may still run
        with self._output() as log:
            self._process = subprocess.Popen(  # noqa: S603  the command is our own
                [*bound, *self.spec.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**environment, **self.spec.environment},
                umask=MASK,
                start_new_session=True,  # Ctrl-C reaches only the supervisor, which ends the processes in order
            )

    def _output(self) -> IO[bytes]:
        try:
            return self.log.begin(self.spec.name)
        except OSError:
            if self.spec.ready_text is not None:
                raise
            return Path(os.devnull).open("ab")

    def close(self) -> None:
        """Remove the socket of the process."""
        if self.spec.socket is not None:
            with suppress(OSError):
                self.spec.socket.unlink(missing_ok=True)

    def tcp_ports(self) -> list[int]:
        """The TCP ports on which the process or one of its children listens."""
        tree = self.tree()
        if self.spec.socket is not None:
            self._known.update(tree)
        return sorted({port for process in tree for port in _tcp_ports(process)})

    def exit_code(self) -> int | None:
        """The exit code of the process, negative for a signal; None while it runs or before it was started."""
        return self._process.poll() if self._process else None

    def is_ready(self) -> bool:
        """Whether this process, and no other on the same port, is ready."""
        if self.exit_code() is not None:
            return False
        spec = self.spec
        if spec.ready_text is not None and not self.log.contains(spec.ready_text):
            return False
        if spec.port is not None and spec.port not in self.tcp_ports():  # last, since it reads all sockets of the tree
            return False
        return spec.health is None or _answers(spec, spec.health)

    def tree(self) -> list[psutil.Process]:
        """The process and all its children, itself first; empty if it has ended."""
        if self._process is None or self._process.poll() is not None:
            return []
        with suppress(psutil.Error):
            own = psutil.Process(self.pid)
            return [own, *own.children(recursive=True)]
        return []

    def request_end(self) -> None:
        """Send SIGTERM to the process itself, which ends its children."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def end(self, hurry: Event) -> None:
        """End the process and all its children, with SIGKILL after its grace, or at once if `hurry` is set."""
        tree = set(self.tree())
        self.request_end()
        deadline = time.monotonic() + self.spec.grace
        while self.tree() and time.monotonic() < deadline and not hurry.is_set():
            time.sleep(0.02)
        stubborn = self.tree()  # including children that were started meanwhile
        end_processes(tree.union(stubborn), 0.0 if stubborn or hurry.is_set() else 3.0)
        if self._process is not None:
            self._process.wait()
        self.close()


def end_processes(processes: Collection[psutil.Process], grace: float) -> None:
    """Wait `grace` seconds for processes to end and kill the others; psutil never touches a reused pid."""
    _, alive = psutil.wait_procs(processes, timeout=grace)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=5)


def marked(mark: str) -> list[psutil.Process]:
    """All processes of this user with the mark in their environment, whatever their parent is."""
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
    """The `no_proxy` variables with this machine added, since our processes use no proxy between them."""
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
        return True
    connection = http.client.HTTPConnection(spec.host, spec.port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


PREFIX: Final = "METRICSWEEP_"
_WEBHOOK: Final = ("webhook_url", "webhook_secret", "webhook_secret_file")
"""The settings that only the conductor needs, which calls the webhook."""
_OBJECT_STORE_BYTES: Final = 256 * 1024 * 1024  # Ray's minimum is 75 MiB; recipes and results are under 1 MiB
_GIVING_BACK_SECONDS: Final = 20.0
"""How long slots have to write checkpoints after the conductor's end."""
MLFLOW_SWITCHES: Final[Mapping[str, str]] = {
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS": "false",
    "MLFLOW_ENABLE_AI_GATEWAY": "false",
    "MLFLOW_ENABLE_REMOTE_ASSISTANT": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
}
"""Switches off features of an MLflow server, in addition to the paths that `api.mlflow` does not forward."""


def mlflow_server(home: Path, socket: Path) -> ChildSpec:
    """MLflow's server over SQLite: on a Unix socket and no port, one worker, no job runners, no gateway.

    It requires no password, and every account may write to its socket, so that the socket's folder must be closed. The
    service does not wait for it, since it takes seconds to start, and no training needs it.
    """
    # By default uvicorn imports from the current folder first.
    uvicorn = ["--uds", str(socket), "--log-level", "info", "--no-access-log"]
    uvicorn += ["--app-dir", sysconfig.get_path("purelib")]
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
        ready_text="Uvicorn running",
        awaited=False,
    )


def ray_head(folder: Path, ports: Mapping[str, int], token: str, settings: Settings) -> ChildSpec:
    """A Ray of one machine: on loopback, with a token, without dashboard, autoscaler and log monitor.

    Before it ends, its slots write checkpoints. `ports` has `ray` and, if Ray Client is installed, `ray_client`; Ray
    chooses free ones for the others, so that several heads can share a machine. Workers inherit the environment, which
    contains no secret except Ray's token.
    """
    client = ("--ray-client-server-port", str(ports["ray_client"])) if "ray_client" in ports else ()
    theirs = {name: value for name, value in settings_environment(settings).items() if name in _FOR_WORKERS}
    return ChildSpec(
        name="ray",
        command=(
            *(sys.executable, "-m", "orchestrator.run.ray", "--grace", f"{_GIVING_BACK_SECONDS:g}", "--drain", "0"),
            *("--head", "--block"),
            *("--port", str(ports["ray"]), *client),
            *("--min-worker-port", "0", "--max-worker-port", "0", "--dashboard-agent-listen-port", "0"),
            *("--object-store-memory", str(_OBJECT_STORE_BYTES), "--temp-dir", str(folder)),
            *("--include-dashboard", "false", "--include-log-monitor", "false", "--no-monitor"),
            *("--disable-usage-stats", "--log-color", "false"),
        ),
        environment={
            **ray_environment(token),
            **theirs,
            # On SIGTERM Ray otherwise waits 30 s for its actors, which are detached and do not end by themselves.
            "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
            # The size and number of each log of its session, also of slots; by default they are much larger.
            "RAY_ROTATION_MAX_BYTES": str(LOG_BYTES),
            "RAY_ROTATION_BACKUP_COUNT": str(KEPT),
            **for_slots(os.environ),
        },
        port=ports["ray"],
        ready_text="Ray runtime started",  # its first server listens a second before there is a node
        grace=_GIVING_BACK_SECONDS + 10.0,
    )


def applications() -> list[ChildSpec]:
    """The API and the conductor.

    The conductor waits for the API, so that one process migrates the database. It ends first, since it writes the last
    runs to MLflow through the API.
    """
    return [
        ChildSpec("api", (sys.executable, "-m", "api"), health="/healthz"),
        ChildSpec(
            "conductor",
            (sys.executable, "-m", "orchestrator", "conduct"),
            ready_text="serving the queue",
            after=frozenset({"api"}),
            needs=frozenset({"ray"}),
            outlived_by=frozenset({"mlflow"}),
            grace=20.0,
        ),
    ]


def ray_environment(token: str) -> dict[str, str]:
    """The variables that Ray's processes and its drivers share."""
    return {
        # Otherwise Ray 2.60 replaces 127.0.0.1 by the machine's own address, and its servers listen on every interface.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def has_ray_client() -> bool:
    """Whether Ray would start its client server, which it does if grpc is installed."""
    return importlib.util.find_spec("grpc") is not None


def settings_environment(settings: Settings) -> dict[str, str]:
    """Settings as METRICSWEEP_* variables with absolute paths, without those that only one child gets."""
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
    withheld = {"token", "oidc_client_secret", *_WEBHOOK, *SECRET_FILES}
    values = {name: getattr(absolute, name) for name in Settings.model_fields if name not in withheld}
    return {PREFIX + name.upper(): str(value) for name, value in values.items() if value is not None}


def own_environments(settings: Settings) -> dict[str, dict[str, str]]:
    """Settings that only one child gets, by its name: secrets of the API, and the conductor's webhook and MLflow login.

    Both get the file of the database's password.
    """
    names = {
        "api": ("token", "token_file", "oidc_client_secret", "oidc_client_secret_file"),
        "conductor": (*_WEBHOOK, "mlflow_token_file", "mlflow_password_file"),
    }
    environments = {}
    for child, own in names.items():
        values = {name: getattr(settings, name) for name in (*own, "database_password_file")}
        environments[child] = {
            PREFIX + name.upper(): _plain(value) for name, value in values.items() if value is not None
        }
    if settings.engine == "inline":  # the conductor itself trains
        environments["conductor"] |= for_slots(os.environ)
    return environments


def _plain(value: SecretStr | Path | str) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return str(value.absolute() if isinstance(value, Path) else value)


def inherited_environment(*, own_mlflow: bool = False) -> dict[str, str]:
    """This process's environment without our settings, Ray's address and, with `own_mlflow`, all variables of MLflow.

    A person's variables for the `mlflow` command, such as a server with its password, are not for our own server. No
    process imports modules from its current folder.
    """
    dropped = {PREFIX + name.upper() for name in Settings.model_fields} | {"RAY_ADDRESS"}
    starts = ("MLFLOW_", "_MLFLOW_") if own_mlflow else ()
    kept = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith(starts)}
    folders = kept.get("PYTHONPATH", "").split(os.pathsep)
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, folders))  # an empty entry is the current folder
    return kept | {"PYTHONSAFEPATH": "1"}


_FOR_WORKERS: Final = {PREFIX + name for name in ("HOME", "DATA", "PARTS", "STORAGE_URL", "TRAIN", "TRACES_URL")}
