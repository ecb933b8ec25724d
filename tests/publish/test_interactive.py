"""Curves for a page: what no line leads to is a dot that one sees."""

import json
import math
import random

import pytest
import vl_convert

from orchestrator.publish.figures import pages
from orchestrator.publish.figures.sketch import averaged, smoothed, thinned, thinned_band
from orchestrator.views.trials import Curve, CurveLine, CurveLines
from tests.publish import sweeps


def test_what_no_line_leads_to_is_a_dot() -> None:
    for values, alone in (
        ([0.5], [True]), ([0.5, 0.6, 0.7], [False, False, False]), ([0.5, -1.0, 0.6], [True, False, True]),
        ([0.5, None, 0.6, None, 0.7, 0.8], [True, False, True, False, False, False]),
    ):  # fmt: skip
        points = [(float(at), value) for at, value in enumerate(values)]
        line = CurveLine(label="seed 0", sweep=1, cell=0, candidate=0, trials=[1], runs=1, points=points)
        found = CurveLines(key="validation/map@r", x="step", smoothing=0.0, keys=["validation/map@r"], traces=[line])
        figure = pages.lines_chart(found, "MAP@R", log=True)
        drawn = [row["alone"] for row in figure["datasets"]["points"] if row["y"] is not None]
        assert drawn == [one for one, value in zip(alone, values, strict=True) if value is not None and value > 0]
        seen = figure["layer"][-1]["encoding"]["opacity"]
        assert [one.get("test") or one.get("param") for one in seen["condition"]] == ["near", "datum.alone"]
        assert seen["value"] == 0


def test_a_chart_has_only_the_data_that_its_layers_show() -> None:
    """A page replaces data by name, and Vega knows only the names in the layers."""
    line = CurveLine(label="seed 0", sweep=1, cell=0, candidate=0, trials=[1], runs=1, points=[(0.0, 0.5)])
    for band in ([], [(0.0, 0.4, 0.6)]):
        traces = [line.model_copy(update={"band": band})]
        found = CurveLines(key="validation/map@r", x="step", smoothing=0.0, keys=["validation/map@r"], traces=traces)
        figure = pages.lines_chart(found, "MAP@R")
        assert set(figure["datasets"]) == {layer["data"]["name"] for layer in figure["layer"]}, band


def test_smoothing_is_debiased_and_passes_over_gaps() -> None:
    level = [(float(x), 5.0) for x in range(4)]
    assert [y for _, y in smoothed(level, 0.9)] == pytest.approx([5.0] * 4)  # biased it would begin at 0.5
    found = smoothed([(0.0, 1.0), (1.0, None), (2.0, math.nan), (3.0, 3.0)], 0.5)
    assert [y for _, y in found[:3]] == [1.0, None, None]
    assert found[3][1] == pytest.approx((0.5 * 0.5 * 1.0 + 0.5 * 3.0) / 0.75)
    assert smoothed(level, 0.0) == level


def test_runs_are_averaged_where_they_have_come_though_they_report_at_other_moments() -> None:
    line, band = averaged([[(0.0, 0.0), (10.0, 10.0)], [(0.0, 2.0), (5.0, 7.0)]])
    assert line == [(0.0, 1.0), (5.0, 6.0), (10.0, 10.0)]
    assert [x for x, _, _ in band] == [0.0, 5.0]
    assert band[0] == pytest.approx((0.0, 1.0 - math.sqrt(2), 1.0 + math.sqrt(2)))
    assert averaged([[(0.0, None)], []]) == ([], [])
    assert averaged([[(0.0, None), (1.0, 2.0)]]) == ([(0.0, None), (1.0, 2.0)], [])


def test_what_is_thinned_keeps_its_ends_and_extremes() -> None:
    drawn = random.Random(1)
    points = [(float(x), drawn.random()) for x in range(10_000)]
    points[4_321] = (4_321.0, 9.0)
    points[8_000] = (8_000.0, -9.0)
    kept = thinned(points, 200)
    assert len(kept) <= 200
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert (4_321.0, 9.0) in kept
    assert (8_000.0, -9.0) in kept
    assert kept == sorted(kept)
    assert thinned(points[:10], 200) == points[:10]


def test_a_gap_stays_a_gap() -> None:
    points = [(float(x), None if 400 <= x < 500 else 1.0) for x in range(1_000)]
    kept = thinned(points, 100)
    assert len(kept) <= 100
    assert any(y is None for _, y in kept)


def test_a_band_is_thinned_evenly() -> None:
    band = [(float(x), 0.0, 1.0) for x in range(1_000)]
    kept = thinned_band(band, 11)
    assert [x for x, _, _ in kept][:2] == [0.0, 100.0]
    assert kept[-1] == band[-1]


@pytest.fixture
def found():
    return [
        Curve(key="validation/map@r", points=[(100, 0.4), (200, 0.5)]),
        Curve(key="train/lr", points=[(0, 1e-3), (200, 1e-3)]),
        Curve(key="train/loss", points=[(0, 2.0), (50, math.nan), (100, None), (200, 1.0)]),
        Curve(key="validation/norm_var", points=[]),
    ]


def test_one_picture_a_curve_and_training_comes_first(found):
    specification = pages.curves(found, "Trial 3", sweeps.catalog())
    assert [one["title"] for one in specification["concat"]] == ["Loss", "Learning rate", "MAP@R (validation)"]
    assert {tuple(one["encoding"]["x"]["scale"]["domain"]) for one in specification["concat"]} == {(0, 200)}
    assert specification["title"] == "Trial 3"
    assert all(one["encoding"]["tooltip"] for one in specification["concat"])


def test_what_is_no_number_breaks_the_line(found):
    specification = pages.curves(found, "Trial 3")
    assert [one["value"] for one in specification["concat"][0]["data"]["values"]] == [2.0, None, None, 1.0]
    json.dumps(specification, allow_nan=False)


def test_vega_draws_it(found):
    drawing = vl_convert.vegalite_to_svg(json.dumps(pages.curves(found, "Trial 3", sweeps.catalog())))
    assert "MAP@R (validation)" in drawing
