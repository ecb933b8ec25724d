"""The whole service on this machine: checks the settings, and starts, restarts and ends its processes."""

import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from types import FrameType, TracebackType
from typing import Any, Final, Literal, Self

from api.local.home import Home, holder, is_free, unwritable
from api.local.processes import (
    MARK,
    Child,
    ChildSpec,
    applications,
    describe_exit,
    end_processes,
    has_ray_client,
    inherited_environment,
    loopback_past_proxies,
    marked,
    mlflow_server,
    own_environments,
    ray_environment,
    ray_head,
    settings_environment,
)
from orchestrator.host.checks import is_loopback, missing, refuse_hidden, require
from orchestrator.host.disk import disk_of
from orchestrator.host.files import own_secret
from orchestrator.host.logs import printable
from orchestrator.service.accounts import refuse_newer_database
from orchestrator.settings import ENGINES, Secrets, Settings
from orchestrator.views.errors import MetricsweepError, UnavailableError
from workers import catalog as catalogs

Report = Callable[[str, str], None]
"""Called with a process's name and its state in words, from the supervisor's thread."""

FIRST_DELAY: Final = 0.5
_LONGEST_DELAY: Final = 30.0
_LONG_LIFE: Final = 60.0  # seconds after which an exit counts as the first again
_HELD_SECONDS: Final = 5.0
"""How often a start that the system refused is tried again, such as on a full disk."""
READY_SECONDS: Final = 180.0
"""How long a restarted process may take to be ready; its log may have lost the line that says so."""
_SEARCH_SECONDS: Final = 1.0  # between two searches for open TCP ports
_SHOWN_LINES: Final = 8  # of the log of a process that cannot be started
_FIRST_TRIES: Final = 3  # exits of a process that was never ready, until the start is given up


_START_SECONDS: Final = 180.0
"""How long all processes together may take to become ready."""
_NEXT_PORTS: Final = 20
"""How many ports after the usual one are tried before any other."""
_NOTE_SECONDS: Final = 5.0
"""How often writing the record of processes is tried again."""
_TICK: Final = 0.1
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class _Watched:
    """The state of a child; `at` is when it was started, or when it may be started again."""

    child: Child
    state: Literal["waiting", "starting", "ready", "ending", "refused"] = "waiting"
    at: float = 0.0
    delay: float = FIRST_DELAY
    was_ready: bool = False
    exits: int = 0
    wait_reason: str = ""
    """Why the system refused its last start."""
    searched: float = 0.0
    """The time of the last search for open TCP ports."""


class Supervision:
    """Starts, checks and restarts child processes, at each call of `tick`."""

    def __init__(
        self, children: Sequence[Child], environment: Mapping[str, str], report: Report, started: Callable[[], None]
    ) -> None:
        self._watched = {child.spec.name: _Watched(child) for child in children}
        self._environment = environment
        self._report = report
        self._started = started

    def missing(self) -> list[str]:
        """The names of awaited processes that have never been ready."""
        return [name for name, each in self._watched.items() if each.child.spec.awaited and not each.was_ready]

    def tick(self) -> None:
        """Check every process once; raises UnavailableError if one cannot be started for the first time."""
        for name, each in self._watched.items():
            try:
                self._check(name, each)
            except OSError as error:  # may be temporary, such as a full disk; the other processes continue
                self._hold(name, each, error)

    def _check(self, name: str, each: _Watched) -> None:
        if each.state == "refused":
            return
        code = each.child.exit_code()
        each.child.log.cut()
        if each.state == "waiting":
            if time.monotonic() >= each.at and self._may_start(each.child.spec):
                self._start(name, each)
        elif code is not None:
            self._note_exit(name, each, code)
        elif each.state == "starting":
            self._check_start(name, each, ready=each.child.is_ready())
        elif each.state == "ending" and time.monotonic() - each.at > each.child.spec.grace:
            _end_at_once(each.child)

    def _check_start(self, name: str, each: _Watched, *, ready: bool) -> None:
        if self._has_open_port(name, each, ready=ready):
            return
        if ready:
            each.state, each.was_ready = "ready", True
            self._report(name, "ready")
        elif each.was_ready and time.monotonic() - each.at > READY_SECONDS:
            self._report(name, f"not ready after {READY_SECONDS:g} s; starting again")
            each.child.request_end()
            each.state, each.at = "ending", time.monotonic()

    def _has_open_port(self, name: str, each: _Watched, *, ready: bool) -> bool:
        """Whether a process with a Unix socket listens on a TCP port; then it is ended, and not started again.

        Checked every second while it starts, and once more when it is ready.
        """
        if each.child.spec.socket is None or (time.monotonic() < each.searched + _SEARCH_SECONDS and not ready):
            return False
        each.searched = time.monotonic()
        ports = each.child.tcp_ports()
        if ports:
            each.state = "refused"
            _end_at_once(each.child)
            self._report(
                name,
                f"listens on TCP port {', '.join(map(str, ports))}, which is open to every account of this machine; "
                f"expected the Unix socket {each.child.spec.socket} alone; ended, and not started again",
            )
        return bool(ports)

    def _hold(self, name: str, each: _Watched, error: OSError) -> None:
        """Try a start that the system refused again later, and report the reason once.

        Raises UnavailableError if the process was never ready, after a few tries.
        """
        if each.state != "waiting":
            return  # checked again at the next tick
        each.exits += 1
        each.at = time.monotonic() + (_HELD_SECONDS if each.was_ready else FIRST_DELAY)
        reason = error.strerror or str(error)
        if each.child.spec.awaited and not each.was_ready and each.exits >= _FIRST_TRIES:
            raise UnavailableError(f"{name} cannot be started: {error}") from error
        if reason != each.wait_reason:
            each.wait_reason = reason
            self._report(name, f"cannot be started: {reason}; it is tried again until it can be")

    def end_all(self, hurry: Event) -> None:
        """End every process after those that need it; independent ones end at the same time."""
        left = {name for name, each in self._watched.items() if each.child.pid and each.child.exit_code() is None}
        with ThreadPoolExecutor(max(1, len(self._watched))) as threads:
            while left:
                later = frozenset().union(*(self._watched[name].child.spec.end_later for name in left))
                free = [name for name in self._watched if name in left - later]
                list(threads.map(lambda name: self._end(name, hurry), free))  # raises an error of `_end`
                left -= set(free)
        for each in self._watched.values():
            each.child.close()

    def _end(self, name: str, hurry: Event) -> None:
        self._report(name, "stopping")
        self._watched[name].child.end(hurry)
        self._report(name, "stopped")

    def _may_start(self, spec: ChildSpec) -> bool:
        after = [self._watched[name] for name in spec.after if name in self._watched]
        needs = [self._watched[name] for name in spec.needs if name in self._watched]
        if not (all(other.was_ready for other in after) and all(other.state == "ready" for other in needs)):
            return False
        # Processes that are not awaited leave the CPUs to the others.
        return spec.awaited or not self.missing()

    def _start(self, name: str, each: _Watched) -> None:
        each.child.start(self._environment)
        each.state, each.at, each.wait_reason = "starting", time.monotonic(), ""
        self._report(name, "starting")
        self._started()

    def _note_exit(self, name: str, each: _Watched, code: int) -> None:
        requested, lived = each.state == "ending", time.monotonic() - each.at
        each.exits += 1
        each.state = "waiting"
        if requested:
            each.at = 0.0
            return
        message = f"ended with {describe_exit(code)}; its log is {each.child.log.path}"
        if each.child.spec.awaited and not each.was_ready and each.exits >= _FIRST_TRIES:
            raise UnavailableError(f"{name} {message}\n{printable(each.child.log.last_lines(_SHOWN_LINES))}".rstrip())
        each.delay = FIRST_DELAY if lived > _LONG_LIFE or each.exits == 1 else min(2 * each.delay, _LONGEST_DELAY)
        each.at = time.monotonic() + each.delay
        self._report(name, f"{message}; starting again in {each.delay:g} s")
        for other_name, other in self._watched.items():
            if name in other.child.spec.needs and other.state in {"starting", "ready"}:
                self._report(other_name, f"starts again with {name}")
                other.child.request_end()
                other.state, other.at = "ending", time.monotonic()


class Stack:
    """The processes of one home folder; use it in a `with` block, which ends them in order.

    `report` is called with a process's name and state, from another thread. `children` replaces the API and the
    conductor; a child with the name `api` gets the API's port.
    """

    def __init__(
        self, settings: Settings, report: Report = lambda name, state: None, children: Sequence[ChildSpec] | None = None
    ) -> None:
        self._settings = settings
        self._listener = report
        self._applications = applications() if children is None else list(children)
        self._home: Home | None = None
        self._addresses: dict[str, str] = {}
        self._before: dict[int, Any] = {}
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._is_up, self._done = threading.Event(), threading.Event()
        self._stopping, self._hurry = threading.Event(), threading.Event()
        self._ending = False
        self._note_again = float("inf")

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handled = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]  # as nohup does
            self._before = {number: signal.signal(number, self._on_signal) for number in handled}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def addresses(self) -> Mapping[str, str]:
        """`api` and `mlflow` as URLs and, if used, `ray` as host:port; empty before the start."""
        return dict(self._addresses)

    def start(self) -> None:
        """Start all processes and wait until the necessary ones are ready; MLflow may start later.

        Raises ConflictError if this home is served already, UnavailableError if a process does not start, and
        MetricsweepError if the settings are wrong.
        """
        _refuse_wrong_start(self._settings)
        self._home = Home(self._settings.resolved_home)
        try:
            self._home.lock()
            if closed := self._home.close_to_others():
                self._report("serve", closed)
            for left in self._home.end_leftovers():
                self._report("serve", f"ended {left}, left by an earlier run")
            mark = secrets.token_hex(16)
            specs = self._specs(self._home)
            # One thread starts all processes and lives until the last has ended, since they get a signal at its end.
            self._thread = threading.Thread(target=self._run, args=(specs, mark), name="supervisor", daemon=True)
            self._thread.start()
            while not self._is_up.is_set():
                self._raise_failure()
                time.sleep(_TICK)
        except BaseException:
            self.stop()
            raise

    def wait(self) -> None:
        """Block until Ctrl-C, SIGTERM or SIGHUP."""
        with suppress(KeyboardInterrupt, Ended):
            # Not Thread.join, which on Python 3.11 and 3.12 takes the thread for ended after a signal's exception, and
            # not Event.wait, which may keep the event's lock after such an exception.
            while self._thread is not None and not self._done.is_set():
                time.sleep(_TICK)
        self._raise_failure()

    def stop(self) -> None:
        """End every process: conductor, API, Ray, MLflow. A second signal kills the remaining ones."""
        self._ending = True  # from now on, signals raise nothing
        self._stopping.set()
        if self._thread is not None and self._thread.ident is not None:
            # In steps, since a signal that the kernel gives to another thread is handled when this one wakes.
            while not self._done.wait(_TICK):
                pass
            self._thread.join()
        if self._home is not None:
            self._home.close()

    def _report(self, name: str, state: str) -> None:
        with suppress(Exception):  # supervision continues after a closed terminal
            self._listener(name, state)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._ending:
            self._hurry.set()
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise Ended(128 + number)

    def _raise_failure(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _run(self, specs: Sequence[ChildSpec], mark: str) -> None:
        assert self._home is not None
        home, logs = self._home, self._home.folder / "logs"
        children = [Child(spec, logs / f"{spec.name}.log") for spec in specs]
        environment = inherited_environment(own_mlflow=not self._settings.mlflow_url)
        environment |= {**loopback_past_proxies(environment), MARK: mark, "PYTHONUNBUFFERED": "1"}

        def note() -> None:
            self._note(home, mark, children)

        supervision = Supervision(children, environment, self._report, note)
        try:
            self._supervise(supervision, note)
        except BaseException as error:
            self._error = error
        finally:
            try:
                supervision.end_all(self._hurry)
                end_processes(marked(mark), 1.0)
                home.url = ""
                note()
            finally:
                self._done.set()

    def _note(self, home: Home, mark: str, children: Sequence[Child]) -> None:
        """Record the running processes, on a full disk later. The next start also finds them by their mark."""
        try:
            home.note(mark, children)
            self._note_again = float("inf")
        except OSError as error:
            if self._note_again == float("inf"):
                self._report("serve", f"cannot note what runs: {error}; it is tried again until it can")
            self._note_again = time.monotonic() + _NOTE_SECONDS

    def _supervise(self, supervision: Supervision, note: Callable[[], None]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self._stopping.wait(_TICK):
            supervision.tick()
            if time.monotonic() > self._note_again:
                note()
            if not (missing := supervision.missing()):
                self._is_up.set()
            elif not self._is_up.is_set() and time.monotonic() > deadline:
                raise UnavailableError(f"not ready after {_START_SECONDS:g} s: {', '.join(missing)}")

    def _specs(self, home: Home) -> list[ChildSpec]:
        """All processes in the order of their start; chooses ports and addresses."""
        settings, specs, for_ray = self._settings, [], {}
        mlflow, ray = settings.mlflow_url, settings.ray_address
        socket = None if mlflow else settings.mlflow_socket
        if not mlflow and socket is None:
            socket = home.mlflow_socket()
            specs.append(mlflow_server(home.folder, socket))
        if not ray and settings.engine == "ray_tune":
            names = ("ray", "ray_client") if has_ray_client() else ("ray",)
            ports = {name: home.port(name) for name in names}
            ray, token = f"127.0.0.1:{ports['ray']}", own_secret(home.folder / "ray.token")
            for_ray = ray_environment(token)
            specs.append(ray_head(home.ray_folder(), ports, token, settings))
        port = self._api_port(home)
        # The address by which this machine reaches the listener.
        host = {"0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}.get(settings.host, settings.host)  # noqa: S104
        api = home.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        # The API answers to the name in the settings, which is also the one in links.
        url, mlflow = settings.url or api, mlflow or f"{api}/mlflow"
        of_mlflow = {"mlflow_url": mlflow, "mlflow_socket": socket}
        resolved = settings.model_copy(update=of_mlflow | {"port": port, "ray_address": ray, "url": url})
        everyone = {**settings_environment(resolved), **for_ray}
        own = own_environments(settings)
        for spec in self._applications:
            child = replace(spec, environment={**everyone, **own.get(spec.name, {}), **spec.environment})
            if spec.name == "api":
                child = replace(child, host=host, port=port)
            specs.append(child)
        self._addresses = {"api": api, "mlflow": mlflow} | ({"ray": ray} if ray else {})
        return specs

    def _api_port(self, home: Home) -> int:
        """The port of the settings; by default the last one, the usual one, or any that is free."""
        port, host = self._settings.port, self._settings.host
        if port == 0 or "port" not in self._settings.model_fields_set:
            return home.port("api", range(port, port + _NEXT_PORTS) if port else [], host)
        if not is_free(host, port):
            raise MetricsweepError(
                f"port {port} of {host} (--port or METRICSWEEP_PORT) is held by {holder(port)}; "
                "name another, 0 for any, or none for the first that is free"
            )
        return port


def _refuse_wrong_start(settings: Settings) -> None:
    """Raise MetricsweepError if one of the processes would end as soon as it has started."""
    require("fastapi", "server")
    refuse_open_host(settings)
    home = settings.resolved_home
    if home.exists() and not os.access(home, os.W_OK | os.X_OK):
        raise MetricsweepError(
            unwritable(home, "Read-only file system" if disk_of(home).read_only else "no permission")
        )
    refuse_hidden()
    try:
        catalog = catalogs.load(settings.parts)
        if catalog.published:
            from orchestrator.service import offline  # here, since it is slow to import

            offline.published_tables(catalog)
    except catalogs.PartSourceError as error:
        raise MetricsweepError(f"METRICSWEEP_PARTS: {error}") from error
    refuse_unknown_names(settings)
    refuse_newer_database(settings)


def refuse_open_host(settings: Settings) -> None:
    """Raise MetricsweepError if the API would listen beyond this machine with only the home's own token.

    Clients on other machines cannot read that token.
    """
    if Secrets(settings).tokens or is_loopback(settings.host):
        return
    raise MetricsweepError(
        f"the API would listen on {settings.host} for everybody; set METRICSWEEP_TOKEN to a long random text, or "
        "METRICSWEEP_TOKEN_FILE to a file that holds one, or METRICSWEEP_HOST to 127.0.0.1"
    )


def refuse_unknown_names(settings: Settings) -> None:
    """Raise MetricsweepError if a setting names a missing function; those of a cluster's workers are not checked."""
    names = {"ENGINE": "" if settings.engine in ENGINES else settings.engine}
    if not settings.ray_address:
        names |= {"TRAIN": settings.train, "INSPECT": settings.inspect or ""}
    problems = [
        f"METRICSWEEP_{setting}: no function {name!r}: {reason}; expected `module:function`, the module in a folder of "
        "PYTHONPATH or an installed package"
        for setting, name in names.items()
        if name and (reason := missing(name))
    ]
    if problems:
        raise MetricsweepError("\n".join(problems))


class Ended(SystemExit):
    """Raised in the main thread when SIGTERM or SIGHUP arrived, as KeyboardInterrupt is for Ctrl-C."""


def _end_at_once(child: Child) -> None:
    at_once = Event()
    at_once.set()
    child.end(at_once)
