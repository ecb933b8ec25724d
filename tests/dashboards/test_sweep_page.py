"""A sweep's page and its table filling in; cells and sweeps side by side."""

import html
import re
from itertools import pairwise

from fastapi.testclient import TestClient

from dashboards import rendering
from orchestrator.views.states import TrialState
from orchestrator.views.sweeps import Counts, StepCount
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
    page = tables.html(sweep, "main")
    assert "≈" in page.replace("&#8776;", "≈"), "bold that may rest on noise"
    assert "3 are needed" in page
    assert "&#8776;" not in tables.render(sweep, "main", "html").content.decode(), "marked on pages alone"


def test_the_address_keeps_what_the_tables_are_coloured_by(stage: Stage, http: TestClient) -> None:
    sweep = stage.submit(SMALL_SPEC)
    page = read(http.get(f"/sweeps/{sweep}?heat=state").text)
    assert page.having("a", href=f"/sweeps/{sweep}?heat=state")[0].get("aria-current") == "true"
    assert http.get(f"/sweeps/{sweep}?heat=rainbow").status_code == 422


def test_cells_say_whether_they_are_better_than_their_baselines(stage: Stage) -> None:
    judged = SMALL_SPEC.replace("[0, 1]", "[0, 1, 2]").replace(
        "{rows: [loss]", "{verdicts: {against: {loss: triplet}, looks: any}, rows: [loss]"
    )
    sweep = stage.submit(judged)
    stage.finish(times=5)
    assert 'class="verdict' not in stage.service.tables.html(sweep, "main"), "a cell without a number has no verdict"
    stage.finish()
    text = stage.service.tables.html(sweep, "main")
    assert 'class="verdict unresolved" title="unresolved: ' in text
    assert "valid after looks at any time" in text


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
