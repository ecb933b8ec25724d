"""The papers' tables, their reproductions, macros and the check of a paper: over HTTP, from Python and by commands."""

import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.client import Client
from orchestrator.service import tables
from orchestrator.service.service import Service
from orchestrator.views.accounts import Role
from tests.api.conftest import TOKEN
from tests.api.played import SPEC, YAML, Conductor
from tests.api.test_cli import NOWHERE, metricsweep


@pytest.fixture
def half(http: TestClient, conductor: Conductor) -> None:
    """A sweep of which one of two cells has its two seeds."""
    conductor.submit(http)
    conductor.finish(0.5)
    conductor.finish(0.6)


def test_macros_over_http(http: TestClient, half: None) -> None:
    tex = http.get("/v1/sweeps/1/tables/main/macros").text
    assert "\\ms@number{msMainTripletRecallAtOne}{55.00}" in tex
    view = http.get("/v1/sweeps/1/tables/main/macros?format=json&prefix=xy").json()
    assert view["numbers"][0]["name"] == "xyMainTripletRecallAtOne"
    assert http.get("/v1/sweeps/1/tables/mian/macros").status_code == 404
    assert http.get("/v1/sweeps/1/tables/main/macros?prefix=m2").status_code == 422


def test_an_empty_selection_is_reported(http: TestClient, half: None, url: str) -> None:
    cells = http.get("/v1/sweeps/1/optimism").json()["cells"]
    assert [one["reason"] for one in cells] == [
        "one candidate, so that none was selected from several",
        "no candidate has finished in every repeat with a score",
    ]  # fmt: skip
    assert "nested resampling over repeats" in metricsweep(url, "optimism", 1).stdout.replace("\n", " ")
    assert json.loads(metricsweep(url, "optimism", 1, "--json").stdout)["cells"] == cells
    assert http.get("/v1/sweeps/9/optimism").status_code == 404


def test_a_paper_from_macros_to_check(url: str, half: None, conductor: Conductor, tmp_path: Path) -> None:
    numbers, paper, bundle = tmp_path / "numbers.tex", tmp_path / "paper.tex", tmp_path / "out.zip"
    wrote = metricsweep(url, "table", 1, "main", "--macros", numbers)
    assert wrote.exit_code == 0, wrote.output
    paper.write_text("\\input{numbers} \\msMainTripletRecallAtOne\n\\msMainSemihardMapAtR")
    assert metricsweep(url, "check", paper).stdout.endswith("2 of 4 numbers in 1 file are printed: all agree\n")
    metricsweep(url, "table", 1, "--bundle", bundle)
    assert metricsweep(NOWHERE, "check", paper, "--bundle", bundle).exit_code == 0
    conductor.finish(0.7)
    conductor.finish(0.8)
    stale = metricsweep(url, "check", paper)
    assert stale.exit_code == 1
    assert f"printed at {paper}:2" in stale.stdout.replace("\n", "")
    assert metricsweep(NOWHERE, "check", paper, "--bundle", bundle).exit_code == 0, "the bundle is what it was"
    assert metricsweep(url, "check", tmp_path / "none.tex").exit_code == 2
    assert metricsweep(NOWHERE, "check", paper).exit_code == 3, "no server runs"


def test_a_table_taken_in_whole_is_checked(url: str, half: None, conductor: Conductor, tmp_path: Path) -> None:
    paper, bundle = tmp_path / "paper.tex", tmp_path / "out.zip"
    metricsweep(url, "table", 1, "main", "--out", tmp_path / "main.tex")
    paper.write_text("\\input{main}")
    assert metricsweep(url, "check", paper).stdout == "1 table taken in whole\nall agree\n"
    metricsweep(url, "table", 1, "--bundle", bundle)
    conductor.finish(0.7)
    conductor.finish(0.8)
    stale = metricsweep(url, "check", paper)
    assert stale.exit_code == 1
    assert "Semihard triplet, R@1: … in the paper, **75.00**±7.07 now" in stale.stdout.replace("\n", " ")
    assert metricsweep(NOWHERE, "check", paper, "--bundle", bundle).stdout.endswith("all agree\n"), "it is what it was"


def test_a_paper_of_a_sweep_that_is_not_there(url: str, half: None, tmp_path: Path) -> None:
    numbers, paper = tmp_path / "numbers.tex", tmp_path / "paper.tex"
    metricsweep(url, "table", 1, "--macros", numbers, "--prefix", "ours")
    numbers.write_text(numbers.read_text().replace('"sweep": 1', '"sweep": 9'))
    paper.write_text("\\input{numbers} \\oursMainTripletRecallAtOne")
    answer = metricsweep(url, "check", paper)
    assert answer.exit_code == 1
    assert "its numbers are not there: no sweep 9" in answer.stdout


ROOT = Path(__file__).parents[2]
# The cells of SEC's table 3 without regularizer on CUB, though digits train here.
COMPARED = SPEC.replace("  main: {rows", "  main: {published: SEC-T3, rows").replace(
    "  loss: [triplet, semihard]\n",
    "  loss: [triplet, semihard]\n  dataset: [{label: cub200, patch: {dataset: digits}}]\n",
)


@pytest.fixture
def path(http: TestClient, conductor: Conductor) -> str:
    """A sweep of which two of four trials have finished: one cell has its two seeds, the other none."""
    conductor.submit(http, COMPARED)
    conductor.finish(0.5)
    conductor.finish(0.6)
    return "/v1/sweeps/1/tables/main"


def test_the_list_and_one_table(http: TestClient) -> None:
    found = http.get("/v1/published").json()
    assert (len(found), sum(one["count"] for one in found)) == (26, 1628)
    third = next(one for one in found if one["id"] == "SEC-T3")
    assert third["axes"] == ["dataset", "loss", "regularizer"]
    assert "recall@1000" in third["metrics"]
    found = http.get("/v1/published/isa-t2").json()
    assert (found["id"], len(found["numbers"])) == ("ISA-T2", 36)
    first = found["numbers"][0]
    assert (first["printed"], first["value"], first["std"]) == ("63.6±0.5", 0.636, 0.005)
    answer = http.get("/v1/published/SEC-TT3")
    assert (answer.status_code, "did you mean 'SEC-T3'" in answer.json()["detail"]) == (404, True)


def test_a_table_shows_the_requested_numbers(http: TestClient, path: str) -> None:
    for numbers in ("own", "published", "difference", "both", "verdict"):
        answer = http.get(path, params={"numbers": numbers})
        assert (answer.status_code, answer.json()["numbers"]) == (200, numbers), answer.text
        assert http.get(path, params={"numbers": numbers, "format": "markdown"}).status_code == 200


def test_json_has_value_difference_and_verdict(http: TestClient, path: str) -> None:
    rows = http.get(path).json()["panels"][0]["rows"]
    triplet, semihard = (row["cells"][0]["published"] for row in rows)
    assert (triplet["value"], triplet["verdict"]) == (0.5334, "reproduced")
    assert triplet["difference"] == pytest.approx(0.55 - 0.5334)
    assert (semihard["value"], semihard["difference"], semihard["verdict"]) == (0.6531, None, "not run")


def test_other_numbers_are_refused(http: TestClient, path: str) -> None:
    assert http.get(path, params={"numbers": "theirs"}).status_code == 422
    wrong = http.post("/v1/sweeps", content=COMPARED.replace("SEC-T3", "SEC-T33"), headers=YAML)
    assert (wrong.status_code, "SEC-T3" in wrong.text) == (422, True)
    http.post("/v1/sweeps", content=SPEC, headers=YAML)
    answer = http.get("/v1/sweeps/2/tables/main", params={"numbers": "both"})
    assert answer.status_code == 409
    assert "published" in answer.json()["detail"]


def test_the_list_by_command() -> None:
    answer = metricsweep(NOWHERE, "published")
    assert answer.exit_code == 0
    assert re.search(r"^SEC-T3 +288  Four losses", answer.stdout, re.MULTILINE)
    assert len(json.loads(metricsweep(NOWHERE, "published", "--json").stdout)) == 26


def test_one_table_in_its_own_formats(tmp_path: Path) -> None:
    assert "| **67.89** |" in metricsweep(NOWHERE, "published", "SEC-T2").stdout
    assert metricsweep(NOWHERE, "published", "sec-t2", "--format", "csv").stdout.startswith("dataset,loss,regularizer")
    assert len(json.loads(metricsweep(NOWHERE, "published", "SEC-T2", "--json").stdout)["numbers"]) == 30
    file = tmp_path / "out" / "t2.csv"
    assert metricsweep(NOWHERE, "published", "SEC-T2", "--out", file).exit_code == 0
    assert file.read_text().count("\n") == 6
    for arguments, says in (
        (["SEC-T33"], "did you mean 'SEC-T3'"), (["SEC-T2", "--format", "latex"], "need a spec"),
        (["--format", "csv"], "say which table"), (["SEC-T2", "--like", "nothing.yaml"], "there is no file"),
    ):  # fmt: skip
        answer = metricsweep(NOWHERE, "published", *arguments)
        assert (answer.exit_code, says in answer.stderr) == (2, True), arguments


def test_in_the_layout_of_a_spec(tmp_path: Path) -> None:
    like = ["--like", ROOT / "sweeps" / "sec_t3.yaml"]
    tex = metricsweep(NOWHERE, "published", "SEC-T3", *like, "--format", "latex")
    assert tex.exit_code == 0, tex.output
    assert r"\textbf{60.82}" in tex.stdout
    assert tex.stdout.count(" 99.35") + tex.stdout.count(r"\textbf{99.35}") == 1
    written = tmp_path / "t3.html"
    assert metricsweep(NOWHERE, "published", "SEC-T3", *like, "--table", "main", "--out", written).exit_code == 0
    assert "60.82" in written.read_text()
    assert metricsweep(NOWHERE, "published", "SEC-T3", *like, "--table", "mian").exit_code == 2
    assert metricsweep(NOWHERE, "published", "SEC-T3", *like, "--set", "recipe.head=nothing").exit_code == 2
    # In-Shop R@30: the named table takes precedence over the table of the spec.
    assert "0.9798" in metricsweep(NOWHERE, "published", "SEC-T10", *like, "--format", "csv").stdout
    assert "0.9799" in metricsweep(NOWHERE, "published", "SEC-T3", *like, "--format", "csv").stdout


def test_a_table_of_a_sweep(url: str, tmp_path: Path, conductor: Conductor) -> None:
    spec = tmp_path / "compared.yaml"
    spec.write_text(COMPARED)
    assert metricsweep(url, "submit", spec).exit_code == 0
    conductor.begin()
    both = metricsweep(url, "table", 1, "main", "--numbers", "both")
    assert both.exit_code == 0
    assert "paper" in both.stdout
    assert "53.34" in both.stdout
    assert "53.34" not in metricsweep(url, "table", 1).stdout
    assert metricsweep(url, "table", 1, "--numbers", "theirs").exit_code == 2


# That digits train under the paper's name of another data set is no evidence; norms of our own are.
REAL = COMPARED.replace("patch: {dataset: digits}", "patch: {dataset: cub200}")


@pytest.fixture
def ran(http: TestClient, conductor: Conductor) -> None:
    """A sweep of CUB under SEC's table 3 of which one cell has its two seeds."""
    conductor.submit(http, REAL)
    conductor.finish(0.50)
    conductor.finish(0.60)


def test_reproductions_over_http(http: TestClient, ran: None) -> None:
    counts = {one["paper"]: one["counts"] for one in http.get("/v1/reproductions").json()}
    assert counts["SEC"] == {"reproduced": 0, "not_reproduced": 0, "underpowered": 1, "not_run": 964}
    assert counts["ISA"]["not_run"] == 72
    view = http.get("/v1/reproductions/sec").json()
    table = next(one for one in view["tables"] if one["id"] == "SEC-T3")
    (entry,) = [one for one in table["entries"] if one["status"] == "underpowered"]
    assert (entry["printed"], entry["evidence"][0]["mean"], entry["evidence"][0]["n"]) == ("53.34", 0.55, 2)
    assert {"runs", "selection", "backbone"} <= {one["what"] for one in entry["evidence"][0]["protocol"]}
    known = {"If-None-Match": http.get("/v1/reproductions/SEC").headers["etag"]}
    assert http.get("/v1/reproductions/SEC", headers=known).status_code == 304
    assert http.get("/v1/reproductions/SEK").json()["detail"].endswith("did you mean 'SEC'?")
    assert http.get("/v1/reproductions/SEC?format=pdf").status_code == 404
    assert http.get("/v1/reproductions/SEC?within=0").status_code == 422


def test_the_navigation_has_the_sections_that_apply(http: TestClient, conductor: Conductor, service: Service) -> None:
    def sections() -> list[str]:
        page = http.get("/", headers={"Accept": "text/html"}).text
        return re.findall(r">([A-Z]\w+)</a>", page[page.index('aria-label="Site"') : page.index("</nav>")])

    usual = ["Sweeps", "Trials", "Submit", "Catalog", "Cluster"]
    conductor.submit(http, SPEC)
    assert sections() == [*usual, "Docs"]
    conductor.submit(http, REAL)
    service.people.add_user("ada", Role.MEMBER, "main")
    assert sections() == [*usual, "Reproduction", "People", "Docs"]


def test_reproductions_as_pages(http: TestClient, ran: None) -> None:
    assert '<a href="/reproduction/SEC">SEC</a>' in http.get("/reproduction").text
    text = http.get("/reproduction/SEC").text
    assert '<a href="/sweeps/1/cells/0">sweep 1, cell 0</a>' in text
    assert "selection: here by the validation split; the paper: the test split" in text
    assert "63.10" not in text, "what was not run is listed when it is asked for"
    assert "65.31" in http.get("/reproduction/SEC?status=not+run").text
    assert "None of them has this status." in http.get("/reproduction/SEC?status=reproduced").text
    assert http.get("/reproduction/SEK").status_code == 404


def test_reproductions_from_python_and_the_command_line(url: str, ran: None, tmp_path: Path) -> None:
    with Client(url, TOKEN) as client:
        assert client.evidence.reproduction("SEC", within=0.5).within == 0.5
    assert "underpowered" in metricsweep(url, "reproduction").stdout
    assert json.loads(metricsweep(url, "reproduction", "--json").stdout)[0]["paper"] == "SEC"
    assert "| SEC-T3 | 0 | 0 | 1 |" in metricsweep(url, "reproduction", "SEC").stdout
    assert metricsweep(url, "reproduction", "SEC", "--out", tmp_path / "sec.md").exit_code == 0
    assert "| SEC-T3 | 0 | 0 | 1 |" in (tmp_path / "sec.md").read_text()
    assert metricsweep(url, "reproduction", "--out", tmp_path / "x.md").exit_code == 2


def test_from_a_bundle_it_is_the_same_to_the_byte(http: TestClient, url: str, ran: None, tmp_path: Path) -> None:
    file = tmp_path / "out.zip"
    metricsweep(url, "table", 1, "--bundle", file)
    for file_format in ("latex", "json", "markdown", "csv"):
        alone = metricsweep(NOWHERE, "reproduction", "SEC", "--bundle", file, "--format", file_format)
        assert alone.exit_code == 0, alone.output
        assert alone.stdout_bytes == http.get(f"/v1/reproductions/SEC?format={file_format}").content
    report = tables.rebuild(file)
    assert report.identical
    assert {one.file for one in report.made if one.numbers == "reproduction"} == {
        f"reproduction/sec.{end}" for end in ("json", "csv", "md", "tex")
    }
    assert "SEC              reproduction latex           identical" in metricsweep(NOWHERE, "rebuild", file).stdout
