"""The supervisor with real processes: stand-ins for our own two, and the real MLflow and Ray."""

import base64
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import psutil
import pytest
from pydantic import SecretStr

from api.local import processes, record
from api.local.home import Home
from api.local.processes import MARK, ChildSpec
from api.local.serve import FIRST_DELAY, Stack, Supervision, refuse_open_host, refuse_unknown_names
from orchestrator.host.slot_environment import MALLOC
from orchestrator.run.slot import Preemption
from orchestrator.settings import SECRET_FILES, Settings
from orchestrator.views.errors import ConflictError, MetricsweepError, UnavailableError
from tests.ports import free_port

STAND_IN = Path(__file__).with_name("stand_in.py")


class Told(list[tuple[str, str]]):
    """The messages of the supervisor, in order."""

    def __call__(self, name: str, state: str) -> None:
        self.append((name, state))

    def of(self, name: str) -> list[str]:
        return [state for each, state in self if each == name]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def elsewhere(home: Path) -> Settings:
    """MLflow and Ray are elsewhere, so that only the stand-ins are started."""
    return Settings(home=home, port=0, mlflow_url="http://mlflow.example:5000", ray_address="ray.example:6379")


@pytest.fixture
def settings(home: Path) -> Settings:
    return elsewhere(home)


def stand_in(folder: Path, name: str, how: str = "plain", **more: Any) -> ChildSpec:
    folder.mkdir(parents=True, exist_ok=True)
    if name == "api":
        more = {"health": "/healthz", **more}
    elif name == "conductor":
        more = {"after": frozenset({"api"}), "needs": frozenset({"ray"}), "ready_text": "standing in", **more}
    return ChildSpec(name, (sys.executable, str(STAND_IN), name, str(folder), how), **more)


def ours(folder: Path) -> list[ChildSpec]:
    return [stand_in(folder, spec.name) for spec in processes.applications()]


@contextmanager
def begun(settings: Settings, children: list[ChildSpec], told: Told | None = None) -> Iterator[Stack]:
    """A supervisor whose processes are ready."""
    with Stack(settings, Told() if told is None else told, children) as stack:
        stack.start()
        yield stack


def wait_until(true: Callable[[], Any], seconds: float = 120.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    return found


def said(folder: Path, name: str) -> dict[str, Any]:
    path = folder / f"{name}.json"
    wait_until(path.exists)
    return dict(json.loads(path.read_text()))


def pid_of(folder: Path, name: str) -> int:
    return int(said(folder, name)["pids"][0])


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def status_of(url: str, path: str) -> int:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    connection.request("GET", path)
    return connection.getresponse().status


# Starting and ending


def test_it_starts_answers_and_ends_in_order(settings: Settings, tmp_path: Path) -> None:
    reported = Told()
    with begun(settings, ours(tmp_path), reported) as stack:
        assert status_of(stack.addresses["api"], "/healthz") == 200
        assert stack.addresses["mlflow"] == "http://mlflow.example:5000"
        assert stack.addresses["ray"] == "ray.example:6379"
        pids = [pid_of(tmp_path, name) for name in ("api", "conductor")]
    assert all(is_gone(pid) for pid in pids)
    assert (tmp_path / "ended").read_text().split() == ["conductor", "api"]
    first, last = ("starting", "ready"), ("stopping", "stopped")
    assert reported == [  # the conductor ends first: it sends the rest to MLflow through the API
        *(("api", state) for state in first), *(("conductor", state) for state in (*first, *last)),
        *(("api", state) for state in last),
    ]  # fmt: skip
    assert "standing in" in (tmp_path / "home" / "logs" / "conductor.log").read_text()


def test_mlflow_runs_until_the_conductor_has_sent_everything(tmp_path: Path, settings: Settings) -> None:
    services = (
        processes.mlflow_server(tmp_path, tmp_path / "socket"),
        processes.ray_head(tmp_path, {"ray": 1}, "", settings),
    )
    later = {spec.name: set(spec.end_later) for spec in (*services, *processes.applications())}
    assert later == {"mlflow": set(), "ray": set(), "api": set(), "conductor": {"mlflow", "ray", "api"}}


def test_what_is_not_waited_for_comes_later_and_is_tried_for_ever(settings: Settings, tmp_path: Path) -> None:
    told, beside = Told(), replace(stand_in(tmp_path, "beside", "fails"), awaited=False)
    with begun(settings, [beside, *ours(tmp_path)], told) as stack:
        wait_until(lambda: sum("exit code 3" in state for state in told.of("beside")) > 3)
        assert status_of(stack.addresses["api"], "/healthz") == 200
        assert told.index(("beside", "starting")) > told.index(("conductor", "starting"))
        assert "cannot find my configuration" in (tmp_path / "home" / "logs" / "beside.log").read_text()


def test_a_process_with_a_socket_that_opens_a_tcp_port_is_ended_and_stays_so(
    settings: Settings, tmp_path: Path
) -> None:
    """Whether the process itself opens it or its child, and also where it never becomes ready."""
    for how, says in (("open below", "standing"), ("open", "what it never says")):
        folder, told = tmp_path / how / says, Told()
        path = tmp_path / "asked.sock"
        beside = replace(stand_in(folder, "beside", how), awaited=False, socket=path, ready_text=says)
        with begun(settings, [beside, *ours(folder)], told) as stack:
            (refusal,) = wait_until(lambda told=told: [state for state in told.of("beside") if "TCP port" in state])
            assert f"expected the Unix socket {path} alone; ended, and not started again" in refusal
            assert all(is_gone(pid) for pid in said(folder, "beside")["pids"])
            time.sleep(1.0)  # longer than it would wait before it begins again
            assert told.of("beside") == ["starting", refusal], how
            assert status_of(stack.addresses["api"], "/healthz") == 200, "the service goes on without it"


def test_a_process_that_becomes_ready_during_a_look_is_searched_for_tcp_ports_all_the_same(tmp_path: Path) -> None:
    class Late(processes.Child):
        """Opens a TCP port after the first search, and is ready at the third check."""

        asked, searched = 0, 0

        def is_ready(self) -> bool:
            self.asked += 1
            return self.asked > 2

        def tcp_ports(self) -> list[int]:
            self.searched += 1
            return [4242] if self.searched > 1 else []

    reported = Told()
    child = Late(replace(stand_in(tmp_path, "beside"), socket=tmp_path / "asked.sock"), tmp_path / "beside.log")
    supervision = Supervision([child], dict(os.environ), reported, lambda: None)
    for _ in range(5):
        supervision.tick()
    assert reported.of("beside")[0] == "starting"
    assert "TCP port 4242" in reported.of("beside")[1]


def test_children_get_the_addresses_of_other_processes(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METRICSWEEP_TOKEN", "inherited")
    monkeypatch.setenv("METRICSWEEP_SLOTS", "7")
    monkeypatch.setenv("RAY_ADDRESS", "somewhere.else:1")
    monkeypatch.setenv("no_proxy", "intranet")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    relative = settings.model_copy(update={"home": Path("home"), "parts": Path("parts"), "slots": None})
    secret = Settings.model_validate({**relative.model_dump(), "token": "a-token-of-the-tests"})
    with begun(secret, ours(tmp_path)) as stack:
        api, conductor = (said(tmp_path, name)["environment"] for name in ("api", "conductor"))
    assert api["METRICSWEEP_TOKEN"] == "a-token-of-the-tests"
    assert "METRICSWEEP_TOKEN" not in conductor
    for environment in (api, conductor):
        assert environment["METRICSWEEP_HOME"] == str(tmp_path / "home")
        assert environment["METRICSWEEP_PARTS"] == str(tmp_path / "parts")
        assert environment["METRICSWEEP_DATABASE_URL"] == f"sqlite:///{tmp_path / 'home' / 'metricsweep.db'}"
        assert environment["METRICSWEEP_MLFLOW_URL"] == "http://mlflow.example:5000"
        assert environment["METRICSWEEP_RAY_ADDRESS"] == "ray.example:6379"
        assert environment["METRICSWEEP_URL"] == stack.addresses["api"]
        assert environment["no_proxy"] == environment["NO_PROXY"] == "intranet,127.0.0.1,localhost,::1"
        assert not {"METRICSWEEP_SLOTS", "RAY_ADDRESS", "RAY_AUTH_TOKEN"} & set(environment)


def test_every_setting_reaches_the_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # With a token or a secret, a file of the same is an error.
    given: dict[str, Any] = {
        "home": tmp_path / "home", "database_url": f"sqlite:///{tmp_path / 'own.db'}",
        "ray_address": "ray.example:6379", "mlflow_url": "http://mlflow.example:5000",
        "mlflow_public_url": "https://mlflow.lab", "storage_url": str(tmp_path / "storage"), "data": tmp_path / "data",
        "parts": tmp_path / "parts", "host": "127.0.0.1", "port": free_port(), "token": "a-token-of-the-tests",
        "url": "https://sweeps.lab", "train": "elsewhere:train", "log_format": "json", "inspect": "elsewhere:inspect",
        "engine": "ray_tune", "lease_seconds": 7.5, "slots": 3, "owner_slots": 2, "owner_trials": 3,
        "trusted_proxies": "10.0.0.0/8", "forwarding_proxies": "127.0.0.1", "slot_growth": 2.5,
        "request_seconds": 45.0, "mlflow_socket": tmp_path / "mlflow.sock", "traces_url": "http://127.0.0.1:4318",
        "webhook_url": "https://hooks.lab/sweeps",
        "webhook_secret": "whsec_" + base64.b64encode(b"a secret of the tests, long enough").decode(),
        "webhook_secret_file": tmp_path / "webhook.secret", "read_rate": 50.0, "write_rate": 5.0, "open_rate": 2.5,
        "token_file": None, "database_password_file": tmp_path / "password",
        "mlflow_token_file": tmp_path / "mlflow.token", "mlflow_password_file": tmp_path / "mlflow.password",
        "oidc_issuer": "https://login.lab", "oidc_client_id": "metricsweep",
        "oidc_client_secret": SecretStr("what the provider is shown"), "oidc_client_secret_file": None,
        "oidc_name": "the lab", "oidc_scopes": "openid email", "oidc_user_claim": "nickname",
        "oidc_new_users": "viewer", "oidc_domains": "lab.example", "oidc_groups": "lab", "oidc_groups_claim": "teams",
        "oidc_roles": "chiefs=admin", "oidc_hours": 8.0,
    }  # fmt: skip
    (tmp_path / "parts").mkdir()
    settings = Settings(**given)
    unknown = set(Settings.model_fields) - set(given)
    assert unknown == set(), "a new setting belongs here"
    with begun(settings, ours(tmp_path)) as stack:
        assert stack.addresses["api"] == f"http://127.0.0.1:{settings.port}", "this machine asks itself directly"
        told = {name: said(tmp_path, name)["environment"] for name in ("api", "conductor")}
    for name, environment in told.items():
        for variable in [one for one in os.environ if one.startswith("METRICSWEEP_")]:
            monkeypatch.delenv(variable)
        for variable, value in environment.items():
            if variable.startswith("METRICSWEEP_"):
                monkeypatch.setenv(variable, value)
        hook = dict.fromkeys(("webhook_url", "webhook_secret", "webhook_secret_file"))
        hook |= dict.fromkeys(("mlflow_token_file", "mlflow_password_file"))
        withheld = hook if name == "api" else {"token": None, "oidc_client_secret": None}
        assert Settings() == settings.model_copy(update={"mlflow_socket": None, **withheld}), name  # its address wins


READERS = {
    "token_file": {"api"}, "oidc_client_secret_file": {"api"}, "database_password_file": {"api", "conductor"},
    "webhook_secret_file": {"conductor"}, "mlflow_token_file": {"conductor"}, "mlflow_password_file": {"conductor"},
}  # fmt: skip


def test_a_secret_s_file_is_named_to_those_alone_who_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From any folder; some conflict with a secret in a variable, so each is set alone here."""
    assert READERS.keys() == set(SECRET_FILES)
    monkeypatch.chdir(tmp_path)
    for name, readers in READERS.items():
        settings = Settings(home=tmp_path, **{name: Path("secret")})
        variable = f"METRICSWEEP_{name.upper()}"
        assert variable not in processes.settings_environment(settings)
        told = {child: said.get(variable) for child, said in processes.own_environments(settings).items()}
        assert told == {child: str(tmp_path / "secret") if child in readers else None for child in told}, name


def test_ray_gets_a_closed_folder_with_a_short_path(home: Path, tmp_path: Path) -> None:
    deep = Home(home / ("x" * 60)).ray_folder()
    short = Path(tempfile.mkdtemp(prefix="ms", dir="/tmp"))
    near = Home(short).ray_folder()
    assert near == short / "ray" / "t"
    assert len(str(deep)) < 40
    for folder in (deep, near):
        assert folder.parent.stat().st_mode & 0o777 == 0o700
        assert not folder.exists()
    (near / "session_old").mkdir(parents=True)
    assert not Home(short).ray_folder().exists()
    shutil.rmtree(short)
    shutil.rmtree(deep.parent)


def test_the_inline_engine_needs_no_ray(home: Path, tmp_path: Path) -> None:
    inline = Settings(home=home, port=0, mlflow_url="http://mlflow.example:5000", engine="inline")
    with begun(inline, ours(tmp_path)) as stack:
        assert set(stack.addresses) == {"api", "mlflow"}


def test_mlflow_variables_of_another_server_do_not_reach_our_own_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "of another server")
    monkeypatch.setenv("MLFLOW_ENABLE_REMOTE_ASSISTANT", "true")
    assert not [name for name in processes.inherited_environment(own_mlflow=True) if "MLFLOW" in name]
    assert processes.inherited_environment()["MLFLOW_TRACKING_PASSWORD"] == "of another server"


def test_mlflow_has_a_socket_in_a_closed_folder_however_deep_the_home(tmp_path: Path) -> None:
    for folder in (tmp_path / "home", tmp_path / ("deep" * 30)):
        socket = Home(folder).mlflow_socket()
        assert len(os.fsencode(socket)) <= 103
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        assert socket == Home(folder).mlflow_socket()
    socket.parent.rmdir()


def test_ports_stay_the_same(settings: Settings, tmp_path: Path) -> None:
    ports = []
    for _ in range(2):
        with begun(settings, ours(tmp_path)) as stack:
            ports.append(stack.addresses["api"])
    assert ports[0] == ports[1]


def test_two_homes_never_choose_the_same_port(tmp_path: Path) -> None:
    preferred = range(52_000, 52_020)
    homes = [Home(tmp_path / name) for name in "abc"]
    chosen = [each.port("mlflow", preferred) for each in homes]  # nobody listens yet
    assert len(set(chosen)) == 3
    for each in homes:
        each.close()


# Refusals


def test_a_second_serve_of_a_home_is_refused(settings: Settings, tmp_path: Path) -> None:
    with begun(settings, ours(tmp_path)) as stack:
        second = Stack(settings, children=ours(tmp_path))
        with pytest.raises(ConflictError, match=rf"already serves .*home \(process {os.getpid()}\); stop it first"):
            second.start()
        assert status_of(stack.addresses["api"], "/healthz") == 200
    with begun(settings, ours(tmp_path)):
        pass


def test_a_port_in_use_is_refused(settings: Settings, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = settings.model_copy(update={"port": taken.getsockname()[1]})
        asked = rf"port {busy.port} of 127.0.0.1 \(--port or METRICSWEEP_PORT\) is held by process {os.getpid()} "
        with pytest.raises(MetricsweepError, match=asked):
            Stack(busy, children=ours(tmp_path)).start()


def test_a_usual_port_in_use_gives_way_to_a_free_one(settings: Settings, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        unasked = settings.model_copy(update={"port": taken.getsockname()[1]})
        unasked.model_fields_set.discard("port")
        with begun(unasked, ours(tmp_path)) as stack:
            url = stack.addresses["api"]
            assert url != f"http://127.0.0.1:{unasked.port}"
            found = record.served(unasked.resolved_home)
            assert found is not None
            assert (found.url, found.is_here) == (url, True)
        assert record.served(unasked.resolved_home) is None, "it is served no more"


def test_an_open_host_needs_a_chosen_token() -> None:
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        refuse_open_host(Settings(host=host))
    for host in ("0.0.0.0", "::", "192.168.1.7", "myhost", ""):
        for token in (None, ""):
            with pytest.raises(MetricsweepError, match="set METRICSWEEP_TOKEN"):
                refuse_open_host(Settings(host=host, token=token))
        refuse_open_host(Settings(host=host, token="a-token-of-the-tests"))


def test_a_name_of_nothing_ends_the_start_before_anything_starts(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported, own = Told(), tmp_path / "own_package"
    own.mkdir()
    (own / "__init__.py").write_text("raise RuntimeError('only trainings may run this')")
    (own / "code.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for setting, message in (
        ({"engine": "nowhere.at_all:engine"}, "ENGINE: no function 'nowhere.at_all:engine': Python finds no"),
        ({"engine": "tests.run.threads:motor"}, r"ENGINE: .*threads\.py has no 'motor'"),
        ({"train": "workers.trains:train"}, "TRAIN: .*Python finds no module 'workers.trains'"),
        ({"train": "workers.train:trian"}, r"TRAIN: .*train\.py has no 'trian'; expected `module:function`"),
        ({"train": "own_package.code:train"}, r"TRAIN: .*code\.py has no 'train'"),
        ({"train": "__main__:train"}, "TRAIN: .*(Python finds no module '__main__'|__main__.py has no 'train')"),
        ({"inspect": "workers.data:inspect"}, r"INSPECT: .*has no 'inspect'"),
        ({"parts": Path("/nowhere")}, "PARTS: /nowhere: the folder of own parts does not exist"),
    ):
        wrong = settings.model_copy(update={"ray_address": "", **setting})
        with pytest.raises(MetricsweepError, match=f"METRICSWEEP_{message}"):
            Stack(wrong, reported, [stand_in(tmp_path, "api")]).start()
    assert (reported.of("api"), settings.home.exists()) == ([], False)


def test_the_workers_of_a_cluster_know_their_own_training_function() -> None:
    far = {"train": "of.their:own", "inspect": "of.their:look"}
    refuse_unknown_names(Settings(ray_address="ray:6379", **far))
    with pytest.raises(MetricsweepError, match=r"METRICSWEEP_TRAIN: (?s:.*)METRICSWEEP_INSPECT: "):
        refuse_unknown_names(Settings(**far))


def test_a_process_that_never_comes_up_ends_the_start(settings: Settings, tmp_path: Path) -> None:
    reported = Told()
    children = [stand_in(tmp_path, "conductor", "fails", after=frozenset()), stand_in(tmp_path, "api")]
    with pytest.raises(UnavailableError, match=r"conductor ended with exit code 3.*conductor\.log\n(?s:.*)cannot find"):
        Stack(settings, reported, children).start()
    assert (tmp_path / "home" / "logs" / "conductor.log").read_text().count("cannot find") == 3
    assert not [each for each in psutil.Process().children(recursive=True) if str(STAND_IN) in each.cmdline()]
    assert reported.of("api")[-1] == "stopped"


# Supervision


def test_what_dies_is_started_again(settings: Settings, tmp_path: Path) -> None:
    reported = Told()
    with begun(settings, ours(tmp_path), reported):
        api, first = pid_of(tmp_path, "api"), pid_of(tmp_path, "conductor")
        os.kill(first, signal.SIGKILL)
        second = wait_until(lambda: pid_of(tmp_path, "conductor") != first and pid_of(tmp_path, "conductor"))
        os.kill(second, signal.SIGKILL)
        wait_until(lambda: pid_of(tmp_path, "conductor") not in {first, second})
        assert pid_of(tmp_path, "api") == api
    log = settings.resolved_home / "logs" / "conductor.log"
    ends = [state for state in reported.of("conductor") if "ended" in state]
    assert ends == [
        f"ended with SIGKILL; its log is {log}; starting again in {delay:g} s"
        for delay in (FIRST_DELAY, 2 * FIRST_DELAY)
    ]


def test_what_needs_another_starts_again_with_it(settings: Settings, tmp_path: Path) -> None:
    reported = Told()
    children = [stand_in(tmp_path, "ray"), stand_in(tmp_path, "conductor"), stand_in(tmp_path, "api")]
    with begun(settings, children, reported):
        ray, conductor = pid_of(tmp_path, "ray"), pid_of(tmp_path, "conductor")
        os.kill(ray, signal.SIGKILL)
        wait_until(lambda: pid_of(tmp_path, "conductor") != conductor)
        assert pid_of(tmp_path, "ray") != ray
    assert "starts again with ray" in reported.of("conductor")


def test_what_does_not_listen_to_sigterm_is_killed_with_its_children(settings: Settings, tmp_path: Path) -> None:
    with begun(settings, [stand_in(tmp_path, "conductor", "stubborn", grace=0.3)]):
        pids = said(tmp_path, "conductor")["pids"]
        assert len(pids) == 2
    assert all(is_gone(pid) for pid in pids)


def test_a_log_is_cut_while_its_process_writes(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.local.processes.LOG_BYTES", 100_000)
    write = """
import os, time
for n in range(500):
    os.write(1, b"%04d" % n + b"x" * 995 + b"\\n")
    while os.fstat(1).st_size > 100_000:  # what comes between the copy and the cut is lost
        time.sleep(0.01)
os.write(1, b"the end")
time.sleep(600)
"""
    talks = ChildSpec("conductor", (sys.executable, "-c", write))
    logs = settings.resolved_home / "logs"
    with begun(settings, [talks, stand_in(tmp_path, "api")]):
        wait_until(lambda: (logs / "conductor.log").read_bytes().endswith(b"the end"))
        # Between two steps of a cut one of them is missing.
        wait_until(lambda: len(list(logs.glob("conductor.log*"))) == 3)
        files = sorted(logs.glob("conductor.log*"))
        assert [file.name for file in files] == ["conductor.log", "conductor.log.1", "conductor.log.2"]
        assert sum(file.stat().st_size for file in files) < 310_000, "half a megabyte was written"
        assert b"\0" not in files[0].read_bytes()  # the process goes on at the new end, not where it was


def test_long_logs_are_rotated_at_the_start(settings: Settings, tmp_path: Path) -> None:
    logs = settings.resolved_home / "logs"
    logs.mkdir(parents=True)
    (logs / "api.log").write_bytes(b"x" * 10_000_001)
    (logs / "conductor.log").write_bytes(b"short\n")
    with begun(settings, ours(tmp_path)):
        pass
    assert (logs / "api.log.1").stat().st_size == 10_000_001
    assert (logs / "api.log").stat().st_size < 1_000
    assert (logs / "conductor.log").read_text().startswith("short\n--- ")


# Signals, and the supervisor's own death

SCRIPT = """
import signal, sys, threading
from functools import partial
from pathlib import Path
from api.local.serve import Stack
from tests.api.test_serve import elsewhere, ours, stand_in

home, folder, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and what nohup runs ignores this one
children = ours(folder) if how == "plain" else [stand_in(folder, "conductor", how, grace=600.0)]
with Stack(elsewhere(home), lambda name, state: print(name, state, flush=True), children) as stack:
    stack.start()
    threading.Timer(0.5, print, ["up"], {"flush": True}).start()  # said when it waits, so that a signal finds it there
    stack.wait()
print("clean", flush=True)
"""


@pytest.fixture
def serve(home: Path, tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts a supervisor in a process of its own and waits until it is up."""
    started: list[subprocess.Popen[str]] = []

    def begin(how: str = "plain") -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(home), str(tmp_path), how],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        started.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if line == "up\n":
                return process
        raise AssertionError("it did not come up")

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_in_order(
    serve: Callable[..., "subprocess.Popen[str]"], tmp_path: Path, number: signal.Signals
) -> None:
    process = serve()
    pids = [pid_of(tmp_path, name) for name in ("api", "conductor")]
    process.send_signal(number)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert output.splitlines()[-1] == "clean"
    assert all(is_gone(pid) for pid in pids)
    assert (tmp_path / "ended").read_text().split() == ["conductor", "api"], output


def test_a_signal_may_come_at_any_moment_of_the_wait(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its exception leaves must hold no lock that the supervisor needs to say that all have ended."""
    monkeypatch.setattr("api.local.serve._TICK", 0.001)
    stuck = []
    for moment in range(36):
        passed = 0

        def interrupting(frame: FrameType, event: str, argument: object) -> Callable[..., object] | None:
            nonlocal passed
            if event == "call" and passed == 0 and frame.f_code.co_name != "wait":
                return None  # of the wait alone
            passed += 1
            if passed == moment + 2:  # noqa: B023
                sys.settrace(None)
                raise KeyboardInterrupt
            return interrupting

        stack = Stack(settings, children=[])  # not entered: leaving it would wait, too
        stack.start()
        before = sys.gettrace()
        sys.settrace(interrupting)
        with suppress(KeyboardInterrupt):  # after the last thing that the wait does it strikes the caller
            stack.wait()
        sys.settrace(before)
        ending = threading.Thread(target=stack.stop, daemon=True)
        ending.start()
        ending.join(30)
        stuck += [moment] * ending.is_alive()
    assert stuck == [], "it waits for ever"


def test_a_second_signal_does_not_wait_for_the_grace(
    serve: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    process = serve("stubborn")
    pids = said(tmp_path, "conductor")["pids"]
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    assert process.stdout.readline() == "conductor stopping\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert all(is_gone(pid) for pid in pids)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent died")
def test_children_end_when_the_supervisor_is_killed(
    serve: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    process = serve()
    pids = [pid_of(tmp_path, name) for name in ("api", "conductor")]
    process.kill()
    process.wait()
    for pid in pids:
        wait_until(lambda pid=pid: is_gone(pid))


def test_what_a_killed_supervisor_left_is_ended_by_the_next(
    serve: Callable[..., "subprocess.Popen[str]"], settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.local.home.LEFTOVER_GRACE", 0.3)
    process = serve("stubborn")  # ignores the SIGTERM that its parent's death brings
    pids = said(tmp_path, "conductor")["pids"]
    process.kill()
    process.wait()
    assert not any(is_gone(pid) for pid in pids)
    psutil.Process(pids[0]).kill()  # the child, re-parented, is known by its mark alone
    wait_until(
        partial(is_gone, pids[0])
    )  # the kill takes effect later; a process that is still dying ends as a conductor
    reported = Told()
    with begun(settings, ours(tmp_path), reported):
        assert all(is_gone(pid) for pid in pids)
    assert reported[0] == ("serve", f"ended process {pids[1]}, left by an earlier run")


def shows_mark(pid: int) -> bool:
    return MARK in psutil.Process(pid).environ()


def test_only_the_recorded_process_is_ended_not_one_with_its_pid(home: Path) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    theirs, stranger, unmarked = (subprocess.Popen(sleeper) for _ in range(3))
    marked = subprocess.Popen(sleeper, env={**os.environ, MARK: "right"})
    wrong = subprocess.Popen(sleeper, env={**os.environ, MARK: "wrong"})
    every = [theirs, stranger, unmarked, marked, wrong]
    try:
        for each in (marked, wrong):  # the kernel shows a process's environment a moment after it has started
            wait_until(partial(shows_mark, each.pid))
        born = {each.pid: psutil.Process(each.pid).create_time() for each in every}
        entries = [
            {"name": "api", "pid": theirs.pid, "created": born[theirs.pid]},
            {"name": "conductor", "pid": stranger.pid, "created": born[stranger.pid] - 3600},
            {"name": "odd"},
        ]
        held = Home(home)
        (home / "serve.json").write_text(json.dumps({"mark": "right", "children": entries}))
        assert held.end_leftovers() == [f"api {theirs.pid}", f"process {marked.pid}"]
        assert [each.poll() is None for each in every] == [False, True, True, False, True]
    finally:
        for each in every:
            each.kill()
            each.wait()


def test_a_damaged_record_is_no_obstacle(settings: Settings, tmp_path: Path) -> None:
    settings.resolved_home.mkdir(parents=True)
    for content in ("", "{", "[]", "null", '{"ports": 3, "children": null}'):
        (settings.resolved_home / "serve.json").write_text(content)
        with begun(settings, []):
            pass


def test_a_listener_that_fails_is_no_obstacle(settings: Settings, tmp_path: Path) -> None:
    def closed(name: str, state: str) -> None:
        raise BrokenPipeError(name)

    with Stack(settings, closed, [stand_in(tmp_path, "api")]) as stack:
        stack.start()
        pid = pid_of(tmp_path, "api")
    assert is_gone(pid)


# The real services

DRIVER = """
import ray, sys
ray.init(address=sys.argv[1], log_to_driver=False)

@ray.remote(num_cpus=1, lifetime="detached", name="kept", namespace="test", get_if_exists=True)
class Kept:
    def pid(self):
        import os
        return os.getpid()
    def shout(self):
        for _ in range(35):
            print("x" * 1_000_000)

ray.get(Kept.remote().shout.remote())
print(ray.get(Kept.remote().pid.remote()))
"""


def drive(address: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Connect to Ray as the conductor does and ask a detached actor for its pid."""
    command = [sys.executable, "-c", DRIVER, address]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.run(
        command, check=False, env={**clean, **environment}, capture_output=True, text=True, timeout=120
    )


def tree_of(home: Path) -> list[psutil.Process]:
    """The services of a home and all below them; not every child of this process, which may hold a Ray of its own."""
    children = json.loads((home / "serve.json").read_text())["children"]
    services = [psutil.Process(child["pid"]) for child in children]
    return [*services, *(below for one in services for below in one.children(recursive=True))]


@pytest.mark.ray
def test_the_real_services(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_worker_niceness")  # which the tests set for their own Rays
    reported = Told()
    with begun(Settings(home=home, port=0), ours(tmp_path), reported) as stack:
        assert stack.addresses["mlflow"] == f"{stack.addresses['api']}/mlflow"
        assert said(tmp_path, "conductor")["environment"]["METRICSWEEP_MLFLOW_URL"] == stack.addresses["mlflow"]
        socket = Path(said(tmp_path, "api")["environment"]["METRICSWEEP_MLFLOW_SOCKET"])
        wait_until(lambda: "ready" in reported.of("mlflow"))
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://localhost") as behind:
            assert behind.get("/health", timeout=120).text == "OK"
        assert socket.parent.stat().st_mode & 0o077 == 0, "the socket itself is writable to everybody"
        listening = {
            (connection.laddr.ip, connection.laddr.port)
            for process in tree_of(home)
            for connection in process.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        }
        assert {ip.removeprefix("::ffff:") for ip, _ in listening} == {"127.0.0.1"}
        assert len({port for _, port in listening}) == 5  # API, and Ray's GCS, raylet (2), environment agent

        token = home / "ray.token"
        assert token.stat().st_mode & 0o777 == 0o600
        told_conductor = said(tmp_path, "conductor")["environment"]
        for_ray = {name: value for name, value in told_conductor.items() if name.startswith("RAY_")}
        assert for_ray["RAY_AUTH_TOKEN"] == token.read_text()
        assert "RAY_AUTH_TOKEN" not in " ".join(word for process in tree_of(home) for word in process.cmdline())
        driven = drive(stack.addresses["ray"], **for_ray)
        assert driven.returncode == 0, driven.stderr
        actor = int(driven.stdout)
        assert psutil.Process(actor).nice() == psutil.Process().nice() + 5, (
            "Ray's own 15 starves beside any other program"
        )
        inherited = psutil.Process(actor).environ()
        assert inherited["METRICSWEEP_DATA"] == str(home / "data")
        assert inherited.items() >= MALLOC.items(), "its slots keep the memory that they free for the next step"
        assert Preemption.named_by(inherited) is not None, "its slots hear that the service ends"
        assert not {"METRICSWEEP_DATABASE_URL", "METRICSWEEP_TOKEN"} & set(inherited)

        first = pid_of(tmp_path, "conductor")
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: pid_of(tmp_path, "conductor") != first)
        assert psutil.pid_exists(actor), "Ray and its actors never noticed"
        lines = [process.cmdline() for process in tree_of(home)]
        session = next(Path(line[line.index("--temp-dir") + 1]) for line in lines if "--temp-dir" in line)
        written = {file.name: file.stat().st_size for file in session.rglob("*.out*") if not file.is_symlink()}
        assert max(written.values()) < 12_000_000, written  # of the 70 MB that the actor printed
        everything = tree_of(home)
    assert not [process for process in everything if process.is_running()]
    assert reported.of("ray") == ["starting", "ready", "stopping", "stopped"]
    assert (home / "logs" / "ray.log").stat().st_size > 0
    shutil.rmtree(Home(home).ray_folder().parent)  # pytest's paths are too long for Ray's sockets: it is in /tmp
