"""Curves fit to be drawn together: smoothed without a lean to zero, averaged over runs, thinned with extremes kept."""

import math
import random

import pytest

from orchestrator.publish.figures.sketch import averaged, smoothed, thinned, thinned_band


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
