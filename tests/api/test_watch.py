"""Progress in a terminal and elsewhere, and what `run` finds of an interrupted run."""

import io

import pytest

from api.client import Client
from api.commands.serve import unfinished
from api.commands.watch import follow, verdict
from api.main import create_app
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.api.conftest import TOKEN
from tests.api.played import SPEC, Conductor, Into
from tests.ports import free_port
from tests.served import until
from tests.served_app import served

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
    for terminal_there, written in said.items():
        for part in ("50 % of 80 steps", "2/4", "2 failed", "1 diverged", "no such thing"):  # what failed is never done
            assert part in written, part
        assert terminal_there == ("\x1b[" in written)
    assert "[red]trials" in said[True], "a name is no markup"


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
