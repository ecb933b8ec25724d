"""Resolutions over HTTP and by the commands."""

from fastapi.testclient import TestClient

from tests.api.played import SPEC, YAML, Conductor
from tests.api.test_cli import metricsweep


def test_a_table_is_asked_to_be_resolved(http: TestClient, conductor: Conductor, url: str) -> None:
    judged = SPEC.replace("{rows: [loss]", "{verdicts: {against: {loss: triplet}}, rows: [loss]")
    conductor.submit(http)
    for at in range(4):
        conductor.finish(0.5 + at / 50)
    assert http.post("/v1/sweeps/1/resolve").status_code == 409, "it compares nothing"
    assert http.post("/v1/sweeps", content=judged, headers=YAML).status_code == 201
    conductor.begin()
    assert http.get("/v1/sweeps/2/resolution").status_code == 404
    assert http.post("/v1/sweeps/2/halt").status_code == 409
    budget = {"seeds": 2, "hours": 1}
    planned = http.get("/v1/sweeps/2/resolution/plan", params=budget).json()
    assert planned["state"] == "planned"
    assert [cell["seeds"] for cell in planned["rounds"][0]["cells"]] == [[2], [2]], (
        "two pairs are no test: first one more"
    )
    assert "seeds 2" in metricsweep(url, "resolve", 2, "--seeds", "2", "--dry-run").stdout
    answer = http.post("/v1/sweeps/2/resolve", params=budget)
    assert (answer.status_code, answer.json()["id"]) == (202, 2)
    conductor.obey()
    assert http.get(answer.headers["location"]).json()["outcome"] == "table main is resolved: 1 hour, 2 seeds a cell"
    assert http.post("/v1/sweeps/2/resolve").status_code == 409, "one goes on"
    assert http.get("/v1/sweeps/2/resolution").json()["state"] == "going"
    assert "asked that no further round follow" in metricsweep(url, "resolution", 2, "--halt").stdout
    conductor.obey()
    assert "ended: ended by request" in metricsweep(url, "resolution", 2).stdout


def test_a_bound_that_bounds_nothing_is_refused_as_such(http: TestClient, url: str) -> None:
    for option in ("hours", "within"):
        for number in ("0", "-1", "nan", "inf", "1e12"):
            answer = metricsweep(url, "resolve", 2, f"--{option}", number)
            assert (answer.exit_code, f"--{option}" in answer.output) == (2, True), number
            answered = http.post("/v1/sweeps/2/resolve", params={option: number})
            assert (answered.status_code, option in answered.text) == (422, True), number
