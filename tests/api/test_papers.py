"""Macros and the check of a paper, over HTTP and from the command line."""

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from orchestrator.service.service import Service
from tests.api.played import Conductor
from tests.api.test_cli import NOWHERE, metricsweep


@pytest.fixture
def ran(http: TestClient, conductor: Conductor) -> None:
    """A sweep of which one of two cells has its two seeds."""
    conductor.submit(http)
    conductor.finish(0.5)
    conductor.finish(0.6)


def test_over_http(http: TestClient, ran: None) -> None:
    tex = http.get("/v1/sweeps/1/tables/main/macros").text
    assert "\\ms@number{msMainTripletRecallAtOne}{55.00}" in tex
    view = http.get("/v1/sweeps/1/tables/main/macros?format=json&prefix=xy").json()
    assert view["numbers"][0]["name"] == "xyMainTripletRecallAtOne"
    assert http.get("/v1/sweeps/1/tables/mian/macros").status_code == 404
    assert http.get("/v1/sweeps/1/tables/main/macros?prefix=m2").status_code == 422


def test_selection_of_nothing_is_said(http: TestClient, ran: None, url: str) -> None:
    cells = http.get("/v1/sweeps/1/optimism").json()["cells"]
    assert [one["reason"] for one in cells] == [
        "one candidate, so that none was selected from several",
        "no candidate has finished in every repeat with a score",
    ]  # fmt: skip
    assert "nested resampling over repeats" in metricsweep(url, "optimism", 1).stdout.replace("\n", " ")
    assert json.loads(metricsweep(url, "optimism", 1, "--json").stdout)["cells"] == cells
    assert http.get("/v1/sweeps/9/optimism").status_code == 404


def test_a_paper_from_macros_to_check(
    url: str, service: Service, ran: None, conductor: Conductor, tmp_path: Path
) -> None:
    numbers, paper, bundle = tmp_path / "numbers.tex", tmp_path / "paper.tex", tmp_path / "out.zip"
    wrote = metricsweep(url, "table", 1, "main", "--macros", numbers)
    assert wrote.exit_code == 0, wrote.output
    paper.write_text("\\input{numbers} \\msMainTripletRecallAtOne\n\\msMainSemihardMapAtR")
    assert metricsweep(url, "check", paper).stdout.endswith("2 of 4 numbers in 1 file are printed: all agree\n")
    with service.bundles.make(1) as made:
        bundle.write_bytes(made.read())
    assert metricsweep(NOWHERE, "check", paper, "--bundle", bundle).exit_code == 0
    conductor.finish(0.7)
    conductor.finish(0.8)
    stale = metricsweep(url, "check", paper)
    assert stale.exit_code == 1
    assert f"printed at {paper}:2" in stale.stdout.replace("\n", "")
    assert metricsweep(NOWHERE, "check", paper, "--bundle", bundle).exit_code == 0, "the bundle is what it was"
    assert metricsweep(url, "check", tmp_path / "none.tex").exit_code == 2
    assert metricsweep(NOWHERE, "check", paper).exit_code == 3, "there is no server"


def test_a_table_taken_in_whole_is_checked(
    url: str, service: Service, ran: None, conductor: Conductor, tmp_path: Path
) -> None:
    paper, bundle = tmp_path / "paper.tex", tmp_path / "out.zip"
    metricsweep(url, "table", 1, "main", "--out", tmp_path / "main.tex")
    paper.write_text("\\input{main}")
    assert metricsweep(url, "check", paper).stdout == "1 table taken in whole\nall agree\n"
    with service.bundles.make(1) as made:
        bundle.write_bytes(made.read())
    conductor.finish(0.7)
    conductor.finish(0.8)
    stale = metricsweep(url, "check", paper)
    assert stale.exit_code == 1
    assert "Semihard triplet, R@1: … in the paper, **75.00**±7.07 now" in stale.stdout.replace("\n", " ")
    assert metricsweep(NOWHERE, "check", paper, "--bundle", bundle).stdout.endswith("all agree\n"), "it is what it was"


def test_a_paper_of_a_sweep_that_is_not_there(url: str, ran: None, tmp_path: Path) -> None:
    numbers, paper = tmp_path / "numbers.tex", tmp_path / "paper.tex"
    metricsweep(url, "table", 1, "--macros", numbers, "--prefix", "ours")
    numbers.write_text(numbers.read_text().replace('"sweep": 1', '"sweep": 9'))
    paper.write_text("\\input{numbers} \\oursMainTripletRecallAtOne")
    answer = metricsweep(url, "check", paper)
    assert answer.exit_code == 1
    assert "its numbers are not there: no sweep 9" in answer.stdout
