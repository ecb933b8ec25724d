"""Logs and terminals: lines of JSON, no secret in any form, and nothing that commands a terminal."""

import json
import logging
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from orchestrator.host import logs
from orchestrator.host.logs import about, begin_logging
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
    assert logs.ids_of_now() == {}


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_is_logged(root: logging.Logger, capsys: pytest.CaptureFixture[str], form: logs.LogForm) -> None:
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
    formatter, said = logs.JsonLines(), list[dict[str, object]]()

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
    trials = {one.id for one in service.store.trials.page(sweep, None, None, None, 100).items}
    assert {line["sweep"] for line in begun} == {sweep}
    assert {line["trial"] for line in begun} == trials
    assert len({line["attempt"] for line in begun}) == len(trials)


UNFIT = {
    "ESC": "\x1b[31m",
    "title": "\x1b]0;owned\x07",
    "C1": "\x9b31m",
    "NUL": "\0",
    "backspace": "a\bb",
    "carriage return": "safe\rforged",
    "override": "\u202egnp.exe",
    "isolate": "\u2066a\u2069",
    "line separator": "a\u2028b",
    "invisible": "a\u200bb\ufeff",
    "tag": "a\U000e0041b",
    "lone surrogate": "a\udc80b",
}
FIT = ["Größe λ=0.1 ↔ 日本 🙂", "two\nlines\tand a tab", "می\u200cخواهم", ""]


def test_what_commands_a_terminal_is_written_out() -> None:
    for name, text in UNFIT.items():
        said = logs.printable(text)
        assert said.isprintable(), name
        assert "\\" in said, name
        said.encode()
        assert json.loads(logs.printable_json(json.dumps([text], ensure_ascii=False))) == [text], name
        assert logs.printable_json(json.dumps([text], ensure_ascii=False)).isprintable(), name


def test_what_is_fit_stays() -> None:
    assert [logs.printable(text) for text in FIT] == FIT
    assert not any("\n" in logs.one_line(text) for text in FIT)


def record(message: str, *values: object, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("some.where", level, __file__, 1, message, values, None)


def test_nobody_forges_a_line_of_a_log() -> None:
    forged = "/v1\n2026-01-01 INFO api: all is well\x1b[2K"
    lines = logs.OwnLines("%(levelname)s %(message)s").format(record("GET %s", forged)).splitlines()
    assert lines == ["WARNING GET /v1", "  2026-01-01 INFO api: all is well\\x1b[2K"]


def test_a_repeated_warning_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("orchestrator.host.logs.time", SimpleNamespace(monotonic=lambda: now[0]))
    collapse = logs.Collapse()
    let = [one for n in range(5_000) if collapse.filter(one := record("client %s failed", n))]
    assert len(let) == logs.SAME
    assert "counted" in let[-1].getMessage()
    assert collapse.filter(record("another"))
    assert all(collapse.filter(record("it only informs", level=logging.INFO)) for _ in range(100))
    now[0] += 61
    again = record("client %s failed", 1)
    assert collapse.filter(again)
    assert f"({5_000 - logs.SAME} more like this" in again.getMessage()
