"""From a number of a table to what stands behind it, a sweep's bundle, and tables of several sweeps, over HTTP."""

import csv
import json
import zipfile
from collections import Counter
from io import BytesIO, StringIO
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from orchestrator.views.cells import CellView
from tests.api.conftest import HTML
from tests.api.played import SPEC, YAML, Conductor
from tests.api.test_cli import metricsweep


@pytest.fixture
def sweep(http: TestClient, conductor: Conductor) -> int:
    number = int(http.post("/v1/sweeps", content=SPEC, headers=YAML).json()["id"])
    conductor.begin()
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
    for said in (trial["fingerprint"], candidate.trials[0].data_hash, '<a href="/trials/1">', "R@1", "37.50"):
        assert str(said) in shown.text, said
    failed = http.get(f"/sweeps/{sweep}/cells/1", headers=HTML).text
    assert "not eligible" in failed
    assert "<b>bold</b>" not in failed
    for path in ("/sweeps/1/cells/9", "/sweeps/9/cells/0", "/sweeps/1/cells/x", "/sweeps/1/cells/-1"):
        assert http.get(path, headers=HTML).status_code in (404, 422), path
        assert http.get(f"/v1{path}").headers["content-type"] == "application/problem+json", path


def test_a_bundle_over_http(http: TestClient, sweep: int) -> None:
    answer = http.get(f"/v1/sweeps/{sweep}/bundle")
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-length"] == str(len(answer.content))
    with zipfile.ZipFile(BytesIO(answer.content)) as archive:
        assert json.loads(archive.read("manifest.json"))["sweep"]["id"] == sweep
    assert http.get("/v1/sweeps/99/bundle").status_code == 404


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
