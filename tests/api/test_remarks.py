"""Notes and tags: kept, found by, refused where they are too long, and gone with their sweep."""

from fastapi.testclient import TestClient

from tests.api.conftest import BEARER, HTML
from tests.api.played import SPEC, YAML, Conductor


def test_notes_and_tags_are_kept_and_found_by(http: TestClient, conductor: Conductor) -> None:
    conductor.submit(http)
    conductor.finish()
    said = {"note": "diverges\x1b[31m late ", "tags": ["paper", " b ", "paper"]}
    put = http.patch("/v1/trials/1/remark", json=said, headers={"X-Actor": "ada"}).raise_for_status().json()
    assert (put["note"], put["tags"], put["actor"]) == ("diverges\\x1b[31m late", ["b", "paper"], "ada")
    http.patch("/v1/sweeps/1/cells/1/remark", json={"tags": ["cell"]}).raise_for_status()
    http.patch("/v1/sweeps/1/remark", json={"note": "whole"}).raise_for_status()
    assert http.get("/v1/trials/1").json()["remark"]["tags"] == ["b", "paper"]
    assert http.get("/v1/sweeps/1").json()["remark"]["note"] == "whole"

    def found(where: str, of: str = "trials") -> list[int]:
        rows = http.get("/v1/trials", params={"where": where, "sort": "trial", "of": of}).raise_for_status().json()
        return [row["trial"] for row in rows["items"]]

    assert found("tag:PAPER") == [1]
    assert found("tag:paper", "candidates") == [1]
    assert found("tag:cell") == [3, 4]
    assert found("note~whole") == [1, 2, 3, 4]
    assert found("note~diverges") == [1]
    row = http.get("/v1/trials", params={"where": "trial:1"}).json()["items"][0]
    assert (row["tags"], row["note"]) == (["b", "paper"], "diverges\\x1b[31m late")
    page = http.get("/trials/1", headers=HTML).text
    assert "diverges\\x1b[31m late" in page
    http.post("/trials/1/remark", data={"note": "", "tags": "x, y,"}, headers=BEARER)
    assert http.get("/v1/trials/1/remark").json() == {"note": "", "tags": ["x", "y"], "actor": None, "changed": None}
    form = 'action="/sweeps/1/cells/1/remark"'
    assert form in http.get("/sweeps/1/cells/1", headers=HTML).text
    said = {"note": "two\r\nlines <b>", "tags": "cell, slow"}
    answer = http.post("/sweeps/1/cells/1/remark", data=said, headers=BEARER, follow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/sweeps/1/cells/1#remark")
    kept = http.get("/v1/sweeps/1/cells/1").json()["remark"]
    assert (kept["note"], kept["tags"]) == ("two\nlines <b>", ["cell", "slow"])
    assert "lines &lt;b&gt;" in http.get("/sweeps/1/cells/1", headers=HTML).text
    assert http.post("/sweeps/1/cells/7/remark", data=said, headers=BEARER).status_code == 404
    assert "recipe" in http.get("/compare?trial=1&trial=3", headers=HTML).text
    assert "takes two trials" in http.get("/compare", headers=HTML).text


def test_wrong_ones_are_refused(http: TestClient, conductor: Conductor) -> None:
    assert http.patch("/v1/sweeps/1/remark", json={"note": "x"}).status_code == 404
    conductor.submit(http)
    for wrong in ({"note": "x" * 4001}, {"tags": ["x" * 51]}, {"tags": ["a"] * 21}, {"tags": ["a,b"]}, {"other": 1}):
        assert http.patch("/v1/sweeps/1/remark", json=wrong).status_code == 422
    assert http.patch("/v1/trials/9/remark", json={"note": "x"}).status_code == 404
    assert http.get("/v1/sweeps/1/cells/7/remark").status_code == 404


def test_they_go_with_their_sweep(http: TestClient, conductor: Conductor) -> None:
    conductor.submit(http)
    http.patch("/v1/sweeps/1/remark", json={"note": "x", "tags": ["a"]}).raise_for_status()
    http.patch("/v1/trials/2/remark", json={"tags": ["a"]}).raise_for_status()
    http.post("/v1/sweeps/1/cancel")
    conductor.obey()
    conductor.settle()
    assert http.delete("/v1/sweeps/1", params={"confirm": "four-trials"}).status_code == 202
    assert http.patch("/v1/sweeps/1/remark", json={"note": "y"}).status_code == 409
    conductor.obey()
    assert http.get("/v1/sweeps/1").status_code == 404
    with conductor.store.database.reading() as connection:
        for table in ("note", "tag", "trial_column"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() == 0


def test_tags_are_added_and_removed_beside_those_that_others_gave(http: TestClient, conductor: Conductor) -> None:
    conductor.submit(http)

    def put(**change: object) -> list[str]:
        return http.patch("/v1/sweeps/1/remark", json=change).raise_for_status().json()["tags"]

    assert put(added=["paper", "wip"]) == ["paper", "wip"]
    assert put(added=["late"], removed=["WIP", "never there"]) == ["late", "paper"]
    assert put(tags=["x"], added=["y"]) == ["x", "y"]
    assert put(note="only this") == ["x", "y"]
    http.patch("/v1/sweeps/1/remark", json={"tags": [f"tag {n}" for n in range(20)]}).raise_for_status()
    refused = http.patch("/v1/sweeps/1/remark", json={"added": ["one more"]})
    assert (refused.status_code, refused.json()["detail"]) == (
        409, "there would be 21 tags, and there may be 20; remove some",
    )  # fmt: skip
    assert put(added=["one more"], removed=["tag 0"])[0] == "one more"


def test_sweeps_are_listed_by_their_own_tags_page_by_page(http: TestClient, conductor: Conductor) -> None:
    for number in range(1, 6):
        text = SPEC.replace("name: four-trials", f"name: sweep {number}")
        http.post("/v1/sweeps", content=text, headers=YAML).raise_for_status()
    for number in (1, 3, 5):
        http.patch(f"/v1/sweeps/{number}/remark", json={"tags": ["Paper", "b & <c>"]}).raise_for_status()
    http.patch("/v1/sweeps/2/remark", json={"tags": ["paperback"]}).raise_for_status()
    first = http.get("/v1/sweeps", params={"tag": "paper", "limit": 2})
    assert [one["id"] for one in first.json()["items"]] == [5, 3]
    assert first.json()["items"][0]["tags"] == ["Paper", "b & <c>"]
    assert "tag=paper" in first.headers["Link"]
    last = http.get("/v1/sweeps", params={"tag": "paper", "limit": 2, "cursor": first.json()["next_cursor"]}).json()
    assert ([one["id"] for one in last["items"]], last["next_cursor"]) == ([1], None)
    assert http.get("/v1/sweeps", params={"tag": "pap%"}).json()["items"] == []
    assert [one["id"] for one in http.get("/v1/sweeps?tag=").json()["items"]] == [5, 4, 3, 2, 1]

    page = http.get("/", params={"tag": "paper", "limit": 2}, headers=HTML).text
    assert 'href="/?tag=b+%26+%3Cc%3E"' in page
    assert "sweep 4" not in page
    assert "/?tag=paper&amp;cursor=" in page
    assert "tagged “none”" in http.get("/?tag=none", headers=HTML).text
    whole = http.get("/", headers=HTML).text
    assert "paperback" in whole
