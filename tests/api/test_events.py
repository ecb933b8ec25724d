"""Event streams: what they tell, where they go on, and what hostile clients get of them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api.routes import events
from api.routes.events import MOST_OF_A_CLIENT
from orchestrator.record import changes
from orchestrator.views.runs import ChangeSpan
from tests.api.conftest import BEARER
from tests.api.listening import Listener, listening
from tests.api.played import SPEC, YAML, Conductor
from tests.served import until


@pytest.fixture(autouse=True)
def _reads_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "READ_SECONDS", 0.05)


def submitted(http: TestClient) -> int:
    return int(http.post("/v1/sweeps", content=SPEC, headers=YAML).json()["id"])


def test_a_stream_tells_what_happens_to_a_sweep_from_submit_to_its_end(
    http: TestClient, url: str, conductor: Conductor
) -> None:
    with listening(url) as heard:
        assert heard.answer.headers["content-type"].startswith("text/event-stream")
        assert heard.next().type == "hello"
        sweep = submitted(http)
        first = heard.next()
        assert (first.type, first.data["sweep"], first.data["state"]) == ("sweep", sweep, "queued")
        assert http.get(first.data["url"]).json()["name"] == first.data["name"] == "four-trials"
        conductor.begin()
        assert heard.next("sweep").data["state"] == "running"
        order = conductor.start()
        begun = heard.next("trial")
        assert (begun.data["trial"], begun.data["state"]) == (1, "running")
        further = heard.next("progress")
        assert (further.data["step"], further.data["total_steps"], further.id > begun.id) == (10, 20, True)
        assert http.get(further.data["url"]).json()["step"] == 10
        http.post(f"/v1/sweeps/{sweep}/cancel")
        assert http.get(heard.next("request").data["url"]).json()["kind"] == "cancel"
        conductor.obey()
        assert heard.next("trial").data["state"] == "cancelled"
        assert heard.next("sweep").data["state"] == "cancelled"
        assert order.number == 1


def test_a_sweeps_stream_has_its_own_events_alone(http: TestClient, url: str, conductor: Conductor) -> None:
    other, sweep = submitted(http), submitted(http)
    with listening(url, f"/v1/sweeps/{sweep}/events") as heard:
        heard.next("hello")
        conductor.writer.sweeps.prioritize(other, 5)
        conductor.writer.sweeps.prioritize(sweep, 7)
        assert heard.next().data["sweep"] == sweep
    assert httpx.get(f"{url}/v1/sweeps/99/events", headers=BEARER, trust_env=False).status_code == 404


def test_a_client_that_reconnects_gets_each_missed_event_once(
    http: TestClient, url: str, conductor: Conductor, app: FastAPI
) -> None:
    with listening(url) as heard:
        last = heard.next("hello").id
    until(lambda: not app.state.streams._open, "the streams are as many")  # what it still read comes in parts
    sweep = submitted(http)
    conductor.begin()
    for priority in (1, 2, 3):
        conductor.writer.sweeps.prioritize(sweep, priority)
    conductor.finish()
    with listening(url, Last_Event_ID=str(last)) as heard:
        told = [heard.next() for _ in range(4)]
        assert [one.type for one in told] == ["hello", "sweep", "progress", "trial"]
        assert told[-1].data["state"] == "finished"
        assert [one.id for one in told] == sorted(one.id for one in told)
    with listening(url, f"/v1/events?after={told[1].id}") as heard:
        assert [heard.next().type for _ in range(3)] == ["hello", "progress", "trial"]
    with listening(url, f"/v1/events?after={last}", Last_Event_ID=str(told[2].id)) as heard:  # a browser reconnects
        assert [heard.next().type for _ in range(2)] == ["hello", "trial"]


def test_an_id_that_nobody_gave_is_answered_with_a_reset(http: TestClient, url: str) -> None:
    submitted(http)
    for known in ("999999999", "-4", "7; drop", "9" * 150):
        with listening(url, Last_Event_ID=known) as heard:
            assert [heard.next().type for _ in range(2)] == ["hello", "reset"], known
    for wrong in ("after=-1", "after=many"):
        assert httpx.get(f"{url}/v1/events?{wrong}", headers=BEARER, trust_env=False).status_code == 422


def test_a_resume_from_what_was_pruned_is_a_reset(
    http: TestClient, url: str, conductor: Conductor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = submitted(http)
    for priority in range(10):
        conductor.writer.sweeps.prioritize(sweep, priority)
    monkeypatch.setattr(changes, "KEPT", 3)
    conductor.writer.changes.prune()
    assert len(conductor.store.changes.after(0, 100).changes) == 1  # of one thing the last
    assert conductor.store.changes.after(0, 100).since == 8
    with listening(url, Last_Event_ID="2") as heard:
        assert [heard.next().type for _ in range(2)] == ["hello", "reset"]
    with listening(url, Last_Event_ID="9") as heard:
        assert [heard.next().type for _ in range(2)] == ["hello", "sweep"]


def test_notes_and_tags_reach_the_pages_that_show_them(http: TestClient, url: str, conductor: Conductor) -> None:
    sweep = submitted(http)
    conductor.begin()
    with listening(url) as heard:
        heard.next("hello")
        for place in (f"/v1/sweeps/{sweep}", f"/v1/sweeps/{sweep}/cells/1", "/v1/trials/2"):
            http.patch(f"{place}/annotation", json={"tags": ["paper"]}).raise_for_status()
            told = heard.next()
            assert (told.data["sweep"], told.data["url"]) == (sweep, place)
        http.patch("/v1/trials/2/annotation", json={"tags": ["a,b"]})
        http.patch("/v1/trials/99/annotation", json={"note": "x"})
        http.patch(f"/v1/sweeps/{sweep}/annotation", json={"note": "x"}).raise_for_status()
        assert heard.next().type == "sweep"  # what was refused changed nothing


def test_more_than_a_hundred_trials_at_once_are_one_event(http: TestClient, url: str, conductor: Conductor) -> None:
    spec = SPEC.replace("seed: [0, 1]", f"seed: {list(range(60))}")
    sweep = conductor.submit(http, spec)
    with listening(url) as heard:
        heard.next("hello")
        conductor.writer.trials.cancel(sweep)
        assert [heard.next().type for _ in range(2)] == ["trials", "sweep"]


def test_a_client_has_so_many_streams_and_others_still_theirs(url: str, app: FastAPI) -> None:
    with ExitStack() as stack:
        heard = [stack.enter_context(listening(url)) for _ in range(MOST_OF_A_CLIENT)]
        assert {one.next().type for one in heard} == {"hello"}
        refused = httpx.get(f"{url}/v1/events", headers=BEARER, trust_env=False)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert "8 event streams already" in refused.json()["detail"]
        with browsing(url, app) as browser, browser.stream("GET", "/v1/events") as answer:
            assert answer.status_code == 200
    until(lambda: not app.state.streams._open, "the streams are as many")
    with listening(url) as again:
        assert again.next().type == "hello"


@contextmanager
def browsing(url: str, app: FastAPI) -> Iterator[httpx.Client]:
    """A browser that has logged in."""
    with httpx.Client(base_url=url, trust_env=False, follow_redirects=False, timeout=60) as browser:
        browser.post("/login", data={"code": app.state.access.codes.new()})
        yield browser


def test_a_stream_ends_with_its_login_and_no_other_does(http: TestClient, url: str, app: FastAPI) -> None:
    with listening(url) as program, browsing(url, app) as other, browsing(url, app) as browser:
        with browser.stream("GET", "/v1/events") as answer, other.stream("GET", "/v1/events") as stays:
            assert browser.post("/logout", headers={"Origin": url}).status_code == 303
            assert "event: hello" in answer.read().decode()  # which comes to an end
            sweep = submitted(http)
            assert program.next("sweep").data["sweep"] == Listener(stays).next("sweep").data["sweep"] == sweep
        assert browser.get("/v1/events").status_code == 401


def test_a_look_that_fails_for_whatever_reason_is_not_the_last(
    http: TestClient, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, failures = events._visible, [ValueError("a state that nobody knows")]

    def failing(*given: Any) -> ChangeSpan | None:
        if failures:
            raise failures.pop()
        return read(*given)

    monkeypatch.setattr(events, "_visible", failing)
    with listening(url) as heard:
        heard.next("hello")
        sweep = submitted(http)
        assert heard.next("sweep").data["sweep"] == sweep
    assert failures == []


def test_a_stream_is_guarded_as_any_request(url: str) -> None:
    for headers, status in (
        ({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({**BEARER, "Host": "evil.example"}, 421),
        ({**BEARER, "Origin": "http://evil.example"}, 403),
        ({**BEARER, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
    ):  # fmt: skip
        assert httpx.get(f"{url}/v1/events", headers=headers, trust_env=False).status_code == status, headers
