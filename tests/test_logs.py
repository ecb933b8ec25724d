"""Logs: lines of JSON with the ids of what they are about, and no secret in any form."""

import json
import logging
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from orchestrator.host.log_context import about, ids_of_now
from orchestrator.host.logs import JsonLines, LogForm, OwnLines, begin_logging
from orchestrator.service.service import Service
from orchestrator.settings import Secrets, Settings
from tests.inline_conductor import conduct
from tests.test_conductor import spec

SECRETS = ["hunter2-hunter2-hunter2", "p4ss/word"]


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, which is put back as it was."""
    found = logging.getLogger()
    handlers, level = list(found.handlers), found.level
    yield found
    found.handlers[:], found.level = handlers, level


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_record_is_one_line_of_json(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    begin_logging("json")
    with about(sweep=7, trial=None), about(trial=93):
        logging.getLogger("orchestrator.conduct").warning("two\nlines, \x1b[31m and %s", "a value")
    logging.getLogger("api").info("nothing about anything")
    first, second = lines(capsys)
    assert first.pop("at")
    assert first == {
        "level": "warning",
        "logger": "orchestrator.conduct",
        "message": "two\nlines, \x1b[31m and a value",
        "sweep": 7,
        "trial": 93,
    }
    assert second.keys() == {"at", "level", "logger", "message"}
    assert ids_of_now() == {}


def test_an_error_keeps_its_traceback_in_the_line(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    begin_logging("json")
    try:
        raise ValueError("no such class")
    except ValueError:
        logging.getLogger("api").exception("request failed")
    (said,) = lines(capsys)
    assert str(said["error"]).startswith("Traceback (most recent call last):")
    assert str(said["error"]).endswith("ValueError: no such class")


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_is_logged(root: logging.Logger, capsys: pytest.CaptureFixture[str], form: LogForm) -> None:
    """Whoever says it: in a message, in its values, or in an error that a library raised."""
    begin_logging(form, SECRETS)
    try:
        raise ConnectionError(f"postgresql://metricsweep:{SECRETS[1]}@db refused")
    except ConnectionError:
        logging.getLogger("library").exception("header %s", {"Authorization": f"Bearer {SECRETS[0]}"})
    logging.getLogger("library").info(SECRETS[0])
    said = capsys.readouterr().err
    assert not any(secret in said for secret in SECRETS)
    assert said.count("[secret]") == 3


def test_the_settings_say_what_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-bucket")
    for name in ("RAY_AUTH_TOKEN", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    url = "postgresql+psycopg://metricsweep:p4ss%2Fword@db:5432/metricsweep"
    settings = Settings(token=SecretStr(SECRETS[0]), database_url=url)
    assert Secrets(settings).hidden == [SECRETS[0], "p4ss/word", "of-the-bucket"]


def test_a_conductor_says_of_which_sweep_and_trial(
    service: Service, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    sweep = service.submissions.submit(spec()).id
    formatter, said = JsonLines(), list[dict[str, object]]()

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(json.loads(formatter.format(record)))

    caplog.set_level(logging.INFO)
    handler = Keep()
    logging.getLogger().addHandler(handler)
    try:
        conduct(settings)
    finally:
        logging.getLogger().removeHandler(handler)
    begun = [line for line in said if "begins on" in str(line["message"])]
    trials = {one.id for one in service.trials.page(sweep, None, None, None, 100).items}
    assert {line["sweep"] for line in begun} == {sweep}
    assert {line["trial"] for line in begun} == trials
    assert len({line["attempt"] for line in begun}) == len(trials)


def test_text_is_as_it_was() -> None:
    record = logging.LogRecord("api", logging.WARNING, __file__, 1, "one\ntwo\x1b", (), None)
    assert OwnLines("%(levelname)s: %(message)s").format(record) == "WARNING: one\n  two\\x1b"
