"""A home is backed up while it is written to, and restored whole or not at all."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.__main__ import main as api
from api.cli import app as commands
from orchestrator.__main__ import main as conductor
from orchestrator.record.store import Store
from orchestrator.service.backups import MANIFEST, back_up, restore
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import ConflictError, DamagedError, UnavailableError
from tests.api.played import SPEC
from tests.record.sample import lease, run_all, started

QUIET = print
FILE = Path("storage/a/1/best.safetensors")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home with a sweep that ended, and files in its storage."""
    for name in ("DATABASE_URL", "STORAGE_URL"):
        monkeypatch.delenv(f"METRICSWEEP_{name}", raising=False)
    settings = Settings(home=tmp_path / "home")
    settings.resolved_home.mkdir(mode=0o700)
    store = Store.open(settings.database)
    fence = lease(store)
    started(store, fence)
    run_all(store, fence)
    store.close()
    for name in ("a/1/best.safetensors", "a/1/curves.json", "b/2/last.ckpt"):
        file = settings.resolved_home / "storage" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(100_000))
    (settings.resolved_home / "storage" / "a" / "link").symlink_to("/etc/passwd")
    (settings.resolved_home / "api.token").write_text("secret of the home")
    return settings


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in (folder / "storage").rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_what_is_restored_is_what_was_there(home: Settings, tmp_path: Path) -> None:
    writing = sqlite3.connect(home.resolved_home / "metricsweep.db", isolation_level=None)
    writing.execute("BEGIN IMMEDIATE")
    writing.execute("UPDATE sweep SET name = 'half done'")
    made = back_up(home, tmp_path / "backup", QUIET)
    writing.execute("ROLLBACK")
    assert len(made.files) == 4
    assert not any("link" in one.path or "token" in one.path for one in made.files), "no links, and no secrets"
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "backup").rglob("*"))
    there = Settings(home=tmp_path / "there")
    restore(tmp_path / "backup", there, QUIET)
    assert contents(there.resolved_home) == contents(home.resolved_home)
    before, after = Store.open(home.database), Store.open(there.database)
    assert after.sweeps.page() == before.sweeps.page()
    assert after.sweeps.page()[0].items[0].name != "half done"
    assert after.trials.page(1) == before.trials.page(1)
    assert list(after.audit.after(0)) == list(before.audit.after(0))
    before.close()
    after.close()


def test_nothing_is_written_over(home: Settings, tmp_path: Path) -> None:
    back_up(home, tmp_path / "backup", QUIET)
    with pytest.raises(ConflictError, match="not empty"):
        back_up(home, tmp_path / "backup", QUIET)
    with pytest.raises(ConflictError, match="not empty"):
        restore(tmp_path / "backup", home, QUIET)
    with pytest.raises(ConflictError, match="unset METRICSWEEP_DATABASE_URL"):
        restore(tmp_path / "backup", Settings(home=tmp_path / "x", database_url="sqlite:///x.db"), QUIET)
    with pytest.raises(ConflictError, match="unset METRICSWEEP_STORAGE_URL"):
        restore(tmp_path / "backup", Settings(home=tmp_path / "x", storage_url=str(tmp_path / "y")), QUIET)


def test_a_bucket_that_does_not_answer_is_reported_in_a_sentence(home: Settings, tmp_path: Path) -> None:
    away = {"METRICSWEEP_STORAGE_URL": "s3://bucket/x?endpoint_override=127.0.0.1:1&scheme=http", "COLUMNS": "300"}
    away |= {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
    words = ["backup", str(tmp_path / "backup"), "--home", str(home.resolved_home)]
    result = CliRunner().invoke(commands, words, env=away)
    assert result.exit_code == 1, result.exception
    assert result.output.startswith("metricsweep: its bucket in s3://bucket/x: ")
    assert not (tmp_path / "backup" / MANIFEST).exists()


def test_what_is_damaged_is_not_restored(home: Settings, tmp_path: Path) -> None:
    def rewritten(folder: Path, path: str | None) -> None:
        said = json.loads((folder / MANIFEST).read_text())
        if path:
            said["files"][1]["path"] = path
        else:
            said["files"] = []
        (folder / MANIFEST).write_text(json.dumps(said))

    def flipped(folder: Path) -> None:
        content = bytearray((folder / FILE).read_bytes())
        content[500] ^= 1
        (folder / FILE).write_bytes(content)

    damages: dict[str, Callable[[Path], object]] = {
        "flipped": flipped,
        "cut": lambda folder: os.truncate(folder / FILE, 10),
        "missing": lambda folder: (folder / FILE).unlink(),
        "unfinished": lambda folder: (folder / MANIFEST).unlink(),
        "nothing": lambda folder: rewritten(folder, None),
        "outside": lambda folder: rewritten(folder, "storage/../../out"),
        "absolute": lambda folder: rewritten(folder, "/etc/passwd"),
    }
    back_up(home, tmp_path / "whole", QUIET)
    for name, damage in damages.items():
        there = Settings(home=tmp_path / "there")
        damage(shutil.copytree(tmp_path / "whole", tmp_path / name))
        with pytest.raises((DamagedError, FileNotFoundError)):
            restore(tmp_path / name, there, QUIET)
        assert not there.resolved_home.exists(), name
        assert not (tmp_path / "out").exists(), name


KILLED = """
import os, signal, sys
from pathlib import Path
from orchestrator.service import backups
from orchestrator.settings import Settings
def tell(name):
    if name == "storage/a/1/curves.json":
        os.kill(os.getpid(), signal.SIGKILL)
folder, home = map(Path, sys.argv[2:])
backups.back_up(Settings(home=home), folder, tell) if sys.argv[1] == "backup" else backups.restore(
    folder, Settings(home=home), tell
)
"""


def test_a_kill_in_the_middle_leaves_nothing_that_looks_whole(home: Settings, tmp_path: Path) -> None:
    folder, there = tmp_path / "backup", tmp_path / "there"

    def killed(what: str, where: Path) -> None:
        command = [sys.executable, "-c", KILLED, what, str(folder), str(where)]
        assert subprocess.run(command, check=False).returncode == -9

    killed("backup", home.resolved_home)
    with pytest.raises(DamagedError, match="not finished"):
        restore(folder, Settings(home=there), QUIET)
    shutil.rmtree(folder)
    back_up(home, folder, QUIET)
    killed("restore", there)
    assert not there.exists()
    restore(folder, Settings(home=there), QUIET)
    assert contents(there) == contents(home.resolved_home)
    assert not (tmp_path / "there.restoring").exists()


def test_an_older_release_refuses_a_newer_database(
    home: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By one sentence, whichever command opens it, and it stays as it is."""
    with sqlite3.connect(home.resolved_home / "metricsweep.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    sentence = "not made by this version of metricsweep or an older one: its schema is version 9999, this release's is"
    with pytest.raises(UnavailableError, match=sentence):
        Service.open(home)
    back_up(home, tmp_path / "backup", QUIET)
    with pytest.raises(UnavailableError, match=sentence):
        restore(tmp_path / "backup", Settings(home=tmp_path / "there"), QUIET)
    assert not (tmp_path / "there").exists()
    spec = tmp_path / "four.yaml"
    spec.write_text(SPEC)
    for words in (
        ["users"], ["projects", "add", "x"], ["tokens"], ["audit"], ["projects", "quota"], ["serve"],
        ["run", str(spec)],
    ):  # fmt: skip
        result = CliRunner().invoke(commands, [*words, "--home", str(home.resolved_home)], env={"COLUMNS": "300"})
        assert result.exit_code != 0, words
        assert sentence in result.output
        assert "Traceback" not in result.output
    monkeypatch.setenv("METRICSWEEP_HOME", str(home.resolved_home))
    study = ["study", "1", "--out", str(tmp_path / "study.log")]
    for program in (
        api, *(lambda words=words: conductor(words) for words in (["conduct"], ["run", str(spec)], ["healthy"], study))
    ):  # fmt: skip
        assert program() == 1
        assert sentence in capsys.readouterr().err
    assert not (home.resolved_home / "logs").exists(), "serve has started nothing"
    connection = sqlite3.connect(home.resolved_home / "metricsweep.db")
    assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("9999",)]
    connection.close()
