"""Trials, their curves and their logs over HTTP, and curves of several trainings in one request."""

import pytest
from fastapi.testclient import TestClient

from orchestrator.views import runs
from tests.api import played
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


def test_cells_candidates_and_trials(http: TestClient, conductor: Conductor) -> None:
    conductor.submit(http)
    conductor.finish(times=3)
    conductor.start()
    cells = http.get("/v1/curves?sweep=1&key=train/loss").json()
    assert [(one["label"], one["runs"], one["running"]) for one in cells["traces"]] == [
        ("triplet", 2, False), ("semihard", 2, True),
    ]  # fmt: skip
    assert cells["traces"][0]["points"] == [[10.0, 0.4], [20.0, 0.2]]
    assert cells["traces"][0]["band"][0] == [10.0, 0.4, 0.4]
    assert cells["keys"] == ["train/loss"]
    assert http.get("/v1/curves?sweep=1").json()["key"] == "train/loss"
    one_cell = http.get("/v1/curves?sweep=1&cells=1&by=trial").json()["traces"]
    assert [one["label"] for one in one_cell] == ["seed 0", "seed 1"]
    assert one_cell[1]["points"] == [[10.0, 0.4]]  # it still runs, and shows what it has
    trials = http.get("/v1/curves?trials=1,4&x=seconds").json()
    assert trials["x"] == "seconds"
    assert trials["traces"][0]["points"][-1] == [1.5, 0.2]  # the end of its training
    assert [one["trials"] for one in trials["traces"]] == [[1], [4]]


def test_what_cannot_be_drawn_is_refused(http: TestClient, conductor: Conductor) -> None:
    conductor.submit(http)
    assert http.get("/v1/curves").status_code == 409
    assert http.get("/v1/curves?sweep=1&trials=1").status_code == 409
    assert http.get("/v1/curves?sweep=9").status_code == 404
    assert http.get("/v1/curves?sweep=1&cells=7").status_code == 404
    assert http.get("/v1/curves?trials=99").status_code == 404
    for wrong in ("trials=a", "sweep=0", "sweep=1&smoothing=1", "sweep=1&points=3", "sweep=1&by=all"):
        assert http.get(f"/v1/curves?{wrong}").status_code == 422, wrong


def test_the_page_draws_them_and_keeps_what_was_chosen(http: TestClient, conductor: Conductor) -> None:
    conductor.submit(http)
    conductor.finish()
    page = http.get("/curves?sweep=1&key=train/loss&smoothing=0.55&y=log&x=seconds")
    assert page.status_code == 200
    assert '<option value="0.55" selected>' in page.text
    assert '"type": "log"' in page.text
    assert "debiased" in page.text
    assert 'href="/sweeps/1/cells/1"' in page.text
    assert http.get("/curves").status_code == 409


def test_what_was_evaluated_once_is_a_point_and_not_what_is_drawn_unasked(
    http: TestClient, conductor: Conductor
) -> None:
    conductor.submit(http)
    trained = played.result()
    once = trained.model_copy(update={"curves": {**trained.curves, "validation/map@r": [(20, 0.5)]}})
    conductor.writer.events.write(runs.Finished(conductor.start().attempt, once))
    assert http.get("/v1/curves?sweep=1").json()["key"] == "train/loss", "a curve of one point shows no course"
    page = http.get("/curves?sweep=1&cells=0&by=trial&key=validation/map@r").text
    assert '"alone": true' in page
    assert '"alone": true' not in http.get("/curves?sweep=1&cells=0&by=trial&key=train/loss").text
