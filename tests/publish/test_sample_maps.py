"""Where a generator's samples lie over its training: panels in columns of trainings and rows of looks."""

import numpy as np
import pytest

from orchestrator.publish.figures import rendering
from orchestrator.publish.figures.sample_maps import BINS, LEVELS, levels, strips
from orchestrator.publish.figures.sketch import Sources
from tests.publish.drawn import SOURCES, data, draw, said

FIGURE = {"kind": "heatmap", "data": "samples", "facet": ["regularizer", "optimizer.lr"], "when": {}}


def test_a_row_a_look_and_the_mixture_last_in_a_column_each_training() -> None:
    drawn = draw(FIGURE)
    specification = drawn.specification["facet"]
    columns = [f"{name} / lr = {rate}" for name in ("None", "SEC") for rate in ("0.0001", "0.001", "0.01")]
    assert specification["column"]["sort"] == columns
    assert specification["row"]["sort"] == ["step 0", "step 300", "mixture"]
    places = {(row["column"], row["row"]) for row in drawn.specification["datasets"]["samples"]}
    assert places == {(column, row) for column in columns for row in ("step 0", "step 300", "mixture")}
    found = {row["row"] for row in data(drawn) if row["column"] == columns[1]}
    assert found == {"step 0", "step 300", "mixture"}
    text = rendering.render(drawn, "svg").content.decode()
    assert all(word in text for word in ("step 300", "mixture"))
    assert "shaded up to its own densest place. Seed 0." in said(drawn)
    assert "Samples beyond the panels: None / lr = 0.0001 (5%);" in said(drawn)


def test_the_densest_square_has_the_darkest_shade_and_strips_cover_all_others() -> None:
    points = np.concatenate([np.full((30, 2), 1.06), np.full((10, 2), -1.06), np.full((5, 2), 50.0)])
    shades = levels(points, 3.0)
    assert shades.max() == LEVELS
    at = int(BINS * 4 / 6)
    assert shades[at, at] == LEVELS
    assert shades[BINS - 1 - at, BINS - 1 - at] in {LEVELS // 3, LEVELS // 3 + 1}
    again, edges = np.zeros_like(shades), np.linspace(-3, 3, BINS + 1).round(4)
    for strip in strips(shades, 3.0):
        first, last = np.searchsorted(edges, [strip["x"], strip["x2"]])
        again[first:last, np.searchsorted(edges, strip["y"])] = strip["level"]
    assert (again == shades).all()
    assert not levels(np.full((4, 2), 50.0), 3.0).any(), "nothing of it is in the panel"


@pytest.mark.parametrize(
    "wrong", [{"xy": np.zeros((2, 4))}, {"xy": np.full((2, 3, 2), np.nan)}, {"target": np.zeros(2)}]
)
def test_a_file_that_is_none_is_told(wrong: dict[str, np.ndarray]) -> None:
    def broken(trials: object, file: str) -> object:
        found, missing = SOURCES.arrays(trials, file)
        return {trial: {**one, **wrong} for trial, one in found.items()}, missing

    drawn = draw(FIGURE, sources=Sources(SOURCES.curves, broken))
    assert "18 data files are not drawn" in said(drawn)
    assert not drawn.rows
