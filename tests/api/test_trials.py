"""Trials, curves, logs, listings over sweeps and plots, over HTTP."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from orchestrator.record import listings
from orchestrator.run.optuna import importances
from orchestrator.views import runs
from orchestrator.views.trials import Listing
from tests.api import played
from tests.api.played import SPEC, Conductor


@pytest.fixture
def trials(http: TestClient, conductor: Conductor) -> list[int]:
    """Four trials: finished, diverged, failed, waiting."""
    sweep = conductor.submit(http)
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


def test_trials_are_found_over_sweeps(http: TestClient, conductor: Conductor) -> None:
    for _ in range(2):
        conductor.submit(http)
    conductor.finish(0.5)
    conductor.finish(0.7)
    conductor.fail()
    asked = {"where": "loss:triplet map@r>.6", "sort": "-map@r", "count": "true", "limit": "1"}
    answer = http.get("/v1/trials", params=asked)
    page = Listing.model_validate(answer.json())
    assert (page.total, page.metrics, len(page.items)) == (2, ["map@r", "recall@1", "nmi", "f1", "norm_var"], 1)
    assert (page.items[0].values["map@r"], page.items[0].labels) == (0.7, {"loss": "triplet", "seed": "1"})
    assert 'rel="next"' in answer.headers["link"]
    rest = http.get("/v1/trials", params=asked | {"cursor": page.next_cursor}).json()
    assert [row["sweep"] for row in [answer.json()["items"][0], *rest["items"]]] == [1, 2]
    of_one = http.get("/v1/trials", params={"sweep": "1", "of": "candidates", "sort": "-score"}).json()
    assert [row["labels"]["loss"] for row in of_one["items"]] == ["triplet", "semihard"]
    assert of_one["metrics"][:2] == ["recall@1", "map@r"]


def test_a_wrong_filter_is_a_problem_with_its_place(http: TestClient) -> None:
    problem = http.get("/v1/trials", params={"where": "seconds>1 stat:failed"})
    assert problem.status_code == 422
    assert problem.json()["problems"] == [
        {"path": "query.where", "message": "at character 11: no column `stat` in these sweeps; did you mean 'state'?"}
    ]
    for wrong, path in (({"sort": "-nope"}, "query.sort"), ({"columns": "nope"}, "query.columns")):
        answer = http.get("/v1/trials", params=wrong)
        assert (answer.status_code, answer.json()["problems"][0]["path"]) == (422, path)
    assert http.get("/v1/trials", params={"cursor": "abc"}).status_code == 404
    assert http.get("/v1/trials", params={"sweep": "9"}).status_code == 404


def test_the_columns_are_named_as_short_as_they_may_be(http: TestClient, conductor: Conductor) -> None:
    assert http.get("/v1/columns").json() == []
    conductor.submit(http)
    conductor.finish()
    columns = {one["key"]: one for one in http.get("/v1/columns", params={"sweep": "1"}).json()}
    assert (columns["loss"]["role"], columns["loss"]["numeric"]) == ("compare", False)
    assert (columns["seed"]["role"], columns["seed"]["numeric"]) == ("repeat", True)
    assert columns["best/test/map@r"]["name"] == "map@r"
    assert columns["last/validation/map@r"]["name"] == "last/validation/map@r"


TUNED = SPEC.replace("repeat:", "tune:\n  embedding: [8, 16, 32]\nrepeat:")


@pytest.fixture
def trained(http: TestClient, conductor: Conductor) -> None:
    conductor.submit(http, TUNED)
    for at in range(12):
        conductor.finish(0.5 + at / 100)


def test_plots_draw_what_the_filter_leaves(http: TestClient, trained: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for plot in ("scatter", "norms", "parallel", "slice", "heat", "history", "distribution"):
        for of in ("trials", "candidates"):
            asked = {"where": "loss:triplet", "of": of, "sweep": "1"}
            figure = http.get(f"/v1/plots/{plot}", params=asked).raise_for_status().json()
            assert figure["usermeta"]["total"] == (6 if of == "trials" else 3), (plot, of)
            assert "$schema" in figure
    monkeypatch.setattr(listings, "MOST_POINTS", 3)
    asked = {"x": "embedding", "y": "map@r", "colour": "state"}
    drawn = [http.get("/v1/plots/scatter", params=asked).json() for _ in range(2)]
    assert drawn[0] == drawn[1]
    points, means = (layer["data"]["values"] for layer in drawn[0]["layer"])
    assert [point["colour"] for point in points] == ["finished"] * 3
    assert [(mean["colour"], mean["n"]) for mean in means] == [("finished", 12)], "over all rows"
    assert drawn[0]["usermeta"]["total"] == 12


def test_what_spans_decades_is_drawn_by_factors(http: TestClient, conductor: Conductor) -> None:
    for without_trials in ("heat", "importance"):
        assert http.get(f"/v1/plots/{without_trials}").status_code == 409
    decades = TUNED.replace(
        "embedding: [8, 16, 32]", "optimizer.lr: [1.0e-4, 1.0e-3, 1.0e-2]\n  embedding: [8, 16, 32]"
    )
    conductor.submit(http, decades)
    for at in range(36):
        conductor.finish(0.5 + at / 100)

    def plot(name: str, **asked: str) -> Any:
        return http.get(f"/v1/plots/{name}", params=asked).raise_for_status().json()

    lines, bars, *_ = (layer["data"]["values"] for layer in plot("parallel")["layer"])
    assert {row["column"] for row in lines} == {"loss", "lr", "embedding", "score"}
    ticks = {(tick["column"], tick["label"]): tick["height"] for tick in bars if tick["column"] != "score"}
    assert ticks == pytest.approx({
        ("loss", "triplet"): 0.0, ("loss", "semihard"): 1.0, ("lr", "0.0001"): 0.0, ("lr", "0.001"): 0.5,
        ("lr", "0.01"): 1.0, ("embedding", "8"): 0.0, ("embedding", "16"): 1 / 3, ("embedding", "32"): 1.0,
    })  # fmt: skip
    encoding = plot("scatter", x="lr", y="map@r")["layer"][0]["encoding"]
    assert (encoding["x"]["scale"], encoding["y"]["scale"]) == ({"type": "log"}, {"zero": False})


def test_a_figure_that_cannot_be_drawn_says_why(http: TestClient, trained: None) -> None:
    for params, message in (
        ({"x": "los"}, "did you mean 'loss'?"),
        ({"x": "loss"}, "no numbers"),
        ({"where": "("}, "the filter ends"),
    ):
        answer = http.get("/v1/plots/scatter", params=params)
        assert answer.status_code == 422
        assert message in json.dumps(answer.json())
    assert http.get("/v1/plots/pie").status_code == 422


def test_importance_finds_the_axis_that_matters() -> None:
    etas = [at / 40 for at in range(40)]
    losses = ["triplet" if at % 2 else "npair" for at in range(40)]
    shares = importances({"eta": etas, "loss": losses, "same": [1.0] * 40}, etas, higher=True)
    assert next(iter(shares)) == "eta"
    assert shares["eta"] > 0.8
    assert "same" not in shares
