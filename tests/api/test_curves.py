"""Curves of several trainings in one request: of trials, candidates and cells, by step or by time."""

from fastapi.testclient import TestClient

from tests.api.played import SPEC, YAML, Conductor


def test_cells_candidates_and_trials(http: TestClient, conductor: Conductor) -> None:
    http.post("/v1/sweeps", content=SPEC, headers=YAML)
    conductor.begin()
    for _ in range(3):
        conductor.finish()
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
    http.post("/v1/sweeps", content=SPEC, headers=YAML)
    conductor.begin()
    assert http.get("/v1/curves").status_code == 409
    assert http.get("/v1/curves?sweep=1&trials=1").status_code == 409
    assert http.get("/v1/curves?sweep=9").status_code == 404
    assert http.get("/v1/curves?sweep=1&cells=7").status_code == 404
    assert http.get("/v1/curves?trials=99").status_code == 404
    for wrong in ("trials=a", "sweep=0", "sweep=1&smoothing=1", "sweep=1&points=3", "sweep=1&by=all"):
        assert http.get(f"/v1/curves?{wrong}").status_code == 422, wrong


def test_the_page_draws_them_and_keeps_what_was_chosen(http: TestClient, conductor: Conductor) -> None:
    http.post("/v1/sweeps", content=SPEC, headers=YAML)
    conductor.begin()
    conductor.finish()
    page = http.get("/curves?sweep=1&key=train/loss&smoothing=0.55&y=log&x=seconds")
    assert page.status_code == 200
    assert '<option value="0.55" selected>' in page.text
    assert '"type": "log"' in page.text
    assert "debiased" in page.text
    assert 'href="/sweeps/1/cells/1"' in page.text
    assert http.get("/curves").status_code == 409
