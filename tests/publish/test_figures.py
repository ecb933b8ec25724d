"""Figures of sweeps: what is drawn of what, which words stand over it, and files in every format."""

import base64
import csv
import io
import json
import math
import random
from typing import Any

import numpy as np
import pytest
from PIL import Image

from orchestrator.publish.figures import drawing, pages, rendering, sketch, style
from orchestrator.publish.figures.kinds import curves, distribution, images
from orchestrator.publish.figures.kinds.heatmap import BINS, LEVELS, levels, strips
from orchestrator.publish.figures.sketch import Sources, averaged, smoothed, thinned
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.trials import Curve, CurveLine, CurveLines
from tests.publish import sweeps
from tests.publish.drawn import LRS, SOURCES, arrays, data, draw, results, said

LINE = {"kind": "line", "metric": "recall@1", "x": "optimizer.lr", "x_scale": "log", "colour": "regularizer"}
ONE_LR = {"optimizer.lr": ["0.001"]}
FIGURES: dict[str, dict[str, Any]] = {
    "line": LINE | {"title": "R@1 over the learning rate", "caption": "As in SVMax"},
    "curves": {"kind": "curves", "metric": ["recall@1", "train/norm_var"], "colour": "regularizer", "when": ONE_LR},
    "distribution": {
        "kind": "distribution", "data": "norms", "colour": "regularizer", "facet": "optimizer.lr", "moments": True,
    },
    "scatter": {"kind": "scatter", "data": "unit_circle", "facet": ["regularizer", "optimizer.lr"]},
    "bars": {
        "kind": "bars", "metric": "norm_var", "x": "optimizer.lr", "colour": "regularizer", "reference": "map@r",
    },
    "best_of": {"kind": "best_of", "facet": "regularizer", "when": ONE_LR},
    "heatmap": {"kind": "heatmap", "metric": "map@r", "x": "optimizer.lr", "y": "regularizer"},
}  # fmt: skip


STAGES = {"kind": "scatter", "data": "tsne_stages", "facet": "regularizer", "when": ONE_LR}
NAMED = {"labels": {"regularizer": {"none": "vanilla"}}, "titles": {"optimizer.lr": "rate", "recall@1": "Recall"}}


def partly(labels: Any, candidate: int, repeat: int) -> str:
    """One point has diverged, and one learning rate is still to come."""
    if labels["regularizer"] == "none" and labels["optimizer.lr"] == "0.01":
        return "diverged"
    return "running" if labels["optimizer.lr"] == "0.001" else "ok"


def without_stars(trials: Any, file: str) -> Any:
    found, missing = arrays(trials, file)
    return {at: {key: one[key] for key in one if not key.startswith("proxy")} for at, one in found.items()}, missing


VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "stages": (STAGES, {}), "stage-3": (STAGES | {"stages": [3, 7]}, {}),
    "without-stars": (STAGES, {"sources": Sources(SOURCES.curves, without_stars)}),
    "cosines-by-stage": ({"kind": "heatmap", "data": "heat_map_stages", "stages": [3, 7], "when": ONE_LR}, {}),
    "by-test": (LINE, {"split": "test"}), "interval": (LINE | {"error": "interval"}, {}),
    "no-error": (LINE | {"error": "none"}, {}), "one-seed": (LINE | {"unit": "fraction"}, {"seeds": 1}),
    "partial": (LINE, {"state": "running", "fate": partly}),
    "partial-bare": (LINE, {"state": "running", "fate": partly, "heading": False}),
    "tuned": (LINE | {"x": "regularizer.eta", "x_scale": "linear", "when": ONE_LR}, {}), "named": (LINE | NAMED, {}),
    "alike": (LINE | {"labels": {"regularizer": {"none": "same", "sec": "same"}}}, {}),
    "empty-panel": (
        {"kind": "heatmap", "metric": "map@r", "x": "regularizer", "y": "loss", "facet": "optimizer.lr"},
        {"compare": {"regularizer": ("none", "sec"), "loss": ("triplet",), "optimizer.lr": LRS}, "fate": partly},
    ),
}  # fmt: skip


def test_golden_specifications(golden: Any) -> None:
    for name, (figure, more) in {**{kind: (figure, {}) for kind, figure in FIGURES.items()}, **VARIANTS}.items():
        plain = {key: value for key, value in draw(figure, **more).specification.items() if key != "$schema"}
        golden(f"figure-{name}.json", (json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode())


@pytest.mark.parametrize(
    "figure",
    [
        {"kind": "line", "data": "spectrum", "colour": "regularizer", "when": ONE_LR},
        {"kind": "distribution", "data": "cosines", "colour": "regularizer", "when": ONE_LR},
        {"kind": "heatmap", "data": "heat_map", "facet": "regularizer", "when": ONE_LR},
        {"kind": "scatter", "data": "tsne_stages", "facet": "regularizer", "when": ONE_LR},
        {"kind": "heatmap", "data": "heat_map_stages", "when": ONE_LR | {"regularizer": ["none"]}},
        {"kind": "images", "data": "panels", "facet": "regularizer", "when": ONE_LR},
        FIGURES["line"],
        FIGURES["best_of"],
        FIGURES["distribution"],
    ],
)
def test_vega_draws_it_without_a_word_of_complaint(figure: dict[str, Any], capfd: Any) -> None:
    drawn = draw(figure)
    assert data(drawn)
    text = rendering.render(drawn, "svg").content.decode()
    assert "<svg" in text
    assert "NaN" not in text
    assert "undefined" not in text
    assert "WARN" not in capfd.readouterr().err


def test_the_data_behind_a_figure() -> None:
    rows = list(csv.DictReader(io.StringIO(rendering.render(draw(LINE), "csv").content.decode())))
    assert [(row["regularizer"], row["optimizer.lr"]) for row in rows] == [(r, x) for r in ("none", "sec") for x in LRS]
    assert {row["n"] for row in rows} == {"3"}
    assert all(float(row["low"]) < float(row["mean"]) < float(row["high"]) <= 110 for row in rows)  # percent
    assert rows[0]["trials"] == "1 2 3"
    cosines = data(draw({"kind": "heatmap", "data": "heat_map", "when": ONE_LR | {"regularizer": ["none"]}}))
    assert [row["mean"] for row in cosines] == [1.0, None, 0.5, 1.0]
    assert rows[3]["candidate"].startswith("regularizer.eta=")
    odd = {"regularizer": ("=1+1", "sec"), "optimizer.lr": LRS}
    assert "'=1+1" in rendering.render(draw(LINE, compare=odd), "csv").content.decode(), "no formula"


def test_an_epoch_and_an_iteration_of_one_number_are_two_stages() -> None:
    def counted(trials: Any, file: str) -> Any:
        """The trainings with SEC count in iterations."""
        found, missing = arrays(trials, file)
        return {trial: one | ({"step": one["at"]} if trial > 9 else {}) for trial, one in found.items()}, missing

    figure = {"kind": "scatter", "data": "tsne_stages", "facet": "regularizer", "when": ONE_LR}
    drawn = draw(figure, sources=Sources(SOURCES.curves, counted))
    titles = [part["title"]["text"] for part in drawn.specification["concat"]]
    assert titles == ["Before training", "After 3 iterations", "After 3 epochs"]
    sets = drawn.specification["datasets"]
    assert list(sets) == ["iteration_0", "iteration_3", "epoch_3"]
    for stage, column in (("iteration_3", "SEC"), ("epoch_3", "None")):
        assert {row["column"] for row in sets[stage] if "x" in row} == {column}


def test_a_training_that_ended_before_its_first_stage_has_none() -> None:
    def ended(trials: Any, file: str) -> Any:
        """The trainings with SEC reached no stage."""
        found, missing = arrays(trials, file)
        empty = {"at", "step", "xy"}
        return {
            trial: one | ({name: one[name][:0] for name in empty} if trial > 9 else {}) for trial, one in found.items()
        }, missing

    drawn = draw(STAGES | {"stages": [0, 3]}, sources=Sources(SOURCES.curves, ended))
    assert "A data file is not drawn: tsne_stages.npz of trial 5" in said(drawn), "only the one that is missing"
    sets = drawn.specification["datasets"]
    assert {row["column"] for row in sets["epoch_3"] if "x" in row} == {"None"}


def test_cosines_of_a_stage_are_a_picture_whose_means_are_data() -> None:
    drawn = draw({"kind": "heatmap", "data": "heat_map_stages", "facet": "regularizer", "when": ONE_LR})
    rows = list(csv.DictReader(io.StringIO(rendering.render(drawn, "csv").content.decode())))
    assert [(row["quantity"], row["regularizer"]) for row in rows] == [
        ("iteration_0", "none"), ("iteration_0", "sec"), ("epoch_3", "none"), ("epoch_3", "sec"),
    ]  # fmt: skip
    assert "picture" not in rows[0]
    assert (float(rows[2]["own"]), float(rows[2]["others"])) == pytest.approx(((0.9 + 0.8 + 0.6) / 3, -1.6 / 3))
    held = drawn.specification["datasets"]["epoch_3"][-1]["picture"]
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(held.partition(",")[2]))))
    side = 900 // 3
    assert pixels.shape == (2 * side, 3 * side, 3)
    darker = pixels[::side, ::side].astype(int)
    assert darker[1, 0, 0] > darker[1, 0, 2], "0.9 at the bottom left: orange"
    assert darker[0, 0, 0] < darker[0, 0, 2], "-0.5 above it: blue"


def test_sheets_are_drawn_as_they_are_kept() -> None:
    drawn = draw({"kind": "images", "data": "panels", "facet": ["regularizer", "optimizer.lr"]})
    rows = list(csv.DictReader(io.StringIO(rendering.render(drawn, "csv").content.decode())))
    assert len(rows) == 6
    assert {row["file"] for row in rows} == {"panels.png"}
    assert rows[1]["trial"] == "4", "of the first repeat"
    held = {row["trial"]: row["picture"] for row in data(drawn)}
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(held[4].partition(",")[2]))))
    assert (pixels == 80).all()
    assert "A data file is not drawn: panels.png of trial 5" in said(drawn)
    assert "seed 0" in said(drawn)


def test_a_file_that_is_no_picture_of_a_fair_size_is_reported() -> None:
    pixel = style.png(np.zeros((1, 1, 3), np.uint8))
    wide = pixel.replace(b"\0\0\0\1\0\0\0\1", b"\0\1\0\0\0\1\0\0")
    figure = {"kind": "images", "data": "panels", "facet": ["regularizer", "optimizer.lr"]}
    for content, why in (
        (b"GIF89a", "not a PNG file, or is truncated"),
        (pixel[:18], "not a PNG file, or is truncated"),
        (wide, "at most 40,000,000"),
    ):
        sources = Sources(SOURCES.curves, arrays, lambda trials, file, it=content: (dict.fromkeys(trials, it), {}))
        assert why in said(draw(figure, sources))


def test_sheets_beyond_the_limit_of_a_figure_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MOST_BYTES", int(3.5 * len(style.png(np.full((40, 60, 3), 20, np.uint8)))))
    drawn = draw({"kind": "images", "data": "panels", "facet": ["regularizer", "optimizer.lr"]})
    assert "3 sheets are not drawn" in said(drawn)
    assert len(data(drawn)) == 3


@pytest.mark.parametrize(("kind", "data"), [("heatmap", "samples"), ("curves", "norm_traces")])
def test_points_seen_on_the_way_name_no_checkpoint(kind: str, data: str) -> None:
    figure = {"kind": kind, "data": data, "facet": "regularizer", "when": ONE_LR}
    alone = figure | {"when": ONE_LR | {"regularizer": ["none"]}}
    for split in ("last", "validation", "test"):
        text = said(draw(figure, split=split))
        assert "checkpoint" not in text
        where = "validation" if split == "validation" else "test"
        assert f"Best candidate of each point chosen by mean R@1 on the {where} split." in text
        assert ("TEST split, so the numbers are optimistic" in text) is (split != "validation")
        text = said(draw(alone, split=split))
        assert "chosen by" not in text, "there is one candidate"
        assert "optimistic" not in text


def test_nothing_to_draw_is_a_picture_that_says_why() -> None:
    empty = draw(LINE, state="queued", compare={"regularizer": (), "optimizer.lr": ()})
    assert said(empty).endswith("Nothing to draw yet: the sweep is queued.")
    assert b"nothing to draw" in rendering.render(empty, "svg").content
    none = draw(FIGURES["curves"], sources=Sources(lambda trials, keys: {}, arrays))
    assert "No trial reported validation/recall@1, train/norm_var." in said(none)


def test_missing_files_are_reported() -> None:
    text = said(draw(FIGURES["distribution"]))
    assert "A data file is not drawn: norms.npz of trial 5 is not in the storage any more." in text

    def broken(trials: Any, file: str) -> Any:
        return {trial: {"edges": np.array(["a", "b"]), "counts": np.array([1])} for trial in trials}, {}

    drawn = draw(FIGURES["distribution"], sources=Sources(SOURCES.curves, broken))
    assert "18 data files are not drawn: norms.npz of trial 1 is not as it should be" in said(drawn)
    for wrong in ({}, {"edges": np.array([0.0, 1.0])}, {"edges": np.array([0.0, 0.0]), "counts": np.array([1])}):
        sources = Sources(SOURCES.curves, lambda trials, file, it=wrong: (dict.fromkeys(trials, it), {}))
        assert not draw(FIGURES["distribution"], sources=sources).rows


def test_each_window_has_a_panel_on_request() -> None:
    figure = FIGURES["distribution"] | {"data": "direction_variation", "facet": None, "when": ONE_LR}
    together, apart = draw(figure), draw(figure | {"windows": True})
    assert [*together.specification["datasets"]] == ["direction_variation"]
    assert [*apart.specification["datasets"]] == ["window_10", "window_20"]
    assert len(apart.specification["concat"]) == 2
    for panel, mean, variance in (("window_10", 0.3 + 0.1 / 3, 0.14 / 3), ("window_20", 2 / 15 + 0.1 / 3, 0.02 / 9)):
        rows = apart.specification["datasets"][panel]
        (words,) = (row for row in rows if row.get("text") and row["colour"] == "None")
        assert words["center"] == pytest.approx(mean, abs=0.05)
        assert words["variance"] == pytest.approx(variance, abs=1e-3)
    text = rendering.render(apart, "svg").content.decode()
    assert "rad, to step 10" in text
    assert "rad, to step 20" in text
    assert "each panel since the one before it: densities over" in said(apart)
    bare = {"step": [1], "edges": [0, 1]}
    broken = Sources(SOURCES.curves, lambda trials, file: (dict.fromkeys(trials, bare), {}))
    assert "it lacks 'angle'" in said(draw(figure | {"windows": True}, sources=broken))


def test_a_figure_that_is_not_there() -> None:
    with pytest.raises(NotFoundError, match="no figure named 'other'; expected one of 'main'"):
        drawing.draw(results(LINE), "other", sweeps.catalog(), SOURCES)
    many = {"regularizer": [str(number) for number in range(700)], "optimizer.lr": LRS}
    with pytest.raises(ConflictError, match="2,100 points; at most 2,000"):
        draw(LINE, compare=many, seeds=1)


def test_a_mean_curve_has_the_steps_that_all_repeats_have() -> None:
    found = curves.mean_curve([[(10, 1.0), (20, 2.0), (30, None)], [(10, 3.0), (20, float("nan")), (30, 4.0)]])
    assert [(step, one.mean, one.n) for step, one in found] == [(10, 2.0, 2)]
    assert curves.mean_curve([]) == []
    long = curves.mean_curve([[(step, float(step)) for step in range(5_000)]])
    thin = sketch.evenly(long, 1_000)
    assert (len(thin), thin[0][0], thin[-1][0]) == (1_000, 0, 4_999)


def test_densities_have_an_area_of_one_and_repeats_count_alike() -> None:
    def histogram(edges: list[float], counts: list[float]) -> distribution.Histogram:
        return distribution.Histogram(np.array(edges), np.array(counts), 0.0, 0.0)

    small, large = histogram([0, 1, 2], [1, 0]), histogram([0, 1, 2], [0, 1_000])
    edges, density = distribution.pooled_density([small, large], None)
    assert (edges.tolist(), density.tolist()) == ([0, 1, 2], [0.5, 0.5])
    other = histogram([1, 2, 4], [3, 1])
    edges, density = distribution.pooled_density([small, other], 8)
    assert (edges[0], edges[-1], len(density)) == (0, 4, 8)
    assert float(density @ np.diff(edges)) == pytest.approx(1.0)
    # Spread evenly: half of the second's quarter lies in each of the last two units.
    assert density[-1] == pytest.approx(0.25 / 2 / 2)


def test_series_differ_in_colour_dash_or_shape() -> None:
    series = range(40)
    assert len({*zip(style.colours(series), map(str, style.dashes(series)), strict=True)}) == 40
    assert len({*zip(style.colours(series), style.shapes(series), strict=True)}) == 40


def test_large_clouds_are_thinned() -> None:
    rng = np.random.default_rng(0)
    cloud = {"xy": rng.normal(size=(5_000, 2)), "label": rng.integers(0, 100, 5_000)}
    sources = Sources(SOURCES.curves, lambda trials, file: (dict.fromkeys(trials, cloud), {}))
    drawn = draw({"kind": "scatter", "data": "tsne", "facet": "regularizer", "when": ONE_LR}, sources=sources)
    assert len(drawn.rows) == 2 * 1_667
    assert "At most 2,000 of 5,000 images are drawn in a panel." in said(drawn)
    assert ">Class<" not in rendering.render(drawn, "svg").content.decode()  # a hundred classes have no legend


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
def test_an_invalid_file_is_reported(wrong: dict[str, np.ndarray]) -> None:
    def broken(trials: object, file: str) -> object:
        found, missing = SOURCES.arrays(trials, file)
        return {trial: {**one, **wrong} for trial, one in found.items()}, missing

    drawn = draw(FIGURE, sources=Sources(SOURCES.curves, broken))
    assert "18 data files are not drawn" in said(drawn)
    assert not drawn.rows


def test_what_no_line_leads_to_is_a_dot() -> None:
    for values, alone in (
        ([0.5], [True]), ([0.5, 0.6, 0.7], [False, False, False]), ([0.5, -1.0, 0.6], [True, False, True]),
        ([0.5, None, 0.6, None, 0.7, 0.8], [True, False, True, False, False, False]),
    ):  # fmt: skip
        points = [(float(at), value) for at, value in enumerate(values)]
        line = CurveLine(label="seed 0", sweep=1, cell=0, candidate=0, trials=[1], runs=1, points=points)
        found = CurveLines(key="validation/map@r", x="step", smoothing=0.0, keys=["validation/map@r"], traces=[line])
        figure = pages.lines_charts([found], ["MAP@R"], log=True)
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
        figure = pages.lines_charts([found], ["MAP@R"])
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
    sizes = {(multiple["width"], multiple["height"]) for multiple in specification["concat"]}
    assert sizes == {(250, 140)}, "three fit next to one another on a page"
    assert [one["title"] for one in specification["concat"]] == ["Loss", "Learning rate", "MAP@R (validation)"]
    assert {tuple(one["encoding"]["x"]["scale"]["domain"]) for one in specification["concat"]} == {(0, 200)}
    assert specification["title"] == "Trial 3"
    assert all(one["encoding"]["tooltip"] for one in specification["concat"])


def test_what_is_no_number_breaks_the_line(found):
    specification = pages.curves(found, "Trial 3")
    assert [one["value"] for one in specification["concat"][0]["data"]["values"]] == [2.0, None, None, 1.0]
    json.dumps(specification, allow_nan=False)
