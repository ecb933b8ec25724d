"""The whole service on this machine as one object: `metricsweep serve` and `metricsweep run` start and stop it.

Its processes are children of this one: MLflow, Ray, the API, the conductor. Those whose address is set are not
started. On Linux they end when this process is killed; what outlives it nevertheless, the next start ends.
"""

import secrets
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any, Final, Self

from api.local.command_lines import (
    applications,
    has_ray_client,
    inherited_environment,
    mlflow_server,
    own_environments,
    ray_environment,
    ray_head,
    settings_environment,
)
from api.local.home import Home, holder, is_free
from api.local.process import MARK, Child, ChildSpec, end_processes, loopback_past_proxies, marked
from api.local.refusals import refuse_wrong_start
from api.local.supervision import Supervision, Tell
from orchestrator.settings import Settings
from orchestrator.views.errors import MetricsweepError, UnavailableError

START_SECONDS: Final = 180.0
"""How long all processes together may take to become ready."""
NEXT_PORTS: Final = 20
"""How many ports after the usual one are tried before any that is free."""
NOTE_SECONDS: Final = 5.0
"""How often a record of what runs is tried again that could not be written."""
_TICK: Final = 0.1
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(SystemExit):
    """SIGTERM or SIGHUP arrived; raised in the main thread, as KeyboardInterrupt is for Ctrl-C."""


class Stack:
    """The processes of one home folder; use it in a `with` block, which ends them in order.

    `tell` is called with a process's name and state, from another thread. `children` replaces our own two processes;
    one called `api` gets the API's port.
    """

    def __init__(
        self, settings: Settings, tell: Tell = lambda name, state: None, children: Sequence[ChildSpec] | None = None
    ) -> None:
        self._settings = settings
        self._listener = tell
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
            heeded = [
                number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN
            ]  # nohup ignores SIGHUP
            self._before = {number: signal.signal(number, self._on_signal) for number in heeded}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def addresses(self) -> Mapping[str, str]:
        """`api` and `mlflow` as URLs, `ray` as host:port, once started; without those that are not used."""
        return dict(self._addresses)

    def start(self) -> None:
        """Start everything and wait until all that is needed is ready; MLflow may come some seconds later.

        Raises ConflictError where this home is served already, UnavailableError where a process does not come up,
        and MetricsweepError where the settings do not allow it.
        """
        refuse_wrong_start(self._settings)
        self._home = Home(self._settings.resolved_home)
        try:
            self._home.lock()
            closed = self._home.close_to_others()
            if closed:
                self._tell("serve", closed)
            for left in self._home.end_leftovers():
                self._tell("serve", f"ended {left}, left by an earlier run")
            mark = secrets.token_hex(16)
            specs = self._specs(self._home)
            # One thread starts all of them and lives until the last has ended: they get a signal when it dies.
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
            # Not Thread.join: on Python 3.11 and 3.12, one that a signal's exception leaves forgets a living thread.
            # Nor Event.wait: one that it leaves at the wrong moment keeps the event's lock, and nobody can set it.
            while self._thread is not None and not self._done.is_set():
                time.sleep(_TICK)
        self._raise_failure()

    def stop(self) -> None:
        """End every process: conductor, API, Ray, MLflow. A second signal meanwhile kills what is left."""
        self._ending = True  # from here on no signal raises
        self._stopping.set()
        if self._thread is not None and self._thread.ident is not None:
            # In steps: a signal that the kernel gives to another thread is handled when this one wakes.
            while not self._done.wait(_TICK):
                pass
            self._thread.join()
        if self._home is not None:
            self._home.close()

    def _tell(self, name: str, state: str) -> None:
        with suppress(Exception):  # a closed terminal is no reason to stop supervising
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

        supervision = Supervision(children, environment, self._tell, note)
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
        """Record what runs; on a full disk later. The next start knows all of it by the mark in its environment too."""
        try:
            home.note(mark, children)
            self._note_again = float("inf")
        except OSError as error:
            if self._note_again == float("inf"):
                self._tell("serve", f"cannot note what runs: {error}; it is tried again until it can")
            self._note_again = time.monotonic() + NOTE_SECONDS

    def _supervise(self, supervision: Supervision, note: Callable[[], None]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._stopping.wait(_TICK):
            supervision.tick()
            if time.monotonic() > self._note_again:
                note()
            if supervision.all_ready():
                self._is_up.set()
            elif not self._is_up.is_set() and time.monotonic() > deadline:
                raise UnavailableError(f"not ready after {START_SECONDS:g} s: {supervision.missing()}")

    def _specs(self, home: Home) -> list[ChildSpec]:
        """All processes in the order in which they are begun; settles ports and addresses."""
        settings, specs, for_ray = self._settings, [], {}
        mlflow, ray = settings.mlflow_url, settings.ray_address
        socket = None if mlflow else settings.mlflow_socket
        if not mlflow and socket is None:
            socket = home.mlflow_socket()
            specs.append(mlflow_server(home.folder, socket))
        if not ray and settings.engine == "ray_tune":
            names = ("ray", "ray_client") if has_ray_client() else ("ray",)
            ports = {name: home.port(name) for name in names}
            ray, token = f"127.0.0.1:{ports['ray']}", home.ray_token()
            for_ray = ray_environment(token)
            specs.append(ray_head(home.ray_folder(), ports, token, settings))
        port = self._api_port(home)
        host = _reachable(settings.host)
        api = home.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        # A name that was given for us goes on to the API, which answers to it, and to the links that others follow.
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
        """The port that was asked for; where none was, the one of last time, the usual one, or any that is free."""
        asked, host = self._settings.port, self._settings.host
        if asked == 0 or "port" not in self._settings.model_fields_set:
            return home.port("api", range(asked, asked + NEXT_PORTS) if asked else [], host)
        if not is_free(host, asked):
            raise MetricsweepError(
                f"port {asked} of {host} (--port or METRICSWEEP_PORT) is held by {holder(asked)}; "
                "name another, 0 for any, or none for the first that is free"
            )
        return asked


def _reachable(host: str) -> str:
    """The address by which this machine reaches a listener on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}.get(host, host)  # noqa: S104  no bind
