"""Progress in a terminal and elsewhere, and what `run` finds of an interrupted run."""

import io
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.cli import app
from api.client import Client
from api.commands import tables, terminal
from api.commands.local import unfinished
from api.commands.terminal import duration
from api.commands.watch import follow, verdict
from tests.api.conftest import TOKEN
from tests.api.played import SPEC, Conductor, Into

NAMED = SPEC.replace("four-trials", "'four [red]trials[/red]'")


@pytest.mark.parametrize("looked_at", [True, False])
def test_progress_says_what_ends_how(
    url: str, conductor: Conductor, looked_at: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal is 80 columns wide whatever is asked for
    monkeypatch.setenv("COLUMNS", "160")
    text = io.StringIO()
    console = Into(text, looked_at)
    with Client(url, TOKEN) as client:
        sweep = client.submit(NAMED.encode()).id
        conductor.begin()
        conductor.finish()
        conductor.finish(diverged=True)
        for _ in range(2):
            conductor.fail()
        conductor.settle()
        ended = follow(client, sweep, console)
        assert verdict(ended, console) == 1
    said = text.getvalue()
    assert "50 % of 80 steps" in said  # what failed is never done
    assert "2/4" in said
    assert "2 failed" in said
    assert "1 diverged" in said
    assert "no such thing" in said
    assert looked_at == ("\x1b[" in said)
    if looked_at:
        assert "[red]trials" in said  # a name is no markup


def test_a_table_is_laid_out_for_the_eye(url: str, conductor: Conductor, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(terminal, "out", Into(text, terminal=True))
    with Client(url, TOKEN) as client:
        sweep = client.submit(SPEC.encode()).id
        conductor.begin()
        conductor.finish()
        tables.print_table(client, sweep, "main")
    assert "Triplet" in text.getvalue()
    assert "|" not in text.getvalue()


def test_an_interrupted_run_is_found(url: str, conductor: Conductor) -> None:
    with Client(url, TOKEN) as client:
        client.submit(SPEC.replace("[0, 1]", "[2, 3]").encode())
        assert unfinished(client, "four-trials", SPEC.encode()) is None
        sweep = client.submit(SPEC.encode()).id
        assert unfinished(client, "four-trials", SPEC.encode()) == sweep
        conductor.begin()
        assert unfinished(client, "four-trials", SPEC.encode()) == sweep
        for _ in range(4):
            conductor.finish()
        for _ in range(4):
            conductor.finish()
        conductor.settle()
        assert unfinished(client, "four-trials", SPEC.encode()) is None


def test_run_refuses_a_wrong_spec_before_it_starts_anything(spec: Path, tmp_path: Path) -> None:
    spec.write_text(SPEC.replace("semihard", "semihart"))
    answer = CliRunner().invoke(app, ["run", str(spec), "--home", str(tmp_path / "none")])
    assert answer.exit_code == 2
    assert "semihard" in answer.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0 s"), (59.4, "59 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")])
def test_a_length_of_time(seconds: float, said: str) -> None:
    assert duration(seconds) == said
