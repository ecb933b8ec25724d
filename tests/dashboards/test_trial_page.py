"""A trial's page beside its neighbours, with a command that trains it again, and the buttons of trial and cell."""

import json
import os
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from dashboards import sweeps
from orchestrator.views.trials import differences
from tests.dashboards import specimens
from tests.dashboards.markup import read
from tests.dashboards.stage import SMALL_SPEC, Stage

TUNED = SMALL_SPEC.replace("repeat:", "tune:\n  optimizer.lr: [0.001, 0.01]\nrepeat:")


@pytest.fixture
def person(http: TestClient, app: FastAPI) -> TestClient:
    """A browser that has logged in."""
    del http.headers["Authorization"]
    http.post("/login", data={"code": app.state.access.codes.new()})
    http.headers["Origin"] = "http://127.0.0.1:8787"
    return http


def test_differences_are_told_by_path_and_not_of_what_nobody_chose() -> None:
    own = {"version": 1, "loss": {"name": "triplet", "margin": 0.2}, "seed": 0, "pins": {"versions": {"loss": 1}}}
    other = {"version": 1, "loss": {"name": "triplet"}, "seed": 1, "pins": {"versions": {"loss": 2}}, "epochs": 3}
    assert [(one.path, one.own, one.other) for one in differences(own, other)] == [
        ("loss.margin", 0.2, None), ("seed", 0, 1), ("epochs", None, 3),
    ]  # fmt: skip


def test_a_trial_stands_beside_the_selected_candidate_and_its_own_other_repeat(
    stage: Stage, person: TestClient
) -> None:
    sweep = stage.submit(TUNED)
    stage.finish(times=8)
    stage.settle()
    best = next(one for one in stage.service.sweeps.grid(sweep)[0].candidates if one.selected)
    lost = next(one for one in stage.service.sweeps.grid(sweep)[0].candidates if not one.selected)
    beside = stage.service.trials.neighbours(lost.trials[1].trial)
    assert [(one.trial, [line.path for line in one.differences]) for one in beside] == [
        (best.trials[1].trial, ["optimizer.lr"]), (lost.trials[0].trial, ["seed"]),
    ]  # fmt: skip
    assert len(stage.service.trials.neighbours(best.trials[0].trial)) == 1
    page = read(person.get(f"/trials/{lost.trials[1].trial}").text)
    assert "Beside the cell's selected candidate" in page.text
    assert "A step took" in page.text
    cell = person.get(f"/sweeps/{sweep}/cells/0").text
    assert '"name": "runs"' in cell
    assert "eligible" in read(cell).text


def test_the_buttons_of_cell_and_trial_ask_for_what_they_say(stage: Stage, person: TestClient) -> None:
    sweep = stage.submit(SMALL_SPEC)
    stage.fail()
    running = person.get(f"/sweeps/{sweep}/cells/0").text
    assert 'data-refresh="3"' in running
    assert "1 trial of this cell that failed" in read(running).text
    for path, form, leads in (
        ("retry", {"cell": 0, "only": "failed"}, f"/sweeps/{sweep}/cells/0"),
        ("cancel", {"cell": 1}, f"/sweeps/{sweep}/cells/1"),
        ("cancel", {"trial": 2}, "/trials/2"),
    ):
        assert person.post(f"/sweeps/{sweep}/{path}", data=form).headers["location"] == leads
    asked = [(one.kind, one.cell, one.trial) for one in stage.service.commands.requests(sweep, None, 9).items]
    assert asked == [("cancel", None, 2), ("cancel", 1, None), ("retry", 0, None)]


def test_the_command_that_is_shown_trains_the_same_again(stage: Stage, http: TestClient, tmp_path: Path) -> None:
    recipe = {"loss": {"name": "x\nRECIPE\nrm -rf $HOME; echo `id`"}}
    assert sweeps.command(specimens.trial(recipe=recipe)).count("\nRECIPE\n") == 1, "it does not leave its quotes"
    stage.submit(SMALL_SPEC.replace("iterations: 100", "iterations: 3"))
    page = http.get("/trials/1").text
    shown = unescape(page[page.index("cat &gt; trial-1.json") :].partition("</pre>")[0])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # The tests' Python is the one whose folder comes first; here it may have no `python` beside it.
    shown = shown.replace("\npython ", f"\n{sys.executable} ")
    source = str(Path(sweeps.__file__).parents[1])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        ["bash", "-e"], input=shown, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    result = json.loads((tmp_path / "trial-1" / "result.json").read_text())
    assert (result["outcome"], result["steps"]) == ("ok", 3)
