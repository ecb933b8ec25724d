"""The wheel, installed into an empty folder away from the source, migrates, serves and renders."""

import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.host.identity import made_for
from tests import guide_site
from tests.conftest import ROOT
from tests.ports import free_port
from tests.served import until


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, without what it depends on: that is here already."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy, since setuptools leaves its build folder beside the source
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
from orchestrator.service.service import Service
from orchestrator.settings import Settings
service = Service.open(Settings())
print(orchestrator.__file__)
print(len(service.catalog().entries), len(formats.names()))
print("<html" in dashboards.sweeps.sweeps_page(service.sweeps.page(None, None, None, 10), state=None, name=None))
print(dashboards.rendering.static("style.css") is not None)
print(sum(one.count for one in service.published()))
print(dashboards.catalog.guide_file("search.html") is not None)
"""
    place, counts, page, style, published, guide = run_from(installed, tmp_path, code).splitlines()
    assert Path(place).is_relative_to(installed)
    parts, formats = (int(number) for number in counts.split())
    assert parts > 30
    assert formats >= 6
    assert (page, style) == ("True", "True")
    assert published == "1618"
    assert guide == "True"


@pytest.fixture
def api(installed: Path, tmp_path: Path) -> Iterator[str]:
    port = free_port()
    environment = {
        **os.environ, "PYTHONPATH": str(installed), "METRICSWEEP_HOME": str(tmp_path), "METRICSWEEP_PORT": str(port),
    }  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "api"], cwd=tmp_path, env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: answers(url), "the API answers")
        yield url
    finally:
        process.terminate()
        process.wait(120)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_it_takes_a_sweep_from_a_notebook(api: str, installed: Path, tmp_path: Path) -> None:
    code = f"""
import metricsweep
print(metricsweep.__file__)
with metricsweep.connect({api!r}, {made_for(tmp_path).secret!r}) as client:
    number = client.submit(open({str(ROOT / "sweeps" / "digits.yaml")!r}, "rb").read()).id
    print(number, client.sweep(number).name, len(client.catalog().entries) > 30)
"""
    place, found = run_from(installed, tmp_path, code).splitlines()
    assert Path(place) == installed / "metricsweep" / "__init__.py"
    assert found == "1 digits True"
    assert not (installed / "api" / "package").exists()
    told = {"Authorization": f"Bearer {made_for(tmp_path).secret}"}
    with urllib.request.urlopen(urllib.request.Request(f"{api}/", headers=told)) as answer:
        assert b"digits" in answer.read()
    with urllib.request.urlopen(f"{api}/static/vega.js") as answer:
        assert len(answer.read()) > 100_000
