"""A sweep's tables in every format over HTTP."""

from html import unescape

import pytest
from fastapi.testclient import TestClient

from orchestrator.views import runs
from tests.api.played import SPEC, YAML, Conductor, result

FORMATS = {
    "latex": ("text/", b"toprule"), "markdown": ("text/markdown", b"|"), "html": ("text/html", b"<table"),
    "csv": ("text/csv", b","), "json": ("application/json", b"{"),
}  # fmt: skip


@pytest.fixture
def path(http: TestClient, conductor: Conductor) -> str:
    conductor.submit(http)
    conductor.finish()
    return "/v1/sweeps/1/tables/main"


def test_a_running_sweep_has_a_table_in_every_format(http: TestClient, path: str) -> None:
    for name, (media_type, sign) in FORMATS.items():
        answer = http.get(path, params={"format": name})
        assert answer.status_code == 200, answer.text
        assert media_type in answer.headers["content-type"] or name == "latex"
        assert sign in answer.content
        assert "filename" in answer.headers["content-disposition"]
    assert http.get(path).headers["content-type"] == "application/json"
    assert http.get(path, params={"tuned": "true"}).status_code == 200
    for query in ("?format=docx", "?format=..", "?tuned=perhaps"):
        wrong = http.get(path + query)
        assert wrong.status_code in (404, 422), query
        assert wrong.headers["content-type"] == "application/problem+json"
    unknown = http.get("/v1/sweeps/1/tables/mian")
    assert (unknown.status_code, "main" in unknown.json()["detail"]) == (404, True)


def test_a_cell_of_runs_on_different_data_is_marked(http: TestClient, conductor: Conductor) -> None:
    conductor.submit(http)
    for manifest in ("a", "b", "a", "a"):
        told = {"device": "cpu", "manifest": f"sha256:{manifest * 64}"}
        done = result().model_copy(update={"provenance": told})
        conductor.writer.events.write(runs.Finished(conductor.start().attempt, done))
    told = http.get("/v1/sweeps/1/tables/main", params={"format": "json"}).json()
    mixed = {row["headings"][0]: row["cells"][0].get("mixed") for row in told["panels"][0]["rows"]}
    words = "data: sha256:aaaaaaaaaaaa, sha256:bbbbbbbbbbbb"
    assert mixed == {"Triplet": words, "Semihard triplet": None}
    assert [http.get(f"/v1/sweeps/1/cells/{cell}").json()["mixed"] for cell in (0, 1)] == [[words], []]
    assert words in http.get("/sweeps/1/cells/0").text
    assert "◊" in unescape(http.get("/sweeps/1").text)


def test_a_table_that_is_known_is_not_sent_again(http: TestClient, path: str, conductor: Conductor) -> None:
    first = http.get(path, params={"format": "csv"})
    headers = {"If-None-Match": first.headers["etag"]}
    same = http.get(path, params={"format": "csv"}, headers=headers)
    assert (same.status_code, same.content) == (304, b"")
    conductor.finish(0.25)
    assert http.get(path, params={"format": "csv"}, headers=headers).status_code == 200


def test_verdicts_stand_by_themselves_and_in_the_json_of_the_table(
    http: TestClient, path: str, conductor: Conductor
) -> None:
    against = {"loss": "triplet"}
    judged = SPEC.replace("{rows: [loss]", "{verdicts: {against: {loss: triplet}}, rows: [loss]")
    assert http.get("/v1/sweeps/1/verdicts").json()["comparisons"] == []
    assert http.post("/v1/sweeps", content=judged, headers=YAML).status_code == 201
    conductor.begin()
    found = http.get("/v1/sweeps/2/verdicts", params={"table": "main"}).json()
    assert (found["against"], found["level"], found["looks"]) == (against, 0.05, "planned")
    assert {(one["labels"]["loss"], one["word"]) for one in found["comparisons"]} == {("semihard", "untested")}
    rows = http.get("/v1/sweeps/2/tables/main").json()["panels"][0]["rows"]
    assert ["verdict" in cell for row in rows for cell in row["cells"]] == [False, False, True, True]
    both = http.get("/v1/sweeps/2/verdicts?covers=both").json()
    assert (found["covers"], both["covers"], {one["covers"] for one in both["comparisons"]}) == (
        "seeds",
        "both",
        {"both"},
    )
    assert http.get("/v1/sweeps/2/verdicts?covers=classes").status_code == 422
    assert http.get("/v1/sweeps/2/verdicts?table=mian").status_code == 404
    assert http.get("/v1/sweeps/9/verdicts").status_code == 404
