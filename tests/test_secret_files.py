"""Secrets in files: read anew when somebody exchanges them, and never lost to a file that is half written."""

import logging
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import ValidationError

from orchestrator.host.files import SecretFile, one_line
from orchestrator.host.logs import OwnLines
from orchestrator.record.database import Database
from orchestrator.settings import SECRET_FILES, Secrets, Settings, problems
from orchestrator.views.errors import MetricsweepError

OLD, NEW = "the-token-of-before-it", "the-token-that-follows"


def exchange(file: Path, text: str) -> None:
    """As orchestrators do it: all at once, by another name."""
    aside = file.with_name("aside")
    aside.write_text(text)
    aside.replace(file)


def test_a_file_is_read_anew_when_it_is_another_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "secret"
    found = SecretFile("METRICSWEEP_X_FILE", file, one_line)
    with pytest.raises(MetricsweepError, match=r"METRICSWEEP_X_FILE  /.*: No such file"):
        found.value()
    exchange(file, f"{OLD}\n")
    assert found.value() == OLD
    with caplog.at_level(logging.INFO):
        for wrong, message in (
            ("", "is empty"),
            ("two\nlines", "more than one line"),
            ("ä" * 9, "ASCII"),
            ("x" * 70_000, "bytes"),
        ):
            exchange(file, wrong)
            assert (found.value(), found.value()) == (OLD, OLD)
            assert caplog.text.count(message) == 1, "told once"
        file.unlink()
        assert (found.value(), found.value()) == (OLD, OLD)
        assert caplog.text.count("No such file") == 1
        exchange(file, NEW)
        assert found.value() == NEW
    assert not {OLD, NEW} & set(caplog.text.split())
    record = logging.LogRecord("x", logging.INFO, "", 0, f"{OLD} and {NEW}", None, None)
    assert OwnLines("%(message)s").format(record) == "[secret] and [secret]", "also the one that was replaced"


def test_a_link_that_leads_elsewhere_is_another_file(tmp_path: Path) -> None:
    """Kubernetes mounts a secret as a link to a folder, which it exchanges."""
    for name, text in (("one", OLD), ("two", NEW)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(text)
    (tmp_path / "data").symlink_to("one")
    found = SecretFile("METRICSWEEP_X_FILE", tmp_path / "data" / "token", one_line)
    assert found.value() == OLD
    (tmp_path / "aside").symlink_to("two")
    (tmp_path / "aside").replace(tmp_path / "data")
    assert found.value() == NEW


def test_a_token_file_holds_one_or_two_long_tokens(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{OLD}\n{NEW}\n")
    assert Secrets(Settings(token_file=file)).tokens == (OLD, NEW)
    assert {OLD, NEW} <= set(Secrets(Settings(token_file=file)).hidden)
    for number, (text, said) in enumerate((("short", "at least 16"), (f"{OLD} " * 3, "found 3"), ("", "found 0"))):
        (wrong := tmp_path / str(number)).write_text(text)
        with pytest.raises(MetricsweepError, match=f"METRICSWEEP_TOKEN_FILE.*{said}"):
            _ = Secrets(Settings(token_file=wrong)).tokens
    with pytest.raises(ValidationError) as error:
        Settings(token=OLD, token_file=file)
    assert problems(error.value) == ["METRICSWEEP_TOKEN_FILE  METRICSWEEP_TOKEN is set too; name one of them"]


def test_every_file_of_a_secret_is_in_the_list() -> None:
    assert {name for name in Settings.model_fields if name.endswith("_file")} == set(SECRET_FILES)


def test_each_new_connection_to_the_database_has_the_password_of_now(tmp_path: Path) -> None:
    file, shown = tmp_path / "password", list[Any]()
    settings = Settings(database_url="postgresql+psycopg://ann@127.0.0.1/x", database_password_file=file)
    database = Database(settings.database, lambda: Secrets(settings).database_password)

    @sa.event.listens_for(database.engine, "do_connect", insert=False)
    def _refuse(dialect: Any, record: Any, args: Any, parameters: dict[str, Any]) -> None:
        shown.append(parameters.get("password"))
        raise ConnectionError

    for text in (OLD, NEW):
        exchange(file, text)
        with pytest.raises(ConnectionError):
            database.engine.connect()
    assert shown == [OLD, NEW]
    database.close()


def test_mlflow_s_client_gets_the_content_of_its_files(tmp_path: Path) -> None:
    for name in ("token", "password"):
        exchange(tmp_path / name, f"{name} of before")
    settings = Settings(mlflow_token_file=tmp_path / "token", mlflow_password_file=tmp_path / "password")
    exchange(tmp_path / "token", NEW)
    assert Secrets(settings).mlflow_login == {
        "MLFLOW_TRACKING_TOKEN": NEW,
        "MLFLOW_TRACKING_PASSWORD": "password of before",
    }
    assert Secrets(Settings()).mlflow_login == {}
