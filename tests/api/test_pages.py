"""The pages over HTTP: they answer, escape, and their forms do what the API does."""

import pytest
from fastapi.testclient import TestClient

from tests.api.played import SPEC, YAML, Conductor

HTML = {"Accept": "text/html"}


@pytest.fixture
def sweep(http: TestClient, conductor: Conductor) -> int:
    number = int(http.post("/v1/sweeps", content=SPEC, headers=YAML).json()["id"])
    conductor.begin()
    conductor.finish()
    conductor.fail("ValueError: <b>bold</b>")
    return number


def test_the_pages_answer(http: TestClient, sweep: int) -> None:
    trials = http.get(f"/v1/sweeps/{sweep}/trials").json()["items"]
    paths = ["/", "/?state=running&name=four", "/?state=&name=", f"/sweeps/{sweep}"]
    for path in paths + [f"/trials/{one['id']}" for one in trials]:
        answer = http.get(path, headers=HTML)
        assert answer.status_code == 200, path
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "<b>bold</b>" not in answer.text
    assert "four-trials" in http.get("/").text
    assert "four-trials" not in http.get("/?state=finished").text
    assert "<table" in http.get(f"/sweeps/{sweep}").text


def test_pages_lead_to_more_pages(http: TestClient) -> None:
    for number in range(3):
        http.post("/v1/sweeps", content=SPEC.replace("four", f"nr{number}"), headers=YAML)
    cursor = http.get("/v1/sweeps?limit=2").json()["next_cursor"]
    page = http.get("/", params={"limit": 2, "cursor": cursor}).text
    assert "nr0-trials" in page
    assert "nr2-trials" not in page


def test_what_is_wrong_is_a_page(http: TestClient) -> None:
    for path in ("/?state=nope", "/sweeps/99", "/trials/99", "/sweeps/x", "/?cursor=nonsense"):
        answer = http.get(path, headers=HTML)
        assert answer.status_code in (404, 422), path
        assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_the_buttons_ask(http: TestClient, sweep: int, conductor: Conductor) -> None:
    failed = http.get(f"/v1/sweeps/{sweep}/trials?state=failed").json()["items"][0]["id"]
    for verb, data, leads in (
        ("pause", {}, f"/sweeps/{sweep}"), ("resume", {}, f"/sweeps/{sweep}"),
        ("priority", {"value": 7}, f"/sweeps/{sweep}"), ("retry", {}, f"/sweeps/{sweep}"),
        ("retry", {"trial": failed}, f"/trials/{failed}"), ("cancel", {}, f"/sweeps/{sweep}"),
    ):  # fmt: skip
        answer = http.post(f"/sweeps/{sweep}/{verb}", data=data, headers=HTML)
        assert (answer.status_code, answer.headers["location"]) == (303, leads), verb
    asked = [(request.kind, request.trial) for request in conductor.store.requests.pending()]
    assert asked[3:] == [("retry", None), ("retry", failed), ("cancel", None)]
    conductor.obey()
    assert http.get(f"/v1/sweeps/{sweep}").json()["priority"] == 7
    refused = http.post(f"/sweeps/{sweep}/delete", data={"confirm": "another"}, headers=HTML)
    assert refused.status_code == 409


def test_an_ended_sweep_is_deleted_by_its_name(http: TestClient, sweep: int, conductor: Conductor) -> None:
    http.post(f"/v1/sweeps/{sweep}/cancel")
    conductor.obey()
    name = http.get(f"/v1/sweeps/{sweep}").json()["name"]
    assert http.request("DELETE", f"/v1/sweeps/{sweep}").status_code == 422
    assert http.post(f"/sweeps/{sweep}/delete", data={"confirm": name}, headers=HTML).headers["location"] == "/"
    conductor.obey()
    assert http.get(f"/v1/sweeps/{sweep}").status_code == 404


def test_vega_comes_from_here_and_is_kept(http: TestClient) -> None:
    answer = http.get("/static/vega.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "max-age=86400" in answer.headers["cache-control"]
    assert len(answer.content) > 100_000
    again = http.get("/static/vega.js", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "immutable" in http.get("/static/vega.js?v=1").headers["cache-control"]
