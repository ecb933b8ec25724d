"""What changed in a table, over HTTP and from the command line: of a sweep at two times, of two, and of bundles."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.api.played import SPEC, YAML, Conductor
from tests.api.test_cli import NOWHERE, metricsweep


@pytest.fixture
def moment(http: TestClient, conductor: Conductor) -> str:
    """When one cell of a sweep had ended; by now the other one has, too."""
    conductor.submit(http)
    conductor.finish(0.5)
    conductor.finish(0.6)
    then = datetime.now(UTC).isoformat()
    conductor.finish(0.7)
    conductor.finish(0.8)
    return then


def test_a_sweep_at_two_times(http: TestClient, moment: str) -> None:
    view = http.get("/v1/drift", params={"before": f"1@{moment}", "after": "1"}).json()
    assert (view["table"], view["unchanged"]) == ("main", 2)
    assert {(one["labels"]["loss"], one["change"], one["after"]["n"]) for one in view["cells"]} == {
        ("semihard", "appeared", 2)
    }
    nothing = http.get("/v1/drift", params={"before": "1", "after": "1", "format": "text"}).text
    assert "0 numbers of table main changed" in nothing
    early = http.get("/v1/drift", params={"before": "1@2020-01-01", "after": "1", "format": "text"}).text
    assert early.startswith("From sweep 1 (four-trials) at 2020-01-01 00:00 UTC (before it was submitted) to sweep 1")
    late = http.get("/v1/drift", params={"before": "1", "after": "1@2999-01-01", "format": "text"}).text
    assert late.startswith("From sweep 1 (four-trials) to sweep 1 (four-trials) at 2999-01-01 00:00 UTC (still to come")


def at(http: TestClient, moment: str) -> list[tuple[str, str, str, str]]:
    """Cell, metric, and what a number was and is, from a time on."""
    view = http.get("/v1/drift", params={"before": f"1@{moment}", "after": "1"}).json()
    return [
        (one["labels"]["loss"], one["metric"], one["change"], one["before"]["text"] if one["before"] else "")
        for one in view["cells"]
    ]


def test_numbers_shown_before_an_extension_by_seeds_did_not_appear_by_it(
    http: TestClient, conductor: Conductor
) -> None:
    conductor.submit(http)
    for value in (0.5, 0.6, 0.7, 0.8):
        conductor.finish(value)
    then = datetime.now(UTC).isoformat()
    wider = SPEC.replace("[0, 1]", "[0, 1, 2]").replace("[triplet, semihard]", "[triplet, semihard, contrastive]")
    assert http.post("/v1/sweeps/1/extend", content=wider, headers=YAML).status_code == 202
    conductor.obey()
    assert {(loss, change) for loss, _, change, _ in at(http, then)} <= {
        ("triplet", "pending"),
        ("semihard", "pending"),
    }
    for _ in range(5):
        conductor.finish(0.9)
    found = at(http, then)
    assert {(loss, change) for loss, _, change, _ in found} == {
        ("triplet", "changed"), ("semihard", "changed"), ("contrastive", "appeared"),
    }  # fmt: skip
    before = {(loss, text) for loss, _, change, text in found if change == "changed"}
    assert before == {("triplet", "55.00"), ("semihard", "75.00")}
    assert at(http, datetime.now(UTC).isoformat()) == []


def test_what_names_nothing_is_refused(http: TestClient, url: str, moment: str) -> None:
    for before, status, says in (
        ("1@yesterday", 409, "'yesterday' is no time; write it as 2026-11-20"),
        ("1@0001-01-01T00:00+05:00", 409, "'0001-01-01T00:00+05:00' is no time"),
        ("1@9999-12-31T23:59-05:00", 409, "'9999-12-31T23:59-05:00' is no time"),
        ("main", 409, "'main' names no table; say a sweep, such as 7"),
        ("9", 404, "no sweep 9"),
    ):
        answer = http.get("/v1/drift", params={"before": before, "after": "1"})
        assert (answer.status_code, says in answer.json()["detail"]) == (status, True), answer.text
    assert http.get("/v1/drift?before=1&after=1&table=mian").status_code == 404
    said = metricsweep(url, "drift", f"1@{moment}", "1")
    assert (said.exit_code, "loss semihard" in said.stdout.lower()) == (0, True), said.output


def test_bundles_tell_the_same_as_the_database(
    http: TestClient, url: str, conductor: Conductor, tmp_path: Path
) -> None:
    for fresh in ("", "?fresh=true"):
        conductor.submit(http, SPEC.replace("iterations: 20", f"iterations: 2{len(fresh)}"))
        for value in (0.50, 0.60, 0.70, 0.80):
            conductor.finish(value + len(fresh) / 1000)
    files = [tmp_path / f"{sweep}.zip" for sweep in (1, 2)]
    for sweep, file in enumerate(files, 1):
        metricsweep(url, "table", sweep, "--bundle", file)
    view = json.loads(metricsweep(NOWHERE, "drift", *files, "--format", "json").stdout)
    assert view["cells"] == http.get("/v1/drift?before=1&after=2").json()["cells"]
    assert len(view["cells"]) == 4
    assert {cause["said"] for one in view["cells"] for cause in one["causes"]} == {
        "evaluate_every 2 → 21, iterations 20 → 211"
    }
    out = tmp_path / "drift.json"
    assert metricsweep(NOWHERE, "drift", *files, "--out", out).exit_code == 0
    assert json.loads(out.read_text()) == view
    assert metricsweep(NOWHERE, "drift", tmp_path / "none.zip", files[0]).exit_code == 2
    assert metricsweep(NOWHERE, "drift", files[0], "1@2026-11-20").exit_code == 2
