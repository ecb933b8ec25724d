"""Curves of several trainings in one request: of trials, candidates and cells, by step or by time."""

from fastapi.testclient import TestClient

from orchestrator.views import events
from tests.api import played
from tests.api.played import Conductor


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
    conductor.writer.events.write(events.Finished(conductor.start().attempt, once))
    assert http.get("/v1/curves?sweep=1").json()["key"] == "train/loss", "a curve of one point shows no course"
    page = http.get("/curves?sweep=1&cells=0&by=trial&key=validation/map@r").text
    assert '"alone": true' in page
    assert '"alone": true' not in http.get("/curves?sweep=1&cells=0&by=trial&key=train/loss").text
