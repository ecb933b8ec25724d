"""Paths with characters that mean something in a URL, and `~` where no shell replaces it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from api.local.processes import mlflow_server, settings_environment
from orchestrator.record.store import Store
from orchestrator.record.transfer import snapshot
from orchestrator.settings import Settings
from workers.__main__ import main

NAMES = ("what?a", "what?b", "no#1", "100%41", "a b", "ü&=@:+", "new\nline")


def test_the_database_lies_in_its_home_whatever_the_home_is_called(tmp_path: Path) -> None:
    for name in NAMES:
        settings = Settings(home=tmp_path / name)
        Store.open(settings.database).close()
        assert (tmp_path / name / "metricsweep.db").stat().st_size > 0
        snapshot(settings.database, tmp_path / name / "copy?.db", lambda: None)
        with closing(sqlite3.connect(tmp_path / name / "copy?.db")) as copy:
            assert copy.execute("SELECT count(*) FROM sweep").fetchone() == (0,)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(NAMES)


def test_the_children_of_serve_get_the_same_files(tmp_path: Path) -> None:
    for name in NAMES:
        told = settings_environment(Settings(home=tmp_path / name))
        assert sa.make_url(told["METRICSWEEP_DATABASE_URL"]).database == str(tmp_path / name / "metricsweep.db")
        command = mlflow_server(tmp_path / name, tmp_path / "socket").command
        store = command[command.index("--backend-store-uri") + 1]
        assert sa.make_url(store).database == str(tmp_path / name / "mlflow.db")
        artifacts = command[command.index("--artifacts-destination") + 1]
        assert Settings(storage_url=artifacts).storage == tmp_path / name / "mlartifacts"


def test_a_tilde_is_the_home_folder_of_the_user_in_every_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "what?"))
    paths = [name for name, one in Settings.model_fields.items() if "Path" in str(one.annotation)]
    assert {"home", "data", "parts", "token_file"} <= {*paths}
    for name in paths:
        monkeypatch.setenv(f"METRICSWEEP_{name.upper()}", f"~/of {name}")
    monkeypatch.setenv("METRICSWEEP_STORAGE_URL", "~/storage")
    monkeypatch.setenv("METRICSWEEP_DATABASE_URL", "sqlite:///~/m.db")
    settings = Settings()
    for name in paths:
        assert getattr(settings, name) == tmp_path / "what?" / f"of {name}"
    assert settings.storage == tmp_path / "what?" / "storage"
    assert sa.make_url(settings.database).database == str(tmp_path / "what?" / "m.db")


def test_the_workers_command_means_the_same_by_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "parts" / "losses").mkdir(parents=True)
    (tmp_path / "parts" / "losses" / "mine.py").write_text('class Mine:\n    """A loss."""\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("METRICSWEEP_DATA", "~/d")
    monkeypatch.setenv("METRICSWEEP_PARTS", "~/parts")
    main(["catalog"])
    assert "mine" in capsys.readouterr().out
    main(["data", "verify", "image_folder", "--set", "folder=x"])
    assert str(tmp_path / "d") in capsys.readouterr().err
