"""Submitting, listing, reading, cancelling, retrying, resolving and annotating sweeps over HTTP."""

import base64
import re

from fastapi.testclient import TestClient

from tests.api.conftest import BEARER, HTML
from tests.api.played import SPEC, YAML, Conductor
from tests.api.test_cli import metricsweep


def submit(http: TestClient, text: str = SPEC) -> int:
    answer = http.post("/v1/sweeps", content=text, headers=YAML)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


def test_a_submitted_sweep_is_queued_and_located(http: TestClient) -> None:
    answer = http.post("/v1/sweeps", content=SPEC, headers=YAML | {"X-Actor": "ada@lab"})
    assert answer.status_code == 201
    assert answer.json()["created"] is True
    found = http.get(answer.headers["location"]).json()
    assert found["state"] == "queued"
    assert found["text"] == SPEC
    assert found["total"] == 4
    assert found["tables"] == ["main"]
    assert found["actor"] == "ada@lab"


def test_other_content_is_refused(http: TestClient) -> None:
    for headers in (
        {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"}, {"Content-Type": "application/yaml; charset=latin-1"},
        {"Content-Type": "application/yaml", "Content-Encoding": "gzip"}, {},
        {"Content-Type": "application/yaml;" + "a" * 300},
    ):  # fmt: skip
        answer = http.post("/v1/sweeps", content=SPEC.encode(), headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (415, "application/problem+json"), headers
        assert re.search("application/yaml|Content-Encoding|over 256 bytes", answer.json()["detail"])
    assert http.get("/v1/sweeps").json()["items"] == []


def test_all_problems_are_reported_at_once_and_nothing_is_stored(http: TestClient) -> None:
    wrong = SPEC.replace("semihard", "semihart").replace("width: 16", "widht: 16")
    answer = http.post("/v1/sweeps", content=wrong, headers=YAML)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["detail"] == f"The spec has {len(problem['problems'])} problems."
    lines = wrong.splitlines()
    for path, word in (("compare.loss[1]", "semihart"), ("recipe.backbone.widht", "widht")):
        (found,) = [one for one in problem["problems"] if one["path"] == path]
        assert word in found["message"]
        assert word in lines[found["line"] - 1]
    assert http.get("/v1/sweeps").json()["items"] == []


def test_a_key_submits_once(http: TestClient) -> None:
    headers = YAML | {"Idempotency-Key": "once"}
    first = http.post("/v1/sweeps", content=SPEC, headers=headers)
    again = http.post("/v1/sweeps", content=SPEC, headers=headers)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json() | {"created": False}
    assert again.headers["location"] == first.headers["location"]
    other = http.post("/v1/sweeps", content=SPEC.replace("four", "five"), headers=headers)
    assert other.status_code == 409
    assert len(http.get("/v1/sweeps").json()["items"]) == 1

    for key in ("", "a b", "x" * 201, "schlüssel"):
        wrong = http.post("/v1/sweeps", content=SPEC, headers=YAML | {"Idempotency-Key": key.encode()})
        assert wrong.status_code == 422, key
        assert wrong.json()["problems"][0]["path"].lower() == "header.idempotency-key"


def test_sweeps_are_listed_by_page_state_and_name(http: TestClient, conductor: Conductor) -> None:
    ids = [submit(http, SPEC.replace("four-trials", f"trials-{number}")) for number in range(5)]
    first = http.get("/v1/sweeps?limit=2")
    assert [one["id"] for one in first.json()["items"]] == ids[:2:-1]
    second = http.get(first.links["next"]["url"])
    assert second.json() == http.get("/v1/sweeps", params={"limit": 2, "cursor": first.json()["next_cursor"]}).json()
    assert [one["id"] for one in second.json()["items"]] == ids[2:0:-1]
    last = http.get(second.links["next"]["url"])
    assert [one["id"] for one in last.json()["items"]] == ids[:1]
    assert last.json()["next_cursor"] is None
    assert "link" not in last.headers
    assert [one["id"] for one in http.get("/v1/sweeps?name=trials-3").json()["items"]] == [ids[3]]
    conductor.begin()
    assert len(http.get("/v1/sweeps?state=running").json()["items"]) == 5
    assert http.get("/v1/sweeps?state=queued").json()["items"] == []


def test_a_wrong_query_is_a_problem(http: TestClient) -> None:
    for query in ("limit=0", "limit=201", "limit=x", "state=nope", "cursor=", "cursor=!", "name=%00"):
        answer = http.get(f"/v1/sweeps?{query}")
        assert answer.status_code == 422, query
        assert answer.json()["problems"][0]["path"] == f"query.{query.partition('=')[0]}"
    for cursor in ("nonsense", "_", base64.urlsafe_b64encode(b"9" * 30).decode().rstrip("=")):
        assert http.get(f"/v1/sweeps?cursor={cursor}").status_code == 404, cursor


def test_a_sweep_counts_and_tells_its_problems(http: TestClient, conductor: Conductor) -> None:
    sweep = submit(http)
    conductor.begin()
    conductor.finish()
    conductor.finish(diverged=True)
    conductor.fail()
    found = http.get(f"/v1/sweeps/{sweep}").json()
    assert found["state"] == "running"
    assert found["counts"] | {"pruned": 0} == {
        "waiting": 1, "running": 0, "finished": 2, "failed": 1, "cancelled": 0, "pruned": 0, "diverged": 1, "reused": 0,
        "evaluations": 0, "evaluations_failed": 0,
    }  # fmt: skip
    failed = next(one for one in found["problems"] if one["state"] == "failed")
    assert "no such thing" in failed["message"]
    assert http.get(failed["log"]).status_code == 200


def test_a_request_says_what_became_of_it(http: TestClient, conductor: Conductor) -> None:
    sweep = submit(http)
    conductor.begin()
    answer = http.post(f"/v1/sweeps/{sweep}/cancel?cell=1", headers={"X-Actor": "ada@lab"})
    where = answer.headers["location"]
    waiting = http.get(where).json()
    assert (waiting["kind"], waiting["cell"], waiting["actor"], waiting["state"]) == ("cancel", 1, "ada@lab", "waiting")
    assert answer.json()["requests"] == [waiting]
    conductor.obey()
    done = http.get(where).json()
    assert (done["state"], done["outcome"]) == ("done", "2 trials cancelled")
    http.post(f"/v1/sweeps/{sweep}/cancel")
    conductor.obey()
    deletion = http.delete(f"/v1/sweeps/{sweep}?confirm=four-trials", headers={"X-Actor": "ada@lab"})
    assert (deletion.status_code, deletion.headers["location"]) == (202, f"/v1/requests/{deletion.json()['id']}")
    for verb in ("retry", "priority?value=3", "pause", "cancel"):
        late = http.post(f"/v1/sweeps/{sweep}/{verb}")
        assert (late.status_code, late.json()["detail"].split(";")[0]) == (
            409, f"sweep {sweep} is about to be deleted, as ada@lab asked (request 3)",
        ) or verb in ("pause", "cancel")  # fmt: skip
    wider = http.post(f"/v1/sweeps/{sweep}/extend", content=SPEC, headers=YAML)
    assert (wider.status_code, "is about to be deleted" in wider.json()["detail"]) == (409, True)
    assert http.delete(f"/v1/sweeps/{sweep}?confirm=four-trials").status_code == 409
    conductor.obey()
    assert http.get(deletion.headers["location"]).json()["outcome"] == "deleted"
    gone = http.get(f"/v1/sweeps/{sweep}")
    assert gone.status_code == 404
    assert gone.json()["detail"].startswith(f"no sweep {sweep}: it was deleted at ")
    assert http.post(f"/v1/sweeps/{sweep}/retry").json()["detail"] == gone.json()["detail"]
    listed = http.get(f"/v1/sweeps/{sweep}/requests?limit=2")
    assert [one["kind"] for one in listed.json()["items"]] == ["delete", "cancel"]
    rest = http.get(f"/v1/sweeps/{sweep}/requests", params={"cursor": listed.json()["next_cursor"]}).json()
    assert [one["id"] for one in rest["items"]] == [1]
    assert http.get("/v1/sweeps/99/requests").status_code == 404
    assert http.get("/v1/requests/99").status_code == 404


def test_nothing_that_has_ended_is_cancelled(http: TestClient, conductor: Conductor) -> None:
    sweep = submit(http)
    assert http.post(f"/v1/sweeps/{sweep}/cancel?cell=0").status_code == 404, "it has no cells yet"
    conductor.begin()
    conductor.finish()
    first = http.get(f"/v1/sweeps/{sweep}/trials?state=finished").json()["items"][0]["id"]
    one = http.post(f"/v1/sweeps/{sweep}/cancel?trial={first}")
    assert (one.status_code, one.json()["detail"]) == (
        409, f"trial {first} is finished; only an active one can be cancelled",
    )  # fmt: skip
    conductor.finish()
    cell = http.post(f"/v1/sweeps/{sweep}/cancel?cell=0")
    assert (cell.status_code, cell.json()["detail"].split(";")[0]) == (
        409, f"all trials of cell 0 of sweep {sweep} have ended",
    )  # fmt: skip
    assert http.post(f"/v1/sweeps/{sweep}/cancel?cell=1").status_code == 202
    conductor.obey()
    conductor.settle()
    whole = http.post(f"/v1/sweeps/{sweep}/cancel")
    assert (whole.status_code, whole.json()["detail"].split(";")[0]) == (409, f"sweep {sweep} is cancelled")
    assert http.post(f"/v1/sweeps/{sweep}/retry").status_code == 202
    assert http.post(f"/v1/sweeps/{sweep}/cancel").status_code == 202, "the retry that waits will have it go on"


def test_a_trial_of_another_sweep_is_not_retried(http: TestClient, conductor: Conductor) -> None:
    submit(http)
    other = submit(http, SPEC.replace("seed: [0, 1]", "seed: [2, 3]"))
    conductor.begin()
    mine = http.get("/v1/sweeps/1/trials").json()["items"][0]["id"]
    answer = http.post(f"/v1/sweeps/{other}/retry?trial={mine}")
    assert (answer.status_code, answer.json()["detail"]) == (404, f"no trial {mine} in sweep {other}")
    assert conductor.store.requests.pending() == []


def test_a_table_can_be_resolved(http: TestClient, conductor: Conductor, url: str) -> None:
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
    assert "stop of the resolution requested" in metricsweep(url, "resolution", 2, "--halt").stdout
    conductor.obey()
    assert "ended: ended by request" in metricsweep(url, "resolution", 2).stdout
    pressed = http.post("/sweeps/2/resolve", data={"table": "main", "seeds": 2}, headers=HTML)
    assert (pressed.status_code, pressed.headers["location"]) == (303, "/sweeps/2/statistics?table=main")
    conductor.obey()
    assert http.get("/v1/sweeps/2/resolution").json()["state"] == "going"


def test_a_bound_that_bounds_nothing_is_refused_as_such(http: TestClient, url: str) -> None:
    for option in ("hours", "within"):
        for number in ("0", "-1", "nan", "inf", "1e12"):
            answer = metricsweep(url, "resolve", 2, f"--{option}", number)
            assert (answer.exit_code, f"--{option}" in answer.output) == (2, True), number
            answered = http.post("/v1/sweeps/2/resolve", params={option: number})
            assert (answered.status_code, option in answered.text) == (422, True), number


def test_the_buttons_of_a_page_ask(http: TestClient, conductor: Conductor) -> None:
    sweep = conductor.submit(http)
    conductor.fail()
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
    assert http.request("DELETE", f"/v1/sweeps/{sweep}").status_code == 422
    confirmed = http.post(f"/sweeps/{sweep}/delete", data={"confirm": "four-trials"}, headers=HTML)
    assert confirmed.headers["location"] == "/"
    conductor.obey()
    assert http.get(f"/v1/sweeps/{sweep}").status_code == 404


def test_notes_and_tags_are_kept_and_found_by(http: TestClient, conductor: Conductor) -> None:
    conductor.submit(http)
    conductor.finish()
    said = {"note": "diverges\x1b[31m late ", "tags": ["paper", " b ", "paper"]}
    put = http.patch("/v1/trials/1/annotation", json=said, headers={"X-Actor": "ada"}).raise_for_status().json()
    assert (put["note"], put["tags"], put["actor"]) == ("diverges\\x1b[31m late", ["b", "paper"], "ada")
    http.patch("/v1/sweeps/1/cells/1/annotation", json={"tags": ["cell"]}).raise_for_status()
    http.patch("/v1/sweeps/1/annotation", json={"note": "whole"}).raise_for_status()
    assert http.get("/v1/trials/1").json()["annotation"]["tags"] == ["b", "paper"]
    assert http.get("/v1/sweeps/1").json()["annotation"]["note"] == "whole"

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
    http.post("/trials/1/annotation", data={"note": "", "tags": "x, y,"}, headers=BEARER)
    assert http.get("/v1/trials/1/annotation").json() == {
        "note": "",
        "tags": ["x", "y"],
        "actor": None,
        "changed": None,
    }
    form = 'action="/sweeps/1/cells/1/annotation"'
    assert form in http.get("/sweeps/1/cells/1", headers=HTML).text
    said = {"note": "two\r\nlines <b>", "tags": "cell, slow"}
    answer = http.post("/sweeps/1/cells/1/annotation", data=said, headers=BEARER, follow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/sweeps/1/cells/1#annotation")
    kept = http.get("/v1/sweeps/1/cells/1").json()["annotation"]
    assert (kept["note"], kept["tags"]) == ("two\nlines <b>", ["cell", "slow"])
    assert "lines &lt;b&gt;" in http.get("/sweeps/1/cells/1", headers=HTML).text
    assert http.post("/sweeps/1/cells/7/annotation", data=said, headers=BEARER).status_code == 404
    assert "recipe" in http.get("/compare?trial=1&trial=3", headers=HTML).text
    assert "takes two trials" in http.get("/compare", headers=HTML).text


def test_wrong_notes_and_tags_are_refused(http: TestClient, conductor: Conductor) -> None:
    assert http.patch("/v1/sweeps/1/annotation", json={"note": "x"}).status_code == 404
    conductor.submit(http)
    for wrong in ({"note": "x" * 4001}, {"tags": ["x" * 51]}, {"tags": ["a"] * 21}, {"tags": ["a,b"]}, {"other": 1}):
        assert http.patch("/v1/sweeps/1/annotation", json=wrong).status_code == 422
    assert http.patch("/v1/trials/9/annotation", json={"note": "x"}).status_code == 404
    assert http.get("/v1/sweeps/1/cells/7/annotation").status_code == 404


def test_they_go_with_their_sweep(http: TestClient, conductor: Conductor) -> None:
    conductor.submit(http)
    http.patch("/v1/sweeps/1/annotation", json={"note": "x", "tags": ["a"]}).raise_for_status()
    http.patch("/v1/trials/2/annotation", json={"tags": ["a"]}).raise_for_status()
    http.post("/v1/sweeps/1/cancel")
    conductor.obey()
    conductor.settle()
    assert http.delete("/v1/sweeps/1", params={"confirm": "four-trials"}).status_code == 202
    assert http.patch("/v1/sweeps/1/annotation", json={"note": "y"}).status_code == 409
    conductor.obey()
    assert http.get("/v1/sweeps/1").status_code == 404
    with conductor.store.database.reading() as connection:
        for table in ("note", "tag", "trial_column"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() == 0


def test_tags_are_added_and_removed_and_tags_of_others_stay(http: TestClient, conductor: Conductor) -> None:
    conductor.submit(http)

    def put(**change: object) -> list[str]:
        return http.patch("/v1/sweeps/1/annotation", json=change).raise_for_status().json()["tags"]

    assert put(added=["paper", "wip"]) == ["paper", "wip"]
    assert put(added=["late"], removed=["WIP", "never there"]) == ["late", "paper"]
    assert put(tags=["x"], added=["y"]) == ["x", "y"]
    assert put(note="only this") == ["x", "y"]
    http.patch("/v1/sweeps/1/annotation", json={"tags": [f"tag {n}" for n in range(20)]}).raise_for_status()
    refused = http.patch("/v1/sweeps/1/annotation", json={"added": ["one more"]})
    assert (refused.status_code, refused.json()["detail"]) == (
        409, "21 tags are more than the allowed 20; remove some",
    )  # fmt: skip
    assert put(added=["one more"], removed=["tag 0"])[0] == "one more"


def test_sweeps_are_listed_by_their_own_tags_page_by_page(http: TestClient, conductor: Conductor) -> None:
    for number in range(1, 6):
        text = SPEC.replace("name: four-trials", f"name: sweep {number}")
        http.post("/v1/sweeps", content=text, headers=YAML).raise_for_status()
    for number in (1, 3, 5):
        http.patch(f"/v1/sweeps/{number}/annotation", json={"tags": ["Paper", "b & <c>"]}).raise_for_status()
    http.patch("/v1/sweeps/2/annotation", json={"tags": ["paperback"]}).raise_for_status()
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
