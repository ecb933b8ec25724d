"""Text from elsewhere in a terminal, in JSON and in a log."""

import json
import logging
from types import SimpleNamespace

import pytest

from orchestrator.host.logs import SAME, Collapse, OwnLines
from orchestrator.host.printable import one_line, printable, printable_json
from workers.catalog import unknown

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


@pytest.mark.parametrize("text", UNFIT.values(), ids=UNFIT)
def test_what_commands_a_terminal_is_written_out(text: str) -> None:
    said = printable(text)
    assert said.isprintable()
    assert "\\" in said
    said.encode()
    assert json.loads(printable_json(json.dumps([text], ensure_ascii=False))) == [text]
    assert printable_json(json.dumps([text], ensure_ascii=False)).isprintable()


@pytest.mark.parametrize("text", FIT)
def test_what_is_fit_stays(text: str) -> None:
    assert printable(text) == text
    assert "\n" not in one_line(text)


def record(message: str, *values: object, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("some.where", level, __file__, 1, message, values, None)


def test_nobody_forges_a_line_of_a_log() -> None:
    forged = "/v1\n2026-01-01 INFO api: all is well\x1b[2K"
    lines = OwnLines("%(levelname)s %(message)s").format(record("GET %s", forged)).splitlines()
    assert lines == ["WARNING GET /v1", "  2026-01-01 INFO api: all is well\\x1b[2K"]


def test_a_record_has_an_end() -> None:
    assert len(OwnLines("%(message)s").format(record("%s", "x" * 1_000_000))) < 21_000


def test_a_repeated_warning_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("orchestrator.host.logs.time", SimpleNamespace(monotonic=lambda: now[0]))
    collapse = Collapse()
    let = [one for n in range(5_000) if collapse.filter(one := record("client %s failed", n))]
    assert len(let) == SAME
    assert "counted" in let[-1].getMessage()
    assert collapse.filter(record("another"))
    assert all(collapse.filter(record("it only informs", level=logging.INFO)) for _ in range(100))
    now[0] += 61
    again = record("client %s failed", 1)
    assert collapse.filter(again)
    assert f"({5_000 - SAME} more like this" in again.getMessage()


def test_near_misses() -> None:
    assert unknown("loss", "tripplet", ["triplet", "margin"]) == "no loss named 'tripplet'; did you mean 'triplet'?"
    assert unknown("loss", "xyz", ["triplet", "margin"]) == "no loss named 'xyz'; expected one of 'margin', 'triplet'"
    assert unknown("loss", "xyz", []) == "no loss named 'xyz'; there is none"
