"""A sweep's tables and what stands behind their numbers, bundles, several sweeps, and what changed: over HTTP."""

import csv
import json
import zipfile
from collections import Counter
from datetime import UTC, datetime
from html import unescape
from io import StringIO
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from orchestrator.views import runs
from orchestrator.views.tables import CellView
from tests.api.conftest import HTML
from tests.api.played import SPEC, YAML, Conductor, result
from tests.api.test_cli import NOWHERE, metricsweep

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


@pytest.fixture
def sweep(http: TestClient, conductor: Conductor) -> int:
    number = conductor.submit(http)
    conductor.finish()
    conductor.finish(0.25)
    conductor.fail("ValueError: <b>bold</b>")
    return number


def test_a_number_leads_to_what_stands_behind_it(http: TestClient, sweep: int) -> None:
    page = http.get(f"/sweeps/{sweep}", headers=HTML).text
    assert f'<a href="/sweeps/{sweep}/cells/0">' in page
    found = CellView.model_validate(http.get(f"/v1/sweeps/{sweep}/cells/0").json())
    (candidate,) = found.candidates
    assert (candidate.selected, candidate.score, candidate.n) == (True, 0.375, 2)
    assert [one.score for one in candidate.trials] == [0.5, 0.25]
    trial = http.get(candidate.trials[0].url).json()
    assert trial["fingerprint"] == candidate.trials[0].fingerprint
    shown = http.get(f"/sweeps/{sweep}/cells/0", headers=HTML)
    assert shown.status_code == 200
    for part in (trial["fingerprint"], candidate.trials[0].data_hash, '<a href="/trials/1">', "R@1", "37.50"):
        assert str(part) in shown.text, part
    failed = http.get(f"/sweeps/{sweep}/cells/1", headers=HTML).text
    assert "not eligible" in failed
    assert "<b>bold</b>" not in failed
    for path in ("/sweeps/1/cells/9", "/sweeps/9/cells/0", "/sweeps/1/cells/x", "/sweeps/1/cells/-1"):
        assert http.get(path, headers=HTML).status_code in (404, 422), path
        assert http.get(f"/v1{path}").headers["content-type"] == "application/problem+json", path


def test_a_bundle_is_written_and_rebuilt(url: str, sweep: int, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "out.zip"
    assert metricsweep(url, "table", sweep, "--bundle", file).exit_code == 0
    assert [one.name for one in file.parent.iterdir()] == ["out.zip"]
    rebuilt = metricsweep("http://127.0.0.1:1", "rebuild", file, "--table", "main", "--out", tmp_path / "tables")
    assert rebuilt.exit_code == 0, rebuilt.output
    formats = ("csv", "html", "json", "latex", "latex_document", "markdown")
    assert [line.split() for line in rebuilt.stdout.splitlines()[2:]] == [
        ["main", "own", name, "identical"] for name in formats
    ]
    with zipfile.ZipFile(file) as archive:
        name = "tables/main/own/latex.tex"
        assert (tmp_path / "tables" / name).read_bytes() == archive.read(name)
        files = {one: archive.read(one) for one in archive.namelist()}
    files[name] += b"% more\n"
    with zipfile.ZipFile(file, "w") as archive:
        for one, content in files.items():
            archive.writestr(one, content)
    changed = metricsweep("", "rebuild", file)
    assert changed.exit_code == 1
    assert f"changed: {name}" in changed.stderr
    assert metricsweep(url, "table", 99, "--bundle", tmp_path / "no.zip").exit_code == 2
    assert not (tmp_path / "no.zip").exists()
    assert metricsweep("", "rebuild", file, "--table", "nope").exit_code == 1


def test_several_sweeps_in_one_table(http: TestClient, url: str, sweep: int, conductor: Conductor) -> None:
    other = http.post("/v1/sweeps", content=SPEC.replace("[triplet, semihard]", "[semihard, angular]"), headers=YAML)
    number = other.json()["id"]
    answer = http.get("/v1/tables", params={"sweeps": f"{sweep},{number}", "format": "markdown"})
    assert answer.status_code == 200, answer.text
    assert f"sweep {sweep} (four-trials)" in answer.text
    etag = {"If-None-Match": answer.headers["etag"]}
    assert (
        http.get("/v1/tables", params={"sweeps": f"{sweep},{number}", "format": "markdown"}, headers=etag).status_code
        == 304
    )
    printed = metricsweep(url, "compare", sweep, number, "--view", "difference", "--format", "csv")
    assert printed.exit_code == 0, printed.output
    assert "difference:recall@1" in printed.stdout
    conductor.begin()
    told = metricsweep(url, "compare", sweep, number, "--view", "difference", "--format", "markdown").stdout
    lone = f"2 of 3 cells are in only one of them and have no partner (only in sweep {sweep}: loss=triplet; " \
        f"only in sweep {number}: loss=angular)."  # fmt: skip
    assert lone in told
    told = metricsweep(url, "compare", sweep, number, "--view", "difference", "--format", "csv").stdout
    lines = [line for line in csv.DictReader(StringIO(told)) if line["metric"].startswith("difference:")]
    metrics = len({line["metric"] for line in lines})
    assert Counter(line["loss"] for line in lines if line["status"] == "no partner") \
        == {"triplet": metrics, "angular": metrics}  # fmt: skip
    told = metricsweep(url, "compare", sweep, number, "--view", "difference", "--format", "json").stdout
    places = [cell for panel in json.loads(told)["panels"] for row in panel["rows"] for cell in row["cells"]]
    notes = Counter(cell["note"] for cell in places if "partner" in cell)
    assert notes == {f"no partner: not in sweep {one}": metrics for one in (sweep, number)}
    assert metricsweep(url, "compare", sweep).exit_code == 2
    for query in (
        f"sweeps={sweep}", "sweeps=a,b", f"sweeps={sweep},99", f"sweeps={sweep},{sweep}",
        f"sweeps={sweep},{number}&view=sum",
    ):  # fmt: skip
        assert http.get(f"/v1/tables?{query}").status_code in (404, 409, 422), query


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
    view = http.get("/v1/diff", params={"before": f"1@{moment}", "after": "1"}).json()
    assert (view["table"], view["unchanged"]) == ("main", 2)
    assert {(one["labels"]["loss"], one["change"], one["after"]["n"]) for one in view["cells"]} == {
        ("semihard", "appeared", 2)
    }
    nothing = http.get("/v1/diff", params={"before": "1", "after": "1", "format": "text"}).text
    assert "0 numbers of table main changed" in nothing
    early = http.get("/v1/diff", params={"before": "1@2020-01-01", "after": "1", "format": "text"}).text
    assert early.startswith("From sweep 1 (four-trials) at 2020-01-01 00:00 UTC (before it was submitted) to sweep 1")
    late = http.get("/v1/diff", params={"before": "1", "after": "1@2999-01-01", "format": "text"}).text
    assert late.startswith("From sweep 1 (four-trials) to sweep 1 (four-trials) at 2999-01-01 00:00 UTC (still to come")


def at(http: TestClient, moment: str) -> list[tuple[str, str, str, str]]:
    """Cell, metric, and what a number was and is, from a time on."""
    view = http.get("/v1/diff", params={"before": f"1@{moment}", "after": "1"}).json()
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
        answer = http.get("/v1/diff", params={"before": before, "after": "1"})
        assert (answer.status_code, says in answer.json()["detail"]) == (status, True), answer.text
    assert http.get("/v1/diff?before=1&after=1&table=mian").status_code == 404
    said = metricsweep(url, "diff", f"1@{moment}", "1")
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
    view = json.loads(metricsweep(NOWHERE, "diff", *files, "--format", "json").stdout)
    assert view["cells"] == http.get("/v1/diff?before=1&after=2").json()["cells"]
    assert len(view["cells"]) == 4
    assert {cause["message"] for one in view["cells"] for cause in one["causes"]} == {
        "evaluate_every 2 → 21, iterations 20 → 211"
    }
    out = tmp_path / "diff.json"
    assert metricsweep(NOWHERE, "diff", *files, "--out", out).exit_code == 0
    assert json.loads(out.read_text()) == view
    assert metricsweep(NOWHERE, "diff", tmp_path / "none.zip", files[0]).exit_code == 2
    assert metricsweep(NOWHERE, "diff", files[0], "1@2026-11-20").exit_code == 2
