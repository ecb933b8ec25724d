"""Pages of a sweep, its cells and its trials: the table filling in, neighbours, commands and buttons."""

import html
import json
import os
import re
import subprocess
import sys
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from dashboards import rendering, sweeps
from orchestrator.views.states import TrialState
from orchestrator.views.sweeps import Counts, StepCount
from orchestrator.views.trials import differences
from tests.dashboards import specimens
from tests.dashboards.markup import read
from tests.dashboards.stage import SMALL_SPEC, SPEC, Stage


def test_the_table_fills_in_coloured_and_marked(stage: Stage) -> None:
    sweep = stage.submit(SMALL_SPEC)
    tables = stage.service.tables
    assert ">0/2<" in tables.html(sweep, "main")
    assert 'class="pending state-waiting"' in tables.html(sweep, "main", "state")
    running = stage.start()
    assert 'class="pending state-running"' in tables.html(sweep, "main", "state")
    assert "0 of 2 trials done, 1 running" in tables.html(sweep, "main")
    stage.finish(running)
    stage.finish(times=3)
    stage.settle()
    assert {"heat-0", "heat-6"} <= set(re.findall(r"heat-\d", tables.html(sweep, "main", "metric")))
    assert 'class="value state-finished"' in tables.html(sweep, "main", "state")
    page = tables.html(sweep, "main", compared=True)
    assert "≈" in page.replace("&#8776;", "≈"), "bold that may rest on noise"
    assert "3 are needed" in page
    assert "&#8776;" not in tables.html(sweep, "main"), "numbers alone"


def test_the_address_keeps_what_the_tables_are_coloured_by(stage: Stage, http: TestClient) -> None:
    sweep = stage.submit(SMALL_SPEC)
    page = read(http.get(f"/sweeps/{sweep}?heat=state").text)
    assert page.having("a", href=f"/sweeps/{sweep}?heat=state")[0].get("aria-current") == "true"
    assert http.get(f"/sweeps/{sweep}?heat=rainbow").status_code == 422


JUDGED = SMALL_SPEC.replace("[0, 1]", "[0, 1, 2]").replace(
    "{rows: [loss]", "{verdicts: {against: {loss: triplet}, looks: any}, rows: [loss]"
)


def test_cells_say_whether_they_are_better_than_their_baselines(stage: Stage, http: TestClient) -> None:
    sweep = stage.submit(JUDGED)
    stage.finish(times=5)
    assert 'class="verdict' not in stage.service.tables.html(sweep, "main", compared=True), (
        "a cell without a number has no verdict"
    )
    stage.finish()
    text = stage.service.tables.html(sweep, "main", compared=True)
    assert 'class="verdict no-clear-difference" title="no clear difference (3 seeds; difference ' in text
    assert "valid after looks at any time" in text
    switch = read(http.get(f"/sweeps/{sweep}").text).having("a", id="compare")[0]
    assert "no clear difference (" in http.get(switch.get("href")).text


def test_the_page_of_statistics_shows_a_plan_before_anything_is_trained(stage: Stage, http: TestClient) -> None:
    sweep = stage.submit(JUDGED)
    stage.finish(times=6)
    page = http.get(f"/sweeps/{sweep}/statistics").text
    assert "no clear difference (3 seeds; difference " in page
    assert "Train these seeds" not in page
    planned = http.get(f"/sweeps/{sweep}/statistics", params={"plan": True, "hours": "", "within": 60}).text
    assert "Train these seeds" in planned
    assert "seeds 3" in planned
    assert stage.service.sweeps.get(sweep).requests == []
    answer = http.post(
        f"/sweeps/{sweep}/resolve", data={"table": "main", "hours": "", "within": 60}, follow_redirects=False
    )
    assert answer.headers["location"] == f"/sweeps/{sweep}/statistics?table=main"
    assert [one.kind for one in stage.service.sweeps.get(sweep).requests] == ["resolve"]


def test_the_form_of_an_extension_shows_what_it_trains_before_it_is_requested(stage: Stage, http: TestClient) -> None:
    sweep = stage.submit(SMALL_SPEC.replace("repeat:", "# both\nrepeat:"))
    stage.finish(times=4)
    form = read(http.get(f"/sweeps/{sweep}").text).having("details", id="extend")
    assert form, "the sweep's page has the form"
    added = {"compare.loss[0]": "contrastive", "repeat.seed[0]": "2"}
    planned = unescape(http.get(f"/sweeps/{sweep}/extend", params=added).text)
    for words in ("5 of its trials are new", "5 to be trained, 0 trained already", "# both", "Train these"):
        assert words in planned
    assert stage.service.sweeps.get(sweep).requests == []
    wrong = unescape(http.get(f"/sweeps/{sweep}/extend", params={"compare.loss[0]": "contrastiv"}).text)
    assert "did you mean" in wrong
    assert "Train these" not in wrong
    answer = http.post(f"/sweeps/{sweep}/extend", data=added, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/sweeps/{sweep}")
    assert [one.kind for one in stage.service.sweeps.get(sweep).requests] == ["extend"]
    assert http.post(f"/sweeps/{sweep}/extend", data={"repeat.seed[0]": " "}).status_code == 409


def test_a_list_says_the_best_cell_and_what_differs_from_the_last_sweep_of_the_name(
    stage: Stage, http: TestClient
) -> None:
    first = stage.submit(SMALL_SPEC)
    second = stage.submit(SMALL_SPEC.replace("[0, 1]", "[0, 1, 2]"))
    stage.finish(times=5)
    stage.settle()
    later, earlier = http.get("/v1/sweeps").json()["items"]
    assert (later["id"], earlier["id"]) == (second, first)
    assert later["differences"] == [f"repeat.seed: [0, 1, 2], [0, 1] in #{first}"]
    assert earlier["differences"] == []
    table = http.get(f"/v1/sweeps/{first}/tables/main?format=json").json()
    means = [one["metrics"][earlier["best"]["key"]]["mean"] for one in table["cells"]]
    assert earlier["best"]["mean"] == max(means)
    assert earlier["best"]["text"] in http.get("/").text
    assert f"Best by {earlier['best']['metric']}: " in http.get(f"/sweeps/{first}").text


def test_the_best_cell_is_of_the_first_data_set_since_numbers_of_several_cannot_be_compared(
    stage: Stage, http: TestClient
) -> None:
    sweep = stage.submit(SMALL_SPEC.replace("compare:", "compare:\n  dataset: [digits, digits_halves]"))
    stage.finish(times=8)
    stage.settle()
    means: dict[str, list[float]] = {"digits": [], "digits_halves": []}
    table = http.get(f"/v1/sweeps/{sweep}/tables/main?format=json").json()
    for summary, cell in zip(table["cells"], stage.store.trial_results.cells(sweep), strict=True):
        means[cell.labels["dataset"]].append(summary["metrics"]["best/test/recall@1"]["mean"])
    assert max(means["digits_halves"]) > max(means["digits"]), "otherwise the test shows nothing"
    best = http.get("/v1/sweeps").json()["items"][0]["best"]
    assert (best["mean"], best["labels"]["dataset"]) == (max(means["digits"]), "digits")
    named = " · ".join(best["labels"].values())
    assert f"Best by {best['metric']}: {named}, {best['text']}" in http.get(f"/sweeps/{sweep}").text


def test_the_best_cell_follows_a_retry(stage: Stage, http: TestClient) -> None:
    sweep = stage.submit(SMALL_SPEC)
    stage.finish(times=2)
    stage.fail()
    stage.finish()
    stage.settle()
    first = http.get(f"/v1/sweeps/{sweep}").json()["best"]
    assert http.get(f"/v1/sweeps/{sweep}").json()["best"] == first
    stage.writer.trials.retry(sweep)
    stage.finish()
    stage.settle()
    assert http.get(f"/v1/sweeps/{sweep}").json()["best"]["n"] == 2


def test_a_bar_is_full_without_gaps_and_has_a_place_for_every_kind() -> None:
    assert set(rendering.KINDS) == {*TrialState, "diverged"}
    pieces = rendering.segments(specimens.summary())
    assert [(one.kind, one.count) for one in pieces] == [
        ("finished", 400), ("diverged", 100), ("failed", 100), ("cancelled", 100), ("running", 40), ("waiting", 460),
    ]  # fmt: skip
    for one, following in pairwise(pieces):
        assert abs(one.start + one.width - following.start) < 0.01
    assert abs(pieces[-1].start + pieces[-1].width - 100) < 0.01
    assert rendering.segments(specimens.summary(total=0, counts=Counts(), steps=StepCount())) == []


def rows(text: str) -> dict[str, list[str]]:
    """The rows of the comparison by their headings."""
    lines = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    joined = [[_plain(one) for one in re.split(r"</t[hd]>", line)[:-1]] for line in lines]
    return {row[0]: row[1:] for row in joined}


def _plain(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup.replace("<wbr>", ""))).split())


def test_what_differs_between_cells_stands_with_means_and_counts(stage: Stage, http: TestClient) -> None:
    sweep = stage.submit(SPEC)
    stage.finish(times=12)
    stage.finish(diverged=True)
    stage.start(0.5)
    other = stage.submit(SMALL_SPEC.replace("name: four-trials", "name: other <b>"))
    http.headers["Accept"] = "text/html"
    found = rows(http.get(f"/compare?cell={sweep}/0&cell={sweep}/1&cell={other}/0").text)
    assert found["cell"] == [f"{sweep}/0 sec-on-digits", f"{sweep}/1 sec-on-digits", f"{other}/0 other <b>"]
    assert [one.split()[0] for one in found["state"]] == ["complete", "complete", "missing"]
    assert found["regularizer"] == ["none", "l2", "–"]
    assert "loss" not in found
    assert "loss triplet" in http.get(f"/compare?cell={sweep}/0&cell={sweep}/1").text
    assert [one.endswith("n = 3") for one in found["best/test/map@r"]] == [True, True, False]
    cell = stage.service.sweeps.compared(sweep, 1)
    said = cell.metrics["best/test/map@r"]
    assert found["best/test/map@r"][1] == f"{said.mean:.4f} ± {said.std:.4f} n = 3"
    assert found["selected"][0] == "untuned of 1 candidate"
    assert found["selected"][1].startswith("eta 0.")
    assert found["backbone.name"] == ["small_cnn", "small_cnn", "mlp"]
    assert "seed" not in found

    pending = rows(http.get(f"/compare?cell={sweep}/2&cell={sweep}/0").text)
    assert pending["selected"][0] == "none of 3 candidates yet"
    assert pending["state"][0].startswith("partial")
    assert not any(heading.startswith("backbone") for heading in pending)

    for path in (f"/compare?cell={sweep}/0&cell={sweep}/1", f"/sweeps/{sweep}/storage", f"/sweeps/{sweep}"):
        read(http.get(path).text)
    alone = http.get(f"/compare?cell={sweep}/0")
    assert "takes two cells" in alone.text
    assert http.get(f"/compare?cell={sweep}/99").status_code == 404
    assert http.get("/compare?cell=99/0").status_code == 404
    assert http.get("/compare?cell=7").status_code == 422
    many = "&".join(f"cell={sweep}/{index}" for index in range(10))
    assert "2 more were chosen" in http.get(f"/compare?{many}").text


def test_sweeps_stand_side_by_side_where_they_have_a_table_in_common(stage: Stage, http: TestClient) -> None:
    first = stage.submit(SMALL_SPEC)
    stage.finish(times=4)
    second = stage.submit(SMALL_SPEC.replace("name: four-trials", "name: again <b>") + "fresh: true\n")
    strange = stage.submit(SPEC)
    http.headers["Accept"] = "text/html"
    text = http.get(f"/compare?sweep={first}&sweep={second}&sweep={first}").text
    page = read(text)
    assert page.faults == []
    assert [one["href"] for one in page.having("a") if one["href"].startswith("/sweeps/")][:2] == [
        f"/sweeps/{first}", f"/sweeps/{second}",
    ]  # fmt: skip
    assert "again &lt;b&gt;" in text
    assert '<h2 id="table-1">Of all their cells</h2>' in text
    assert '<h2 id="table-2">Difference</h2>' in text
    assert text.count('class="metricsweep-table"') == 2
    assert f"metricsweep compare {first} {second}" in text
    apart = http.get(f"/compare?sweep={first}&sweep={strange}")
    assert (apart.status_code, "No common table" in apart.text) == (200, "metricsweep-table" not in apart.text)
    assert "takes two sweeps" in http.get(f"/compare?sweep={first}").text
    assert http.get("/compare?sweep=99").status_code == 404
    boxes = [one for one in read(http.get("/").text).having("input") if one.get("name") == "sweep"]
    assert {one["value"] for one in boxes} == {str(first), str(second), str(strange)}
    cell = read(http.get(f"/sweeps/{first}/cells/0").text)
    boxes = [one for one in cell.having("input") if one.get("name") == "trial"]
    assert [(one["value"], one["form"]) for one in boxes] == [("1", "choose"), ("2", "choose")]
    assert cell.faults == []


TUNED = SMALL_SPEC.replace("repeat:", "tune:\n  optimizer.lr: [0.001, 0.01]\nrepeat:")


@pytest.fixture
def person(http: TestClient, app: FastAPI) -> TestClient:
    """A browser that has logged in."""
    del http.headers["Authorization"]
    http.post("/login", data={"code": app.state.access.codes.new()})
    http.headers["Origin"] = "http://127.0.0.1:8787"
    return http


def test_differences_are_listed_by_path_without_defaults() -> None:
    own = {"version": 1, "loss": {"name": "triplet", "margin": 0.2}, "seed": 0, "pins": {"versions": {"loss": 1}}}
    other = {"version": 1, "loss": {"name": "triplet"}, "seed": 1, "pins": {"versions": {"loss": 2}}, "epochs": 3}
    assert [(one.path, one.own, one.other) for one in differences(own, other)] == [
        ("loss.margin", 0.2, None), ("seed", 0, 1), ("epochs", None, 3),
    ]  # fmt: skip


def test_a_trial_is_compared_with_the_selected_candidate_and_its_other_seed(stage: Stage, person: TestClient) -> None:
    sweep = stage.submit(TUNED)
    stage.finish(times=8)
    stage.settle()
    best = next(one for one in stage.service.sweeps.grid(sweep)[0].candidates if one.selected)
    lost = next(one for one in stage.service.sweeps.grid(sweep)[0].candidates if not one.selected)
    beside = stage.service.store.trials.neighbours(lost.trials[1].trial)
    assert [(one.trial, [line.path for line in one.differences]) for one in beside] == [
        (best.trials[1].trial, ["optimizer.lr"]), (lost.trials[0].trial, ["seed"]),
    ]  # fmt: skip
    assert len(stage.service.store.trials.neighbours(best.trials[0].trial)) == 1
    page = read(person.get(f"/trials/{lost.trials[1].trial}").text)
    assert "Compared with the cell's selected candidate" in page.text
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
    asked = [(one.kind, one.cell, one.trial) for one in stage.service.store.requests.page(sweep, None, 9).items]
    assert asked == [("cancel", None, 2), ("cancel", 1, None), ("retry", 0, None)]


def test_the_command_that_is_shown_trains_the_same_again(stage: Stage, http: TestClient, tmp_path: Path) -> None:
    recipe = {"loss": {"name": "x\nRECIPE\nrm -rf $HOME; echo `id`"}}
    assert sweeps.command(specimens.trial(recipe=recipe)).count("\nRECIPE\n") == 1, "it does not leave its quotes"
    stage.submit(SMALL_SPEC.replace("iterations: 100", "iterations: 3"))
    page = http.get("/trials/1").text
    shown = unescape(page[page.index("cat &gt; trial-1.json") :].partition("</pre>")[0])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # The folder of the tests' Python comes first; it may hold no `python`.
    shown = shown.replace("\npython ", f"\n{sys.executable} ")
    source = str(Path(sweeps.__file__).parents[1])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        ["bash", "-e"], input=shown, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    result = json.loads((tmp_path / "trial-1" / "result.json").read_text())
    assert (result["outcome"], result["steps"]) == ("ok", 3)
