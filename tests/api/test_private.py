"""What is closed to the other accounts of a machine: home folders, secrets, and all that is written."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from api.local.serve import Stack
from orchestrator.host.files import close_files, own_folder, own_secret
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import MetricsweepError
from tests.api.test_serve import Told, elsewhere, ours


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_home_that_an_earlier_version_left_open_is_closed_with_one_warning(tmp_path: Path) -> None:
    home = tmp_path / "home"
    Service.open(Settings(home=home)).close()
    (home / "logs").mkdir()
    left = [home / name for name in ("metricsweep.db", "metricsweep.db-wal", "mlflow.db", "serve.json", "logs/api.log")]
    for path in left:
        path.touch()
        path.chmod(0o644)
    (home / "logs").chmod(0o755)
    home.chmod(0o755)
    for times in (1, 0):
        reported = Told()
        with Stack(elsewhere(home), reported, ours(tmp_path)) as stack:
            stack.start()
            assert [mode(path) for path in (home, home / "logs")] == [0o700, 0o700]
            assert {path: mode(path) for path in left if path.exists() and mode(path) & 0o077} == {}
        said = [state for name, state in reported if name == "serve"]
        assert said == [f"closed {home}, which was open to other accounts"][:times]


def test_what_supervised_processes_write_is_closed(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with Stack(elsewhere(tmp_path / "home"), children=ours(tmp_path / "written")) as stack:
            stack.start()
    finally:
        os.umask(before)
    files = [path for folder in ("home", "written") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert {"api.json", "conductor.log", "serve.json", "serve.lock"} <= {path.name for path in files}
    assert {path.name: oct(mode(path)) for path in files if mode(path) & 0o077} == {}


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 54_321)
    for use in (own_folder, lambda folder: Service.open(Settings(home=folder))):
        with pytest.raises(MetricsweepError, match="belongs to another user"):
            use(tmp_path / "theirs")


def test_a_secret_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_secret(tmp_path / "secret")
    (tmp_path / "empty").touch()
    with pytest.raises(MetricsweepError, match="is empty; remove it"):
        own_secret(tmp_path / "empty")
    monkeypatch.setattr(os, "getuid", lambda: 54_321)
    with pytest.raises(MetricsweepError, match="belongs to another user"):
        own_secret(tmp_path / "secret")


def test_many_that_make_a_secret_at_once_have_the_same(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def make(_: int) -> str:
        together.wait()
        return own_secret(tmp_path / "secret")

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(make, range(8)))) == 1
    assert mode(tmp_path / "secret") == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.touch()
    outside.chmod(0o644)
    (tmp_path / "link").symlink_to(outside)
    assert close_files([tmp_path / "link", tmp_path / "gone"]) == []
    assert mode(outside) == 0o644
