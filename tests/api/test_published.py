"""The papers' tables over HTTP, from Python and from the command line; own numbers beside them."""

import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner, Result

from api.cli import app
from api.client import Client
from api.failures import ApiError
from tests.api.conftest import TOKEN, named
from tests.api.played import SPEC, YAML, Conductor

ROOT = Path(__file__).parents[2]
# The cells of SEC's table 3 without regularizer on CUB, though digits train here.
COMPARED = SPEC.replace("  main: {rows", "  main: {published: SEC-T3, rows").replace(
    "  loss: [triplet, semihard]\n",
    "  loss: [triplet, semihard]\n  dataset: [{label: cub200, patch: {dataset: digits}}]\n",
)


def metricsweep(*arguments: object, url: str = "http://127.0.0.1:1") -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments], env=named(url))


@pytest.fixture
def path(http: TestClient, conductor: Conductor) -> str:
    """A sweep of which two of four trials have finished: one cell has its two seeds, the other none."""
    answer = http.post("/v1/sweeps", content=COMPARED, headers=YAML)
    assert answer.status_code == 201, answer.text
    conductor.begin()
    conductor.finish(0.5)
    conductor.finish(0.6)
    return "/v1/sweeps/1/tables/main"


class TestHttp:
    def test_the_list_has_every_table(self, http: TestClient) -> None:
        found = http.get("/v1/published").json()
        assert (len(found), sum(one["count"] for one in found)) == (23, 1618)
        third = next(one for one in found if one["id"] == "SEC-T3")
        assert third["axes"] == ["dataset", "loss", "regularizer"]
        assert "recall@1000" in third["metrics"]

    def test_one_table_has_every_number(self, http: TestClient) -> None:
        found = http.get("/v1/published/isa-t2").json()
        assert (found["id"], len(found["numbers"])) == ("ISA-T2", 36)
        first = found["numbers"][0]
        assert (first["printed"], first["value"], first["std"]) == ("63.6±0.5", 0.636, 0.005)

    def test_an_unknown_one_is_a_problem_with_a_near_miss(self, http: TestClient) -> None:
        answer = http.get("/v1/published/SEC-TT3")
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
        assert "did you mean 'SEC-T3'" in answer.json()["detail"]

    @pytest.mark.parametrize("numbers", ["own", "published", "difference", "both", "verdict"])
    def test_a_table_shows_the_numbers_that_are_asked_for(self, http: TestClient, path: str, numbers: str) -> None:
        answer = http.get(path, params={"numbers": numbers})
        assert answer.status_code == 200, answer.text
        assert answer.json()["numbers"] == numbers
        for format_name in ("latex", "markdown", "html", "csv"):
            assert http.get(path, params={"numbers": numbers, "format": format_name}).status_code == 200

    def test_json_has_value_difference_and_verdict(self, http: TestClient, path: str) -> None:
        rows = http.get(path).json()["panels"][0]["rows"]
        triplet, semihard = (row["cells"][0]["published"] for row in rows)
        assert (triplet["value"], triplet["verdict"]) == (0.5334, "reproduced")
        assert triplet["difference"] == pytest.approx(0.55 - 0.5334)
        assert (semihard["value"], semihard["difference"], semihard["verdict"]) == (0.6531, None, "not run")

    def test_other_numbers_are_refused(self, http: TestClient, path: str) -> None:
        assert http.get(path, params={"numbers": "theirs"}).status_code == 422
        http.post("/v1/sweeps", content=SPEC, headers=YAML)
        answer = http.get("/v1/sweeps/2/tables/main", params={"numbers": "both"})
        assert answer.status_code == 409
        assert "published" in answer.json()["detail"]

    def test_a_spec_that_names_no_published_table_of_ours_is_refused(self, http: TestClient) -> None:
        answer = http.post("/v1/sweeps", content=COMPARED.replace("SEC-T3", "SEC-T33"), headers=YAML)
        assert answer.status_code == 422
        assert "SEC-T3" in answer.text


def test_the_client_asks_for_them(url: str, conductor: Conductor) -> None:
    with Client(url, TOKEN) as client:
        assert len(client.published()) == 23
        assert client.published_table("sec-t2").numbers[0].printed == "56.66"
        with pytest.raises(ApiError, match="did you mean"):
            client.published_table("SEC T3")
        sweep = client.submit(COMPARED.encode()).id
        conductor.begin()
        assert b"53.34" in client.table(sweep, "main", "markdown", numbers="published").content


class TestCommand:
    """It asks no server: nothing listens where these commands look for one."""

    def test_the_list(self) -> None:
        answer = metricsweep("published")
        assert answer.exit_code == 0
        assert re.search(r"^SEC-T3 +288  Four losses", answer.stdout, re.MULTILINE)
        assert len(json.loads(metricsweep("published", "--json").stdout)) == 23

    def test_one_table_in_its_own_formats(self, tmp_path: Path) -> None:
        assert "| **67.89** |" in metricsweep("published", "SEC-T2").stdout
        assert metricsweep("published", "sec-t2", "--format", "csv").stdout.startswith("dataset,loss,regularizer")
        assert len(json.loads(metricsweep("published", "SEC-T2", "--json").stdout)["numbers"]) == 30
        file = tmp_path / "out" / "t2.csv"
        assert metricsweep("published", "SEC-T2", "--out", file).exit_code == 0
        assert file.read_text().count("\n") == 6

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["SEC-T33"], "did you mean 'SEC-T3'"),
            (["SEC-T2", "--format", "latex"], "need a spec"),
            (["--format", "csv"], "say which table"),
            (["SEC-T2", "--like", "nothing.yaml"], "there is no file"),
        ],
    )
    def test_wrong_usage_ends_with_2(self, arguments: list[str], says: str) -> None:
        answer = metricsweep("published", *arguments)
        assert answer.exit_code == 2
        assert says in answer.stderr

    def test_in_the_layout_of_a_spec(self, tmp_path: Path) -> None:
        like = ["--like", ROOT / "sweeps" / "sec_t3.yaml"]
        tex = metricsweep("published", "SEC-T3", *like, "--format", "latex")
        assert tex.exit_code == 0, tex.output
        assert r"\textbf{60.82}" in tex.stdout
        assert tex.stdout.count(" 99.35") + tex.stdout.count(r"\textbf{99.35}") == 1
        written = tmp_path / "t3.html"
        assert metricsweep("published", "SEC-T3", *like, "--table", "main", "--out", written).exit_code == 0
        assert "60.82" in written.read_text()
        assert metricsweep("published", "SEC-T3", *like, "--table", "mian").exit_code == 2
        assert metricsweep("published", "SEC-T3", *like, "--set", "recipe.head=nothing").exit_code == 2

    def test_the_table_that_is_named_goes_before_that_of_the_spec(self) -> None:
        like = ["--like", ROOT / "sweeps" / "sec_t3.yaml", "--format", "csv"]
        assert "0.9798" in metricsweep("published", "SEC-T10", *like).stdout  # In-Shop R@30, as table 10 has it
        assert "0.9799" in metricsweep("published", "SEC-T3", *like).stdout

    def test_a_table_of_a_sweep(self, url: str, tmp_path: Path, conductor: Conductor) -> None:
        spec = tmp_path / "compared.yaml"
        spec.write_text(COMPARED)
        assert metricsweep("submit", spec, url=url).exit_code == 0
        conductor.begin()
        both = metricsweep("table", 1, "main", "--numbers", "both", url=url)
        assert both.exit_code == 0
        assert "paper" in both.stdout
        assert "53.34" in both.stdout
        assert "53.34" not in metricsweep("table", 1, url=url).stdout
        assert metricsweep("table", 1, "--numbers", "theirs", url=url).exit_code == 2
