"""The papers' tables over HTTP, from Python and from the command line; own numbers beside them."""

import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.client import Client
from api.failures import ApiError
from tests.api.conftest import TOKEN
from tests.api.played import SPEC, YAML, Conductor
from tests.api.test_cli import NOWHERE, metricsweep

ROOT = Path(__file__).parents[2]
# The cells of SEC's table 3 without regularizer on CUB, though digits train here.
COMPARED = SPEC.replace("  main: {rows", "  main: {published: SEC-T3, rows").replace(
    "  loss: [triplet, semihard]\n",
    "  loss: [triplet, semihard]\n  dataset: [{label: cub200, patch: {dataset: digits}}]\n",
)


@pytest.fixture
def path(http: TestClient, conductor: Conductor) -> str:
    """A sweep of which two of four trials have finished: one cell has its two seeds, the other none."""
    answer = http.post("/v1/sweeps", content=COMPARED, headers=YAML)
    assert answer.status_code == 201, answer.text
    conductor.begin()
    conductor.finish(0.5)
    conductor.finish(0.6)
    return "/v1/sweeps/1/tables/main"


def test_the_list_and_one_table(http: TestClient) -> None:
    found = http.get("/v1/published").json()
    assert (len(found), sum(one["count"] for one in found)) == (23, 1618)
    third = next(one for one in found if one["id"] == "SEC-T3")
    assert third["axes"] == ["dataset", "loss", "regularizer"]
    assert "recall@1000" in third["metrics"]
    found = http.get("/v1/published/isa-t2").json()
    assert (found["id"], len(found["numbers"])) == ("ISA-T2", 36)
    first = found["numbers"][0]
    assert (first["printed"], first["value"], first["std"]) == ("63.6±0.5", 0.636, 0.005)
    answer = http.get("/v1/published/SEC-TT3")
    assert (answer.status_code, "did you mean 'SEC-T3'" in answer.json()["detail"]) == (404, True)


def test_a_table_shows_the_numbers_that_are_asked_for(http: TestClient, path: str) -> None:
    for numbers in ("own", "published", "difference", "both", "verdict"):
        answer = http.get(path, params={"numbers": numbers})
        assert (answer.status_code, answer.json()["numbers"]) == (200, numbers), answer.text
        assert http.get(path, params={"numbers": numbers, "format": "markdown"}).status_code == 200


def test_other_numbers_are_refused(http: TestClient, path: str) -> None:
    assert http.get(path, params={"numbers": "theirs"}).status_code == 422
    wrong = http.post("/v1/sweeps", content=COMPARED.replace("SEC-T3", "SEC-T33"), headers=YAML)
    assert (wrong.status_code, "SEC-T3" in wrong.text) == (422, True)
    http.post("/v1/sweeps", content=SPEC, headers=YAML)
    answer = http.get("/v1/sweeps/2/tables/main", params={"numbers": "both"})
    assert answer.status_code == 409
    assert "published" in answer.json()["detail"]


def test_the_client_asks_for_them(url: str, conductor: Conductor) -> None:
    with Client(url, TOKEN) as client:
        assert len(client.published()) == 23
        assert client.published_table("sec-t2").numbers[0].printed == "56.66"
        with pytest.raises(ApiError, match="did you mean"):
            client.published_table("SEC T3")
        sweep = client.submit(COMPARED.encode()).id
        conductor.begin()
        assert b"53.34" in client.table(sweep, "main", "markdown", numbers="published").content


def test_the_list() -> None:
    answer = metricsweep(NOWHERE, "published")
    assert answer.exit_code == 0
    assert re.search(r"^SEC-T3 +288  Four losses", answer.stdout, re.MULTILINE)
    assert len(json.loads(metricsweep(NOWHERE, "published", "--json").stdout)) == 23


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
    # In-Shop R@30: the table that is named goes before the one of the spec.
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
