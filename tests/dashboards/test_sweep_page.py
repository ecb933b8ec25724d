"""A sweep's page: its bar, its table filling in, coloured and marked; causes of failures; what waits and for what."""

import re
from itertools import pairwise

from fastapi.testclient import TestClient

from dashboards import rendering
from orchestrator.views.states import TrialState
from orchestrator.views.sweeps import Counts, StepCount
from tests.dashboards import specimens
from tests.dashboards.markup import read
from tests.dashboards.stage import SMALL_SPEC, Stage


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


def test_the_time_left_is_told_with_its_uncertainty() -> None:
    assert specimens.summary().left == "about 4 min 20 s left (3 min 20 s to 5 min 40 s)"
    assert specimens.summary(eta_low_seconds=260.0, eta_high_seconds=260.2).left == "about 4 min 20 s left"
    assert specimens.summary(eta_seconds=None).left == ""
