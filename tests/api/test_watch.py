"""Progress in a terminal and elsewhere, and what `run` finds of an interrupted run."""

import io
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.cli import app as commands
from api.client import Client
from api.commands import tables, terminal
from api.commands.local import unfinished
from api.commands.watch import _pause, follow, verdict
from api.connection import SweepChanges
from api.main import create_app
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.durations import duration
from orchestrator.views.sweeps import SweepView
from tests.api.conftest import TOKEN
from tests.api.played import SPEC, Conductor, Into
from tests.ports import free_port
from tests.served import until
from tests.served_app import served

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


class Counting(Client):
    """A client that counts how often it looks at a sweep."""

    looks = 0
    listening: SweepChanges

    def sweep(self, sweep: int) -> SweepView:
        """One sweep."""
        self.looks += 1
        return super().sweep(sweep)

    def changes(self, sweep: int) -> SweepChanges:
        """What changes of it."""
        self.listening = super().changes(sweep)
        return self.listening


def test_it_looks_only_when_it_is_told_that_something_changed(url: str, conductor: Conductor) -> None:
    text = io.StringIO()
    client = Counting(url, TOKEN)
    with client:
        sweep = client.submit(SPEC.encode()).id
        conductor.begin()
        looks: list[int] = []

        def play() -> None:
            """Fifty ticks in which nothing happens, once it listens; and then everything."""
            if not client.listening._live or len(looks) == 50:
                return
            looks.append(client.looks)
            if len(looks) == 50:
                for _ in range(4):
                    conductor.finish()
                conductor.settle()

        ended = follow(client, sweep, Into(text, terminal=False), every=0.02, check=play)
    assert ended.state == "finished"
    assert looks[-1] - looks[0] <= 3, "polling would have looked fifty times"
    assert "finished   100 % of 80 steps" in text.getvalue()


@pytest.mark.parametrize(("left", "pause"), [(None, 1.0), (60.0, 1.0), (1.0, 0.5), (0.0, 0.1)])
def test_it_looks_more_often_before_the_end(url: str, left: float | None, pause: float) -> None:
    with Client(url, TOKEN) as client:
        view = client.sweep(client.submit(SPEC.encode()).id)
    assert _pause(view.model_copy(update={"eta_seconds": left}), 1.0) == pause


def test_it_asks_no_more_often_where_nothing_is_told(
    service: Service, settings: Settings, conductor: Conductor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many who watch would otherwise ask ten times a second for all of a sweep that is late."""
    slept = list[float]()
    app, port = create_app(service, settings), free_port()
    app.state.feed.most = 0
    monkeypatch.setattr("api.commands.watch._pause", lambda view, every: 0.001)
    with served(app, port=port) as url, Client(url, TOKEN) as client:
        sweep = client.submit(SPEC.encode()).id
        conductor.begin()

        def end() -> None:
            slept.append(time.monotonic())
            if len(slept) == 3:
                for _ in range(4):
                    conductor.finish()
                conductor.settle()

        began = time.monotonic()
        follow(client, sweep, Into(io.StringIO(), terminal=False), every=0.2, check=end)
    assert slept[2] - began >= 0.6


def test_it_polls_where_no_events_come_and_goes_on_listening_where_it_was(
    service: Service, settings: Settings, conductor: Conductor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.connection.AGAIN_SECONDS", 0.05)
    monkeypatch.setattr("api.connection.REFUSED_SECONDS", 0.05)
    app, port = create_app(service, settings), free_port()
    app.state.feed.most = 0  # as where there are as many streams as there may be
    with served(app, port=port) as url, Client(url, TOKEN) as client:
        sweep = client.submit(SPEC.encode()).id
        conductor.begin()
        with client.changes(sweep) as changes:
            assert all(changes.due() for _ in range(100))
            app.state.feed.most = 8
            until(lambda: not changes.due(), "it listens")
            conductor.finish()
            until(changes.due, "it is told")
    with client.changes(sweep) as changes:
        assert all(changes.due() for _ in range(100)), "the server is away"
        with served(create_app(service, settings), port=port):
            until(lambda: not changes.due(), "it listens")
        until(lambda: changes.due() and changes.due(), "the server is away again")
        heard = int(changes._last)
        with served(create_app(service, settings), port=port):
            conductor.finish()
            until(lambda: int(changes._last) > heard, "what came is told after the restart")


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
    answer = CliRunner().invoke(commands, ["run", str(spec), "--home", str(tmp_path / "none")])
    assert answer.exit_code == 2
    assert "semihard" in answer.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0.4 s"), (59.4, "59 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")])
def test_a_length_of_time(seconds: float, said: str) -> None:
    assert duration(seconds) == said
