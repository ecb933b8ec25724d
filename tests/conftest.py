"""What tests share: one local Ray for the session, and where the shared folder is."""

import difflib
import gc
import logging
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # the tests of the workers run where none of what these need is installed
    from api.local.processes import Child
    from orchestrator.service.service import Service
    from orchestrator.settings import Settings
    from tests.mlflow_server import Gate
    from tests.served import Served

os.environ.setdefault("OMP_NUM_THREADS", "1")
# Tests compute on all cores side by side: a slot that gave way to them would make the tests that wait for it slow.
os.environ.setdefault("RAY_worker_niceness", "0")
with suppress(ImportError):  # not needed where only workers are tested
    import hypothesis

    # How fast examples are found says how busy the machine is, and nothing of what is tested.
    slow = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=slow)
    hypothesis.settings.load_profile("untimed")
ROOT = Path(__file__).parents[1]


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """The statements that databases get meanwhile."""
    import sqlalchemy as sa  # tests of the workers run without it

    asked: list[str] = []

    def hear(*given: Any) -> None:
        asked.append(given[2])

    sa.event.listen(sa.Engine, "before_cursor_execute", hear)
    yield asked
    sa.event.remove(sa.Engine, "before_cursor_execute", hear)


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A command that a test ran in this process has begun to log to the stderr of that test, which is closed then."""
    yield
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if type(handler.formatter).__module__ == "orchestrator.host.logs":
            root.removeHandler(handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test may log half a surrogate pair; xdist cannot send it from process to process, and would end all."""
    report = yield
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine", action="append", help="module:factory of an engine to put through tests/run/test_engine.py"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the files that mostly wait for servers over the first half, so that others compute meanwhile."""
    marks = ("faults", "slurm", "ray", "postgres", "browser")
    waiting = {item.path for item in items if any(item.get_closest_marker(mark) for mark in marks)}
    places: dict[Path, float] = {}
    for share, kind in ((0.5, waiting), (1.0, {item.path for item in items} - waiting)):
        places |= {file: share * at / len(kind) for at, file in enumerate(sorted(kind))}
    items.sort(key=lambda item: places[item.path])
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Exempt what a file has imported from garbage collection: each training in this process collects garbage."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two a core, since tests that start servers mostly wait for them."""
    return min(8, 2 * (os.cpu_count() or 1))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of golden values, published numbers and real data; a test that needs it skips without it."""
    folder = Path(os.environ.get("METRICSWEEP_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("the folder ../shared is not here")
    return folder


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, bytes], None]:
    """Compares a content with the file golden/<name>; METRICSWEEP_WRITE_GOLDEN=1 writes the file instead."""

    def check(name: str, content: bytes) -> None:
        path = request.path.with_name("golden") / name
        if os.environ.get("METRICSWEEP_WRITE_GOLDEN"):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        before, after = (text.decode(errors="replace").splitlines() for text in (path.read_bytes(), content))
        changes = list(difflib.unified_diff(before, after, str(path), "now", n=1, lineterm=""))
        more = [f"... {len(changes) - 40} more lines"] if len(changes) > 40 else []
        rewrite = "if this is right, write it with METRICSWEEP_WRITE_GOLDEN=1 and review the diff"
        assert content == path.read_bytes(), "\n".join([*changes[:40], *more, rewrite])

    return check


@pytest.fixture
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> "Settings":
    """An installation of its own, with the inline engine and a training that does as its learning rate says.

    A module names another training as `TRAIN`.
    """
    from orchestrator.settings import Settings

    train = getattr(request.module, "TRAIN", "tests.run.trainings:scripted")
    return Settings(home=tmp_path, engine="inline", train=train, lease_seconds=5)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> "Callable[[Path], Path]":
    """Puts an empty database of this version into a folder: a copy is a tenth of the work of every migration."""
    from orchestrator.record.store import Store

    made = tmp_path_factory.mktemp("migrated") / "metricsweep.db"
    Store.open(f"sqlite:///{made}").close()
    made.chmod(0o600)

    def put(folder: Path) -> Path:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Path(shutil.copy(made, folder / made.name))

    return put


@pytest.fixture
def service(settings: "Settings", migrated: "Callable[[Path], Path]") -> "Iterator[Service]":
    """The service over it; a home that has a database keeps it."""
    from orchestrator.service.service import Service

    if not (settings.resolved_home / "metricsweep.db").exists():
        migrated(settings.resolved_home)
    opened = Service.open(settings)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Child]":
    """A real MLflow on a Unix socket, which all tests share."""
    from tests.mlflow_server import running

    with running(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


@pytest.fixture(scope="session")
def gate(mlflow: "Child", tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Gate]":
    """A server of ours that passes on to it."""
    from tests.mlflow_server import Gate

    assert mlflow.spec.socket is not None
    with Gate.served(tmp_path_factory.mktemp("gate"), mlflow.spec.socket) as found:
        yield found


@pytest.fixture(scope="session")
def served_home(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Served]":
    """One `metricsweep serve` for the session; a test may kill its conductor, but leaves no sweep running."""
    from tests.served import serving

    with serving(tmp_path_factory.mktemp("served")) as standing:
        yield standing


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """A Ray of this process with two CPUs; Ray takes seconds to start, so all tests share it."""
    import ray

    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    _begin_ray()
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def ray_is_there(request: pytest.FixtureRequest) -> None:
    """A test that ended a cluster of its own in this process has left the shared one: it is begun again."""
    if "local_ray" in request.fixturenames:
        request.getfixturevalue("local_ray")
        import ray

        if not ray.is_initialized():
            _begin_ray()


def _begin_ray() -> None:
    import ray

    ray.init(
        address="local",
        num_cpus=2,
        num_gpus=0,
        namespace="metricsweep",
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=128 * 2**20,
    )


@pytest.fixture
def own_ray(local_ray: None) -> Iterator[None]:
    """The same Ray without the slots of other installations, which would keep its CPUs."""
    import ray
    from ray.util import list_named_actors

    def clear() -> None:
        for one in list_named_actors(all_namespaces=True):
            ray.kill(ray.get_actor(one["name"], namespace=one["namespace"]))

    clear()
    yield
    if ray.is_initialized():
        clear()
