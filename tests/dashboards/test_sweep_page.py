"""A sweep's page: its bar, its table filling in, coloured and marked; causes of failures; what waits and for what."""

import re
from itertools import pairwise

import pytest
from fastapi.testclient import TestClient

from dashboards import pages, problems, progress
from orchestrator.views.lifecycle import SweepState, TrialState
from orchestrator.views.resolutions import ResolutionView
from orchestrator.views.sweeps import Counts, StepCount
from tests.dashboards import specimens
from tests.dashboards.markup import Markup, read
from tests.dashboards.stage import SMALL_SPEC, Stage


def test_failures_have_one_cause_though_their_numbers_differ() -> None:
    told = [
        specimens.problem(1, "OutOfMemoryError: tried to allocate 2.50 GiB at 0x7f12\nmore"),
        specimens.problem(2, "OutOfMemoryError: tried to allocate 1.25 GiB at 0x8a00"),
        specimens.problem(3, "ValueError: no such class"),
    ]
    found = problems.gathered(told)
    assert [(one.message.partition(":")[0], len(one.trials)) for one in found] == [
        ("OutOfMemoryError", 2), ("ValueError", 1),
    ]  # fmt: skip
    assert "more" not in found[0].message


def test_what_waits_is_said_with_its_reason() -> None:
    for more, said in (
        ({"state": SweepState.QUEUED, "counts": Counts()}, "12 trials wait until the conductor comes to the sweep"),
        ({"state": SweepState.PAUSED}, "4 trials wait until the sweep is resumed"),
        ({}, "4 trials wait for a slot: 1 train now."),
        ({"notice": "no node"}, "some for more than that"),
        ({"counts": Counts(waiting=1, finished=11)}, "1 trial waits for a slot: none of this sweep trains now."),
        ({"state": SweepState.FINISHED}, ""),
    ):
        sweep = specimens.sweep(**more)
        assert said in progress.waits(sweep)
        page = read(pages.sweep_page(sweep, specimens.grid(), pages.BesideSweep(), now=specimens.NOW))
        assert said in page.text
    assert progress.waits(specimens.sweep(SweepState.FINISHED)) == ""


def test_a_resolution_is_asked_for_shown_and_ended() -> None:
    sweep = specimens.sweep(SweepState.FINISHED, spec={"repeat": {"seed": []}})

    def shown(resolution: ResolutionView | None, **more: object) -> Markup:
        found = sweep.model_copy(update=more)
        return read(pages.sweep_page(found, [], pages.BesideSweep(resolution=resolution), now=specimens.NOW))

    assert shown(None).having("form", action="/sweeps/7/resolve")
    assert not shown(None, spec={}).having("form", action="/sweeps/7/resolve"), "no seed can be added"
    going = shown(specimens.resolution())
    assert not going.having("form", action="/sweeps/7/resolve")
    assert going.having("form", action="/sweeps/7/halt")
    assert "Trains round 1: 4 trials, 2 comparisons open." in going.text
    assert "sec: 5, 6" in going.text
    assert "svmax, MAP@R: needs more" in going.text
    ended = shown(specimens.resolution("ended"))
    assert "better (7 seeds, p = 0.001)" in ended.text
    assert "2 trials less than with as many seeds for every compared cell" in ended.text
    assert not ended.having("form", action="/sweeps/7/halt")
    one = specimens.resolution("ended")
    after = [one.after[0], one.after[0].model_copy(update={"said": "equal"})]
    twice = shown(one.model_copy(update={"before": [one.before[0]] * 2, "after": after}))
    assert twice.text.count("better (7 seeds, p = 0.001)") == 1, "a table by two selections judges a metric twice"
    assert "equal" in twice.text


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


def test_a_table_is_computed_anew_only_when_something_changed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = stage.submit(SMALL_SPEC)
    first = stage.service.tables.html(sweep, "main")
    monkeypatch.setattr("orchestrator.publish.tables.build.build", None)
    assert stage.service.tables.html(sweep, "main") == first
    stage.finish()
    with pytest.raises(TypeError):
        stage.service.tables.html(sweep, "main")


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
    assert set(progress.KINDS) == {*TrialState, "diverged"}
    pieces = progress.segments(specimens.summary())
    assert [(one.kind, one.count) for one in pieces] == [
        ("finished", 400), ("diverged", 100), ("failed", 100), ("cancelled", 100), ("running", 40), ("waiting", 460),
    ]  # fmt: skip
    for one, following in pairwise(pieces):
        assert abs(one.start + one.width - following.start) < 0.01
    assert abs(pieces[-1].start + pieces[-1].width - 100) < 0.01
    assert progress.segments(specimens.summary(total=0, counts=Counts(), steps=StepCount())) == []


def test_the_time_left_is_told_with_its_uncertainty() -> None:
    assert specimens.summary().left == "about 4 min 20 s left (3 min 20 s to 5 min 40 s)"
    assert specimens.summary(eta_low_seconds=260.0, eta_high_seconds=260.2).left == "about 4 min 20 s left"
    assert specimens.summary(eta_seconds=None).left == ""
