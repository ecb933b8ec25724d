"""Trials, their curves and their logs over HTTP."""

import pytest
from fastapi.testclient import TestClient

from tests.api.played import SPEC, YAML, Conductor


@pytest.fixture
def trials(http: TestClient, conductor: Conductor) -> list[int]:
    """Four trials: finished, diverged, failed, waiting."""
    sweep = http.post("/v1/sweeps", content=SPEC, headers=YAML).json()["id"]
    conductor.begin()
    conductor.finish()
    conductor.finish(diverged=True)
    conductor.fail()
    return [one["id"] for one in http.get(f"/v1/sweeps/{sweep}/trials").json()["items"]]


def test_trials_are_listed_by_page_state_and_cell(http: TestClient, trials: list[int]) -> None:
    page = http.get("/v1/sweeps/1/trials?limit=3")
    rest = http.get(page.links["next"]["url"])
    assert [one["id"] for one in page.json()["items"] + rest.json()["items"]] == trials
    assert [one["state"] for one in http.get("/v1/sweeps/1/trials?state=failed").json()["items"]] == ["failed"]
    assert len(http.get("/v1/sweeps/1/trials?cell=1").json()["items"]) == 2
    assert http.get("/v1/sweeps/1/trials?cell=-1").status_code == 422


def test_a_trial_tells_all(http: TestClient, trials: list[int]) -> None:
    finished, diverged, failed, waiting = (http.get(f"/v1/trials/{one}").json() for one in trials)
    assert finished["metrics"]["best/test/recall@1"] == 0.5
    assert finished["labels"]["loss"]
    assert finished["recipe"]["iterations"] == 20
    assert finished["attempts"][0]["state"] == "finished"
    assert finished["provenance"]["device"] == "cpu"
    assert diverged["diverged"] is True
    assert "no such thing" in failed["error"]
    assert failed["trace"]
    assert waiting["attempts"] == []


def test_curves_have_null_where_a_value_is_no_number(http: TestClient, trials: list[int]) -> None:
    points = {one["key"]: one["points"] for one in http.get(f"/v1/trials/{trials[1]}/metrics").json()}
    assert points["train/loss"][-1] == [20, None]
    assert http.get(f"/v1/trials/{trials[3]}/metrics").json() == []


def test_a_log_is_json_or_text(http: TestClient, trials: list[int]) -> None:
    path = f"/v1/trials/{trials[0]}/logs"
    found = http.get(path).json()
    assert found["text"] == "step 10/20 <half>\n"
    assert found["complete"] is True
    text = http.get(path, headers={"Accept": "text/plain"}, params={"offset": 5})
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.text == "10/20 <half>\n"
    assert text.headers["x-next-offset"] == str(found["next_offset"])
    assert text.headers["x-complete"] == "true"
    assert http.get(path, params={"offset": -1}).status_code == 422
    assert http.get(path, params={"offset": 10**9}).json()["text"] == ""


def test_what_an_accept_header_prefers(http: TestClient, trials: list[int]) -> None:
    for accept, kind in (
        ("*/*", "application/json"), ("application/json", "application/json"), ("text/plain", "text/plain"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/plain"),
        ("application/json, text/plain, */*", "application/json"),
        ("text/plain;q=0.5, application/json;q=0.4", "text/plain"), ("text/plain;q=x", "application/json"),
    ):  # fmt: skip
        answer = http.get(f"/v1/trials/{trials[0]}/logs", headers={"Accept": accept})
        assert answer.headers["content-type"].partition(";")[0] == kind, accept
