"""What the command line prints: no foreign text reaches the terminal as a command; progress; an interrupted run."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import BaseModel

from api.client import Client
from api.commands import terminal
from api.commands.serve import unfinished
from api.commands.terminal import Output, print_json, print_markdown, print_rows
from api.commands.watch import follow, verdict
from tests.api.conftest import HTML, TOKEN
from tests.api.played import SPEC, Conductor, Into
from tests.api.test_cli import metricsweep
from tests.api.test_discovery import listening

EVIL = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e[red]\r"


class SweepName(BaseModel):
    name: str


def harmless(text: str) -> bool:
    return text.replace("\n", "").replace("\t", "").isprintable()


def test_the_values_of_options(url: str) -> None:
    for arguments in (
        ["show", EVIL], ["list", "--state", EVIL], ["list", f"--{EVIL}"], [EVIL], ["submit", f"{EVIL}.yaml"],
        ["list", "--url", f"http://{EVIL}"], ["table", "1", EVIL], ["table", "1", "--format", EVIL], ["catalog", EVIL],
        ["catalog", "loss", EVIL], ["published", EVIL], ["compare", "1", "2", "--table", EVIL],
        ["submit", "-", "--set", EVIL],
    ):  # fmt: skip
        answer = metricsweep(url, *arguments)
        assert answer.exit_code in {1, 2, 3}, arguments
        assert answer.output
        assert harmless(answer.output), repr(answer.output)


@pytest.fixture
def lying(http: TestClient, conductor: Conductor) -> Iterator[str]:
    """The address of a server whose every text is hostile, in the shape of a real server's answers."""
    conductor.submit(http)
    conductor.fail()
    problem = {"trial": 1, "labels": {EVIL: EVIL}, "state": "failed", "message": EVIL, "log": EVIL}
    ended = {"state": "failed", "name": EVIL, "error": EVIL, "notice": EVIL, "tables": [EVIL], "mlflow_url": EVIL}
    sweep = http.get("/v1/sweeps/1").json()
    spec = sweep["spec"] | {"description": EVIL}
    lie = {**sweep, **ended, "spec": spec, "problems": [sweep["problems"][0] | problem]}
    trial = {"error": EVIL, "sweep_name": EVIL, "labels": {EVIL: EVIL}, "metrics": {EVIL: 0.5}}
    answers = {
        "/v1/sweeps": {"items": [lie], "next_cursor": None}, "/v1/sweeps/1": lie,
        "/v1/trials/1": {**http.get("/v1/trials/1").json(), **trial},
    }  # fmt: skip
    missing = {"status": 404, "detail": EVIL, "problems": [{"path": EVIL, "message": EVIL}]}

    def answer(path: str) -> tuple[int, str, bytes]:
        found = answers.get(path.partition("?")[0])
        status, kind = (200, "application/json") if found else (404, "application/problem+json")
        return status, kind, json.dumps(found or missing).encode()

    with listening(answer) as server:
        yield server.url


def test_the_answers_of_a_server(lying: str) -> None:
    for arguments in (
        "list", "list --json", "show 1", "show 1 --json", "show trial:1", "watch 1", "table 1", "cancel 1",
    ):  # fmt: skip
        answer = metricsweep(lying, *arguments.split())
        assert harmless(answer.output), repr(answer.output)
        assert "owned" in answer.output or "501" in answer.output, arguments
        if "--json" in arguments:
            said = json.loads(answer.stdout)
            assert (said[0] if isinstance(said, list) else said)["name"] == EVIL, "whole, for a script"


def test_a_bar_and_a_table_in_a_terminal(lying: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """rich's own colours and movements are there; the sweep's are written out."""
    text = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(terminal, "out", Into(text, terminal=True))
    with Client(lying) as client:
        follow(client, 1, Into(text, terminal=True))
    print_markdown(f"| {EVIL} |\n| --- |\n| [safe](http://evil.example/) |\n")
    said = text.getvalue()
    assert "owned" in said
    assert "http://evil.example/" in said
    assert "[red]" in said
    for part in ("\x1b]0;", "\x07", "\x1b[31m", "\x9b", "\u202e"):
        assert part not in said


def test_columns_stand_below_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"id": "7", "name": "a\nb"}, {"id": "12", "name": "日本"}], numbers=("id",))
    assert capsys.readouterr().out.splitlines() == ["id  name", " 7  a\\nb", "12  日本"]
    print_rows([])
    assert capsys.readouterr().out in {"", "\n"}


def test_a_dumb_terminal_is_shown_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", text := io.StringIO())
    text.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.delenv("NO_COLOR", raising=False)
    for kind in ("xterm", "dumb"):
        monkeypatch.setenv("TERM", kind)
        Output().print(kind, style="bold")
    assert text.getvalue() == "\x1b[1mxterm\x1b[0m\ndumb\n"


def test_text_json_and_markdown_escape_what_an_encoding_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    stream.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    Output().print("γ = 1")
    assert raw.getvalue() == b"\\u03b3 = 1\n"
    raw.truncate(raw.seek(0))
    print_json(SweepName(name="損失 😀 é"))
    stream.flush()
    assert json.loads(raw.getvalue()) == {"name": "損失 😀 é"}
    print_markdown("λ = **0.1**")
    stream.flush()
    assert b"\\u03bb" in raw.getvalue()


def test_near_misses_of_names(url: str, spec: Path) -> None:
    metricsweep(url, "submit", spec)
    for arguments, meant in {
        ("catalog", "loss", "tripplet"): "'triplet'", ("catalog", "los"): "'loss'", ("table", "1", "mian"): "'main'",
        ("table", "1", "--format", "latx"): "'latex'", ("list", "--name", "four-trails"): "'four-trials'",
        ("published", "SEC-T33"): "'SEC-T3'", ("sbumit",): "'submit'",
    }.items():  # fmt: skip
        said = metricsweep(url, *arguments).stderr
        assert "did you mean" in said.lower(), arguments
        assert meant in said


def test_a_description_is_shown(url: str, spec: Path, http: TestClient) -> None:
    spec.write_text(SPEC + "description: |\n  What SEC adds,\n  on <digits>.\n")
    metricsweep(url, "submit", spec)
    assert "about     What SEC adds,\n          on <digits>." in metricsweep(url, "show", 1).stdout
    page = http.get("/sweeps/1", headers=HTML).text
    assert "on &lt;digits&gt;." in page


NAMED = SPEC.replace("four-trials", "'four [red]trials[/red]'")


def test_progress_says_what_ends_how(url: str, conductor: Conductor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal is 80 columns wide whatever is asked for
    monkeypatch.setenv("COLUMNS", "160")
    said: dict[bool, str] = {}
    with Client(url, TOKEN) as client:
        sweep = client.submit(NAMED.encode()).id
        conductor.begin()
        conductor.finish()
        conductor.finish(diverged=True)
        for _ in range(2):
            conductor.fail()
        conductor.settle()
        for terminal_there in (True, False):
            text = io.StringIO()
            console = Into(text, terminal_there)
            assert verdict(follow(client, sweep, console), console) == 1
            said[terminal_there] = text.getvalue()
        ended, text = client.sweep(sweep), io.StringIO()
        verdict(ended.model_copy(update={"error": "no room", "problems": 12 * ended.problems[:1]}), Into(text))
        assert [text.getvalue().count(part) for part in (" no room\n", "  trial ", "and 2 more;")] == [1, 10, 1]
    for terminal_there, written in said.items():
        for part in ("50 % of 80 steps", "2/4", "2 failed", "1 diverged", "no such thing"):  # what failed is never done
            assert part in written, part
        assert terminal_there == ("\x1b[" in written)
    assert "[red]trials" in said[True], "a name is no markup"


def test_an_interrupted_run_is_found(url: str, conductor: Conductor) -> None:
    with Client(url, TOKEN) as client:
        client.submit(SPEC.replace("[0, 1]", "[2, 3]").encode())
        assert unfinished(client, "four-trials", SPEC.encode()) is None
        sweep = client.submit(SPEC.encode()).id
        assert unfinished(client, "four-trials", SPEC.encode()) == sweep
        conductor.begin()
        assert unfinished(client, "four-trials", SPEC.encode()) == sweep
        conductor.finish(times=4)
        conductor.finish(times=4)
        conductor.settle()
        assert unfinished(client, "four-trials", SPEC.encode()) is None
