"""Resolutions over HTTP and by the commands."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.api.played import SPEC, YAML, Conductor
from tests.api.test_cli import metricsweep


def test_a_table_is_asked_to_be_resolved(http: TestClient, conductor: Conductor, url: str) -> None:
    judged = SPEC.replace("{rows: [loss]", "{verdicts: {against: {loss: triplet}}, rows: [loss]")
    http.post("/v1/sweeps", content=SPEC, headers=YAML)
    conductor.begin()
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


@pytest.mark.parametrize("number", ["0", "-1", "nan", "inf", "1e12"])
@pytest.mark.parametrize("option", ["hours", "within"])
def test_a_bound_that_bounds_nothing_is_refused_as_such(http: TestClient, url: str, option: str, number: str) -> None:
    answer = metricsweep(url, "resolve", 2, f"--{option}", number)
    assert answer.exit_code == 2
    assert f"--{option}" in answer.output
    assert "0" in answer.output
    answered = http.post("/v1/sweeps/2/resolve", params={option: number})
    assert answered.status_code == 422
    assert option in answered.text


def test_what_a_budget_would_decide_is_said_before_anything_is_trained(
    http: TestClient, conductor: Conductor, url: str, tmp_path: Path
) -> None:
    judged = SPEC.replace("{rows: [loss]", "{verdicts: {against: {loss: triplet}}, rows: [loss]")
    wanted = judged.replace("seed: [0, 1]", "seed: [0, 1, 2, 3, 4]")

    def foreseen(**given: float) -> dict[str, Any]:
        answer = http.post("/v1/foresight", content=wanted, headers=YAML, params=given)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    sure, doubtful = foreseen(spread=0.5, effect=20, seeds=6), foreseen(spread=5, effect=0.1, seeds=6)
    assert (sure["decided"] > 1.5, doubtful["decided"] < 0.5) == (True, True), "of two comparisons"
    assert sure == foreseen(spread=0.5, effect=20, seeds=6), "the same question has the same answer"
    assert sure["plan_trials"] == 10 <= sure["trials"] <= 10 + 2 * 6
    assert (sure["hours"], sure["comparisons"][0]["supposed"]) == ([], "0 ± 20 points in truth, ± 0.5 points a seed")
    assert http.post("/v1/foresight", content=wanted, headers=YAML).status_code == 409, "nothing is supposed"
    played = http.post("/v1/foresight?spread=1&effect=1&within=1", content=wanted, headers=YAML)
    assert (played.status_code, "`within` is not played" in played.text) == (409, True)
    assert http.post("/v1/foresight?spread=1&effect=1", content=SPEC, headers=YAML).status_code == 409, "no baseline"
    assert http.get("/v1/sweeps").json()["items"] == []
    http.post("/v1/sweeps", content=wanted, headers=YAML)
    conductor.begin()
    for at in range(10):
        conductor.finish(0.5 + (at // 5) * 0.1 + (at % 5) ** 2 / 100 * (1 + at // 5))
    both = http.post("/v1/foresight?like=1&spread=1", content=wanted, headers=YAML)
    assert (both.status_code, "leave `spread` and `effect` out" in both.text) == (409, True)
    known = foreseen(like=1, seeds=6)
    assert [one["supposed"] for one in known["comparisons"]] == ["+16 ± 6.6 points a seed, by 5 seeds"] * 2
    uneven = wanted.replace("[0, 1, 2, 3, 4]", "[{values: [0, 1, 2]}, {values: [3, 4], when: {loss: triplet}}]")
    answer = http.post("/v1/foresight?spread=1&effect=1&seeds=2", content=uneven, headers=YAML).json()
    assert answer["plan_trials"] == 8
    assert 8 <= answer["low_trials"] <= answer["high_trials"] <= 8 + 2 * 2, "two seeds of each cell at most"
    assert [one["device"] for one in known["hours"]] == ["cpu"]
    assert known["hours"][0]["plan"] == pytest.approx(10 * 1.5 / 3600)
    assert foreseen(like=1, hours=0.001)["trials"] <= 10 + 0.001 * 3600 / 1.5
    file = tmp_path / "wanted.yaml"
    file.write_text(wanted)
    said = metricsweep(url, "foresee", file, "--like", 1, "--seeds", 6).stdout
    assert "of 2 comparisons are decided (budget: 6 seeds a cell; 200 plays)" in said
    assert "hours on cpu: 0.0042 of the plan" in said
