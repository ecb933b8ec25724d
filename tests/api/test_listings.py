"""Trials of any sweep over REST: found, sorted, paged, plotted, with the position of an error in a filter."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from orchestrator.record import listings
from orchestrator.run.optuna import importances
from orchestrator.views.trials import Listing
from tests.api.played import SPEC, Conductor


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
        {"path": "query.where", "message": "at character 11: there is no column `stat` here; did you mean 'state'?"}
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
    for plot in ("scatter", "norms", "parallel", "sensitivity", "heat", "history", "distribution"):
        for of in ("trials", "candidates"):
            asked = {"where": "loss:triplet", "of": of, "sweep": "1"}
            figure = http.get(f"/v1/plots/{plot}", params=asked).raise_for_status().json()
            assert figure["usermeta"]["total"] == (6 if of == "trials" else 3), (plot, of)
            assert "$schema" in figure
    monkeypatch.setattr(listings, "MOST_POINTS", 3)
    drawn = [http.get("/v1/plots/scatter", params={"x": "embedding", "y": "map@r"}).json() for _ in range(2)]
    assert drawn[0] == drawn[1]
    points = drawn[0]["data"]["values"] if "values" in drawn[0]["data"] else next(iter(drawn[0]["datasets"].values()))
    assert len(points) == 3
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

    def plot(name: str, **asked: str) -> tuple[Any, list[dict[str, Any]]]:
        figure = http.get(f"/v1/plots/{name}", params=asked).raise_for_status().json()
        return figure, figure["data"].get("values") or next(iter(figure["datasets"].values()))

    figure, rows = plot("parallel")
    heights = {row["value"]: row["height"] for row in rows if row["column"].endswith("lr")}
    assert heights == pytest.approx({1e-4: 0.0, 1e-3: 0.5, 1e-2: 1.0})
    assert "lr: 0.0001 to 0.01 (log)" in figure["usermeta"]["notes"][0]
    even = {row["value"]: row["height"] for row in rows if row["column"].endswith("embedding")}
    assert even == pytest.approx({8.0: 0.0, 16.0: 1 / 3, 32.0: 1.0})
    encoding = plot("scatter", x="lr", y="map@r")[0]["encoding"]
    assert (encoding["x"]["scale"], encoding["y"]["scale"]) == ({"type": "log"}, {"zero": False})


def test_what_cannot_be_drawn_is_told(http: TestClient, trained: None) -> None:
    for params, said in (
        ({"x": "los"}, "did you mean 'loss'?"),
        ({"x": "loss"}, "no numbers"),
        ({"where": "("}, "the filter ends"),
    ):
        answer = http.get("/v1/plots/scatter", params=params)
        assert answer.status_code == 422
        assert said in json.dumps(answer.json())
    assert http.get("/v1/plots/pie").status_code == 422


def test_importance_finds_the_axis_that_matters() -> None:
    etas = [at / 40 for at in range(40)]
    losses = ["triplet" if at % 2 else "npair" for at in range(40)]
    shares = importances({"eta": etas, "loss": losses, "same": [1.0] * 40}, etas, higher=True)
    assert next(iter(shares)) == "eta"
    assert shares["eta"] > 0.8
    assert "same" not in shares
