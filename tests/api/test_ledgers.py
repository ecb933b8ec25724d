"""The papers' ledgers over HTTP, from Python, from the command line, from a bundle, and as pages."""

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.client import Client
from api.failures import ApiError
from orchestrator.service import bundles
from orchestrator.service.service import Service
from tests.api.conftest import TOKEN
from tests.api.played import YAML, Conductor
from tests.api.test_cli import NOWHERE, metricsweep
from tests.api.test_published import COMPARED

# That digits train under the paper's name of another data set is no evidence; norms of our own are.
REAL = COMPARED.replace("patch: {dataset: digits}", "patch: {dataset: cub200}")


@pytest.fixture
def ran(http: TestClient, conductor: Conductor) -> None:
    """A sweep of CUB under SEC's table 3 of which one cell has its two seeds."""
    answer = http.post("/v1/sweeps", content=REAL, headers=YAML)
    assert answer.status_code == 201, answer.text
    conductor.begin()
    conductor.finish(0.50)
    conductor.finish(0.60)


def test_over_http(http: TestClient, ran: None) -> None:
    counts = {one["paper"]: one["counts"] for one in http.get("/v1/ledgers").json()}
    assert counts["SEC"] == {"reproduced": 0, "not_reproduced": 0, "underpowered": 1, "not_run": 963}
    assert counts["ISA"]["not_run"] == 72
    view = http.get("/v1/ledgers/sec").json()
    table = next(one for one in view["tables"] if one["id"] == "SEC-T3")
    (entry,) = [one for one in table["entries"] if one["standing"] == "underpowered"]
    assert (entry["printed"], entry["evidence"][0]["mean"], entry["evidence"][0]["n"]) == ("53.34", 0.55, 2)
    assert {"runs", "selection", "backbone"} <= {one["what"] for one in entry["evidence"][0]["protocol"]}
    known = {"If-None-Match": http.get("/v1/ledgers/SEC").headers["etag"]}
    assert http.get("/v1/ledgers/SEC", headers=known).status_code == 304
    assert http.get("/v1/ledgers/SEK").json()["detail"].endswith("did you mean 'SEC'?")
    assert http.get("/v1/ledgers/SEC?format=pdf").status_code == 404
    assert http.get("/v1/ledgers/SEC?within=0").status_code == 422


def test_as_pages(http: TestClient, ran: None) -> None:
    assert '<a href="/ledger/SEC">SEC</a>' in http.get("/ledger").text
    text = http.get("/ledger/SEC").text
    assert '<a href="/sweeps/1/cells/0">sweep 1, cell 0</a>' in text
    assert "selection: here by the validation split; the paper: the test split" in text
    assert "63.10" not in text, "what was not run is listed when it is asked for"
    assert "65.31" in http.get("/ledger/SEC?standing=not+run").text
    assert "None of them stands so." in http.get("/ledger/SEC?standing=reproduced").text
    assert http.get("/ledger/SEK").status_code == 404


def test_from_python_and_the_command_line(url: str, conductor: Conductor, tmp_path: Path) -> None:
    with Client(url, TOKEN) as client:
        client.submit(REAL.encode())
        conductor.begin()
        conductor.finish(0.5)
        conductor.finish(0.6)
        assert client.evidence.ledgers()[0].counts.underpowered == 1
        assert client.evidence.ledger("SEC", within=0.5).within == 0.5
        with pytest.raises(ApiError, match="did you mean"):
            client.evidence.ledger("SEK")
    assert "underpowered" in metricsweep(url, "ledger").stdout
    assert json.loads(metricsweep(url, "ledger", "--json").stdout)[0]["paper"] == "SEC"
    assert "| SEC-T3 | 0 | 0 | 1 |" in metricsweep(url, "ledger", "SEC").stdout
    assert metricsweep(url, "ledger", "SEC", "--out", tmp_path / "sec.md").exit_code == 0
    assert "| SEC-T3 | 0 | 0 | 1 |" in (tmp_path / "sec.md").read_text()
    assert metricsweep(url, "ledger", "--out", tmp_path / "x.md").exit_code == 2


def test_from_a_bundle_it_is_the_same_to_the_byte(
    http: TestClient, service: Service, ran: None, tmp_path: Path
) -> None:
    file = tmp_path / "out.zip"
    with service.bundles.make(1) as made:
        file.write_bytes(made.read())
    for file_format in ("latex", "json", "markdown", "csv"):
        alone = metricsweep(NOWHERE, "ledger", "SEC", "--bundle", file, "--format", file_format)
        assert alone.exit_code == 0, alone.output
        assert alone.stdout_bytes == http.get(f"/v1/ledgers/SEC?format={file_format}").content
    report = bundles.rebuild(file)
    assert report.identical
    assert {one.rendering.file for one in report.ledgers} == {
        f"ledger/sec.{end}" for end in ("json", "csv", "md", "tex")
    }
    assert "SEC              ledger   latex           identical" in metricsweep(NOWHERE, "rebuild", file).stdout
