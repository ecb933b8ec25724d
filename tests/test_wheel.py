"""The wheel in an empty folder migrates, serves and renders; and `import metricsweep` works from any folder."""

import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import metricsweep
import pytest

from orchestrator.host.checks import hidden
from orchestrator.host.identity import ensure_identity
from tests import guide_site
from tests.api.conftest import TOKEN, app, settings, url  # noqa: F401 - fixtures
from tests.conftest import ROOT
from tests.ports import free_port
from tests.served import plant, until


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, without what it depends on: that is here already."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy, since setuptools leaves its build folder next to the source
    for package in ("workers", "orchestrator", "api", "dashboards"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__", "guide"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(guide_site.site(folder), source / "dashboards" / "guide")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*build, str(source)], check=True)
    (wheel,) = folder.glob("metricsweep-*.whl")
    target = folder / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*install, str(wheel)], check=True)
    return target


def run_from(installed: Path, home: Path, code: str) -> str:
    """What `code` prints when only the installed copy can be imported."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "METRICSWEEP_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_carries_parts_migrations_templates_and_scripts(installed: Path, tmp_path: Path) -> None:
    code = """
import orchestrator, dashboards.sweeps, dashboards.catalog, dashboards.rendering, workers.catalog
import orchestrator.publish.formats as formats
from orchestrator.service import offline
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from workers import catalog
service = Service.open(Settings())
print(orchestrator.__file__)
print(len(service.catalog().entries), len(formats.names()))
print("<html" in dashboards.sweeps.sweeps_page(service.sweeps.page(None, None, None, 10), state=None, name=None))
print(dashboards.rendering.static("style.css") is not None)
print(sum(one.count for one in offline.published_tables(catalog.load())))
print(dashboards.catalog.guide_is_built())
"""
    place, counts, page, style, published, guide = run_from(installed, tmp_path, code).splitlines()
    assert Path(place).is_relative_to(installed)
    parts, formats = (int(number) for number in counts.split())
    assert parts > 30
    assert formats >= 6
    assert (page, style) == ("True", "True")
    assert published == "1628"
    assert guide == "True"


@pytest.fixture
def api(installed: Path, tmp_path: Path) -> Iterator[str]:
    port = free_port()
    environment = {
        **os.environ, "PYTHONPATH": str(installed), "METRICSWEEP_HOME": str(tmp_path), "METRICSWEEP_PORT": str(port),
    }  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "api"], cwd=tmp_path, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: answers(address), "the API answers")
        yield address
    finally:
        process.terminate()
        process.wait(120)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_it_takes_a_sweep_from_a_notebook(api: str, installed: Path, tmp_path: Path) -> None:
    code = f"""
import metricsweep
print(metricsweep.__file__)
with metricsweep.connect({api!r}, {ensure_identity(tmp_path).secret!r}) as client:
    number = client.submit(open({str(ROOT / "sweeps" / "digits.yaml")!r}, "rb").read()).id
    print(number, client.sweep(number).name, len(client.catalog().entries) > 30)
"""
    place, found = run_from(installed, tmp_path, code).splitlines()
    assert Path(place) == installed / "metricsweep" / "__init__.py"
    assert found == "1 digits True"
    assert not (installed / "api" / "package").exists()
    told = {"Authorization": f"Bearer {ensure_identity(tmp_path).secret}"}
    with urllib.request.urlopen(urllib.request.Request(f"{api}/", headers=told)) as answer:
        assert b"digits" in answer.read()
    with urllib.request.urlopen(f"{api}/static/vega.js") as answer:
        assert len(answer.read()) > 100_000


def run_in(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("METRICSWEEP_")}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment | more, capture_output=True, text=True, check=False
    )


def own(folder: Path, name: str) -> Path:
    """A package of somebody else's."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").touch()
    return folder / name


def test_a_client_of_a_server(url: str, tmp_path: Path) -> None:  # noqa: F811
    with metricsweep.connect(url, TOKEN) as client:
        assert list(client.sweeps()) == []
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("METRICSWEEP_URL", url)
        environment.setenv("METRICSWEEP_TOKEN", TOKEN)
        with metricsweep.connect() as client:
            assert client.url == url
    with pytest.raises(metricsweep.Unreachable, match="nothing serves"):
        metricsweep.connect(home=tmp_path / "nothing")


def test_it_is_imported_from_any_folder(tmp_path: Path) -> None:
    done = run_in(tmp_path, "-c", "import metricsweep; print(metricsweep.connect.__name__, metricsweep.__version__)")
    assert (done.returncode, done.stdout.split()[0]) == (0, "connect"), done.stderr


def test_a_package_of_our_name_next_to_a_notebook_is_an_error(tmp_path: Path) -> None:
    for name in ("workers", "orchestrator", "dashboards", "api"):
        folder = tmp_path / f"next to {name}"
        folder.mkdir()
        theirs = own(folder, name)
        done = run_in(folder, "-c", "import metricsweep")
        assert done.returncode == 1
        assert f"ImportError: {theirs} comes before metricsweep's own package '{name}' in {ROOT}" in done.stderr


def test_what_is_started_runs_no_module_of_the_current_folder(tmp_path: Path) -> None:
    """Neither a `secrets.py` nor a package `workers` that somebody left there.

    Python itself imports a few modules before it finds ours: `python -P -m` runs none of these either.
    """
    ours = ("workers", "orchestrator", "dashboards", "api")
    (tmp_path / "probe.py").write_text("import sys; print(*sys.modules)")
    before = run_in(tmp_path, "-m", "probe").stdout.split()
    ran = dict[str, str]()
    for module, *arguments in (
        ("workers", "catalog"), ("orchestrator", "healthy"), ("api.cli", "list"), ("orchestrator.run.files", "--help"),
        ("orchestrator.run.ray", "--help"), ("api",),
    ):  # fmt: skip
        folder, mark = tmp_path / module, tmp_path / f"{module}.txt"
        plant(folder, mark, before)
        for name in set(ours) - {module.partition(".")[0]}:
            (own(folder, name) / "__init__.py").write_text(f"open({str(mark)!r}, 'a').write(__name__)")
        given = {"METRICSWEEP_HOME": str(tmp_path / "home"), "METRICSWEEP_TOKEN": "short"}  # the API ends at once
        done = run_in(folder, "-m", module, *arguments, **given)
        if mark.exists() or "Traceback" in done.stderr:
            ran[module] = done.stderr + (mark.read_text() if mark.exists() else "")
    assert ran == {}


def test_a_folder_without_a_module_hides_nothing_of_a_wheel(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    assert hidden([str(tmp_path), str(ROOT)]) == []
    assert hidden([str(ROOT), str(own(tmp_path, "workers").parent)]) == []
