"""`import metricsweep`: the client from any folder, and what is said where another package has a name of ours."""

import os
import subprocess
import sys
from pathlib import Path

import metricsweep
import pytest

from orchestrator.host.checks import hidden
from tests.api.conftest import TOKEN, app, service, settings, url  # noqa: F401 - fixtures
from tests.conftest import ROOT
from tests.served import plant


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
