"""An installation whose parts are real processes, each of which a test may kill, stop or start again."""

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from api.client import Client
from api.local import processes
from api.local.processes import Child, ChildSpec, inherited_environment
from orchestrator.host.identity import ensure_identity
from orchestrator.settings import Settings
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
PATIENCE = 180.0
API, CONDUCT = processes.applications()
LEASE_SECONDS = 3.0
_CLEAR = """
import sys, ray
from ray.util import list_named_actors
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
for one in list_named_actors(all_namespaces=True):
    ray.kill(ray.get_actor(one["name"], namespace=one["namespace"]))
"""


@dataclass
class Kept:
    """A process that is started again when it ends, as `serve` does."""

    child: Child
    environment: Mapping[str, str]
    again: bool
    ended: list[int] = field(default_factory=list)  # exit codes, in order
    due: float = 0.0


class Processes:
    """Named processes below one folder, known by a mark; those that are not ours are never touched."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, secrets.token_hex(16)
        self._kept: dict[str, Kept] = {}

    def start(self, spec: ChildSpec, environment: Mapping[str, str], again: bool = False) -> Child:
        """Start a process; `again`: whenever it ends, too, once `tend` sees it."""
        child = Child(spec, self.folder / "logs" / f"{spec.name}.log")
        told = {**environment, **_everywhere(), processes.MARK: self.mark}
        child.start(told)
        self._kept[spec.name] = Kept(child, told, again)
        return child

    def tend(self) -> None:
        """Start again what has ended and should not have; a second later, so that it does not spin."""
        for kept in self._kept.values():
            code = kept.child.exit_code()
            if not kept.again or code is None:
                continue
            if not kept.due:
                kept.ended.append(code)
                kept.due = time.monotonic() + 0.5
            elif time.monotonic() > kept.due:
                kept.due = 0.0
                kept.child.start(kept.environment)

    def exits(self, name: str) -> list[int]:
        """The exit codes of a process that was started again."""
        return self._kept[name].ended

    def send(self, name: str, number: int) -> int:
        """Send a signal to a process and return its id."""
        pid = self._kept[name].child.pid
        os.kill(pid, number)
        return pid

    def end(self, name: str, *, hard: bool = False) -> None:
        """End a process with all that it started, and do not start it again; `hard`: all at once, by SIGKILL."""
        kept = self._kept.pop(name)
        if hard:
            processes.end_processes(kept.child.tree(), 0.0)
        kept.child.end(threading.Event())

    def end_all(self) -> None:
        """The last started first."""
        for name in reversed(list(self._kept)):
            with suppress(psutil.Error):
                self.end(name)
        processes.end_processes(processes.marked(self.mark), 0.0)

    def log(self, name: str) -> str:
        """All that a process wrote."""
        file = self.folder / "logs" / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def until(self, true: Callable[[], object], what: str, patience: float = PATIENCE) -> float:
        """Wait until something holds, keeping all processes up meanwhile; seconds that it took."""
        began = time.monotonic()
        while not true():
            self.tend()
            gone = [name for name, kept in self._kept.items() if not kept.again and kept.child.exit_code() is not None]
            if gone or time.monotonic() - began > patience:
                ends = "\n".join(f"--- {name}\n{self.log(name)[-3000:]}" for name in self._kept)
                message = f"{gone} ended" if gone else f"waited {patience:g} s in vain"
                raise AssertionError(f"{message}: {what}\n{ends}")
            time.sleep(0.25)  # each check costs CPU time that other tests need
        return time.monotonic() - began


class RayCluster(Processes):
    """A Ray head, and further nodes of this machine."""

    def __init__(self, folder: Path, *, cpus: int, loopback: bool = True) -> None:
        super().__init__(folder)
        self._token, self._cpus, self._loopback = secrets.token_hex(32), cpus, loopback
        self.port = free_port()
        names = ("ray", "ray_client") if processes.has_ray_client() else ("ray",)
        self._ports = {name: self.port if name == "ray" else free_port() for name in names}
        self.address = f"{'127.0.0.1' if loopback else node_address()}:{self.port}"

    def up(self) -> None:
        """Start the head, at the same port as before."""
        settings = Settings(home=self.folder / "home")
        spec = processes.ray_head(self.folder / "ray", self._ports, self._token, settings)
        command = (*spec.command, "--num-cpus", str(self._cpus))
        environment = {**spec.environment, **self.environment}
        head = self.start(replace(spec, command=command, environment=environment), inherited_environment())
        self.until(head.is_ready, "Ray is up")

    def join(self, name: str, cpus: int) -> Child:
        """Start another node."""
        command = (
            *(sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--address", self.address),
            *("--num-cpus", str(cpus), "--object-store-memory", str(128 * 2**20), "--disable-usage-stats"),
            *("--min-worker-port", "0", "--max-worker-port", "0", "--log-color", "false"),
            *("--include-log-monitor", "false"),
        )
        spec = ChildSpec(name, command, environment=self.environment, ready_text="Ray runtime started")
        node = self.start(spec, inherited_environment())
        self.until(node.is_ready, f"node {name} is up")
        return node

    def clear(self) -> None:
        """End every detached actor: an installation that is gone for good must not keep the room of the next one."""
        if not self._kept:
            return  # they ended with it
        told = {**inherited_environment(), **self.environment, **_everywhere()}
        command = [sys.executable, "-c", _CLEAR, self.address]
        with suppress(subprocess.TimeoutExpired):  # the head may be gone, and they with it
            subprocess.run(command, env=told, capture_output=True, timeout=60, check=False)

    @property
    def environment(self) -> dict[str, str]:
        """What its nodes and its drivers share."""
        told = processes.ray_environment(self._token)
        return told if self._loopback else {**told, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}


class Installation(Processes):
    """Conductors and an API over one home folder; the training function is `tests.faults.trainings:counted`."""

    def __init__(self, folder: Path, ray: RayCluster | None, **changed: object) -> None:
        super().__init__(folder)
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.ray = ray
        told: dict[str, object] = {
            "home": self.home,
            "lease_seconds": LEASE_SECONDS,
            "train": "tests.faults.trainings:counted",
            "engine": "ray_tune" if ray else "inline",
            "ray_address": ray.address if ray else "",
            "slots": 2,
            "port": free_port(),
        }
        self.settings = Settings(**{**told, **changed})  # type: ignore[arg-type]
        self.client = Client(f"http://127.0.0.1:{self.settings.port}", ensure_identity(self.home).secret)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every part."""
        for_ray = self.ray.environment if self.ray else {}
        return {**inherited_environment(), **processes.settings_environment(self.settings), **for_ray}

    def start_api(self) -> None:
        """Start the API, and wait until it answers."""
        port = self.settings.port
        api = self.start(replace(API, port=port), self.environment, again=True)
        self.until(api.is_ready, "the API answers")

    def start_conductor(self, name: str = "conductor", module: str = "orchestrator", **more: str) -> None:
        """Start a conductor; `more` are variables of its environment."""
        command = (sys.executable, "-m", module, "conduct")
        self.start(replace(CONDUCT, name=name, command=command, environment=more), self.environment, again=True)

    def end_all(self) -> None:
        """End everything, its slots included."""
        super().end_all()
        if self.ray is not None:
            self.ray.clear()

    def start_mlflow(self, socket: Path) -> None:
        """Start an MLflow server and wait until it answers."""
        server = self.start(processes.mlflow_server(self.home, socket), self.environment)
        self.until(server.is_ready, "MLflow answers")

    def kill(self, name: str) -> int:
        """SIGKILL to one process, not to its children; it is started again by `tend`."""
        return self.send(name, signal.SIGKILL)


def _everywhere() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {
        **processes.loopback_past_proxies(os.environ),
        "PYTHONPATH": path,
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
    }


def node_address() -> str:
    """This machine's address that is not loopback: by it Ray's nodes join one another."""
    from ray._private.services import get_node_ip_address

    found: str = get_node_ip_address()
    return found
