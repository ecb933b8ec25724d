"""Trials of any sweep over REST: found, sorted, paged, and a wrong filter told where it is wrong."""

from fastapi.testclient import TestClient

from orchestrator.views.listings import Listing
from tests.api.played import Conductor


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
