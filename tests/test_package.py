"""`import metricsweep`: the client from any folder, and what is said where another package has a name of ours."""

import os
import subprocess
import sys
from pathlib import Path

import metricsweep
import pytest

from orchestrator.host.packages import hidden
from tests.api.conftest import TOKEN, app, service, settings, url  # noqa: F401 - fixtures
from tests.conftest import ROOT


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
    with pytest.raises(metricsweep.Unreachable, match="nothing serves"):
        metricsweep.connect(home=tmp_path / "nothing")


def test_the_environment_names_the_server(url: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("METRICSWEEP_URL", url)
    monkeypatch.setenv("METRICSWEEP_TOKEN", TOKEN)
    with metricsweep.connect() as client:
        assert client.url == url


def test_it_is_imported_from_any_folder(tmp_path: Path) -> None:
    done = run_in(tmp_path, "-c", "import metricsweep; print(metricsweep.connect.__name__, metricsweep.__version__)")
    assert (done.returncode, done.stdout.split()[0]) == (0, "connect"), done.stderr


@pytest.mark.parametrize("name", ["workers", "orchestrator", "dashboards", "api"])
def test_a_notebook_beside_a_package_of_that_name_is_told(tmp_path: Path, name: str) -> None:
    theirs = own(tmp_path, name)
    done = run_in(tmp_path, "-c", "import metricsweep")
    assert done.returncode == 1
    said = f"ImportError: {theirs} comes before metricsweep's own package '{name}' in {ROOT}"
    assert said in done.stderr


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("-m", "orchestrator", "healthy"), "workers"),
        (("-m", "api"), "dashboards"),
        (("-c", "from api.cli import main; main()", "serve"), "orchestrator"),
    ],
)
def test_what_starts_beside_one_is_refused(tmp_path: Path, command: tuple[str, ...], name: str) -> None:
    """As by the installed command, whose path has no current folder, while the processes that it starts have."""
    theirs = own(tmp_path, name)
    safe = {"PYTHONPATH": str(ROOT)} if command[0] == "-c" else {}
    done = run_in(tmp_path, *(("-I",) if command[0] == "-c" else ()), *command, **safe)
    assert done.returncode == 1, done.stderr
    assert f"{theirs} comes before metricsweep's own package '{name}'" in done.stderr
    assert not (tmp_path / ".metricsweep" / "metricsweep.db").exists()


def test_a_folder_without_a_module_hides_nothing_of_a_wheel(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    assert hidden([str(tmp_path), str(ROOT)]) == []
    assert hidden([str(ROOT), str(own(tmp_path, "workers").parent)]) == []
