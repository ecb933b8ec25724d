"""Figures made up for the tests: outcomes, curves and data files that a fixed rule gives."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from orchestrator.publish.figures import drawing, style
from orchestrator.publish.figures.drawing import Figure
from orchestrator.publish.figures.sketch import Arrays, CurvePoints, Sources
from orchestrator.views.runs import SweepResults
from tests.publish import sweeps

LRS = ("0.0001", "0.001", "0.01")


def results(figure: Mapping[str, Any], state: str = "finished", **more: Any) -> SweepResults:
    """A sweep of two regularizers at three learning rates with one figure, `main`; eta is tuned for SEC."""
    compare = more.pop("compare", {"regularizer": ("none", "sec"), "optimizer.lr": LRS})
    spec = sweeps.spec(
        figures={"main": figure}, select={"metric": "recall@1", "split": more.pop("split", "validation")}
    )
    return sweeps.grid(compare, spec, state=state, metrics=("recall@1", "map@r", "norm_var"), **more)


def curves(trials: Sequence[int], keys: Collection[str]) -> dict[int, dict[str, CurvePoints]]:
    """Curves that rise to a height of each trial's own."""
    return {
        trial: {
            key: [(step, (1 - math.exp(-step / 40)) * (0.5 + trial / 100)) for step in (20, 40, 80)] for key in keys
        }
        for trial in trials
    }


def arrays(trials: Sequence[int], file: str) -> tuple[dict[int, Arrays], dict[int, str]]:
    """A small data file of each trial; the fifth has lost its own."""
    found = {trial: FILES[file.partition("-")[0]](trial) for trial in trials if trial != 5}
    return found, {trial: f"{file}.npz of trial 5 is not in the storage any more" for trial in trials if trial == 5}


def _norms(trial: int) -> Arrays:
    return {
        "edges": np.array([1.0, 2.0, 3.0, 5.0]) + trial % 2, "counts": np.array([2, 5, 3]),
        "mean": np.float64(2.5), "variance": np.float64(0.25),
    }  # fmt: skip


def _cosines(trial: int) -> Arrays:
    counts = {name: np.array([trial, 3]) for name in ("cos_ap", "cos_an", "difference")}
    return {"edges": np.array([-1.0, 0.0, 1.0]), "difference_edges": np.array([-2.0, 0.0, 2.0]), **counts}


def _variation(trial: int) -> Arrays:
    angle = np.array([[0.1, 0.2, 0.6], [0.1, 0.1, 0.2]]) + trial % 2 / 10
    moments = {"window_mean": angle.mean(axis=1), "window_var": angle.var(axis=1)}
    counts, edges = np.histogram(angle, bins=4)
    whole = {"direction_variation_angle_mean": angle.mean(), "direction_variation_angle_var": angle.var()}
    return {"step": np.array([10, 20]), "angle": angle, "edges": edges, "counts": counts, **moments, **whole}


def _circle(trial: int) -> Arrays:
    angle = np.array([0.0, 1.0, 2.0]) + trial / 10
    return {"xy": np.stack([np.cos(angle), np.sin(angle)], axis=1).round(6), "label": np.array([0, 1, 1])}


def _plane(trial: int) -> Arrays:
    """t-SNE at two stages, with a star for each of two classes."""
    xy = np.array([[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[2.0, 2.0], [3.0, 3.0], [2.0, 3.0]]]) + trial
    stages = {"step": np.array([0, 60]), "at": np.array([0, 3])}
    proxies = {"proxy_xy": xy[:, :2] + 0.5, "proxy_label": np.array([0, 1])}
    return {**stages, "xy": xy, "label": np.array([0, 1, 1]), **proxies}


def _cosines_by_stage(trial: int) -> Arrays:
    cosine = np.array([[[0.1, 0.0], [0.1, 0.2], [0.0, 0.2]], [[0.9, -0.5], [-0.5, 0.8], [-0.6, 0.6]]])
    classes = {"label": np.array([0, 1, 1]), "proxy_label": np.array([0, 1])}
    return {"step": np.array([0, 60]), "at": np.array([0, 3]), "cosine": cosine, **classes}


def _samples(trial: int) -> Arrays:
    """One Gaussian of four that is known at first and two later; a tenth of the later samples is far away."""
    centres = np.array([[2.0, 0.0], [0.0, 2.0], [-2.0, 0.0], [0.0, -2.0]])
    late = np.concatenate([np.repeat(centres[:2], 9, axis=0), np.full((2, 2), 99.0 + trial)])
    xy = np.stack([np.repeat(centres[:1], 20, axis=0), late])
    return {"step": np.array([0, 300]), "xy": xy, "target": np.repeat(centres, 5, axis=0), "centres": centres}


FILES = {
    "norms": _norms, "cosines": _cosines, "direction_variation": _variation, "unit_circle": _circle, "tsne": _circle,
    "spectrum": lambda trial: {"singular": np.array([4.0, 2.0, 0.5]) + trial / 100},
    "norm_traces": lambda trial: {"step": np.array([0, 10]), "norm": np.array([[1.0, 2.0], [1.5, 2.5]]) + trial},
    "heat_map": lambda _: {"cosine": np.array([[1.0, np.nan], [0.5, 1.0]]), "class_cosine": np.array([[np.nan]])},
    "gradients": lambda trial: {
        "step": np.array([0, 30]), "norm": np.array([[1.0, 2.0], [1.5, 2.5]]) + trial, "gradient": np.ones((2, 2)),
    },
    "tsne_stages": _plane, "heat_map_stages": _cosines_by_stage, "samples": _samples,
}  # fmt: skip


def pictures(trials: Sequence[int], file: str) -> tuple[dict[int, bytes], dict[int, str]]:
    """A sheet of each trial, of a shade of its own; the fifth has lost its own."""
    found = {trial: style.png(np.full((40, 60, 3), 20 * (trial % 12), np.uint8)) for trial in trials if trial != 5}
    return found, {trial: f"{file}.png of trial 5 is not in the storage any more" for trial in trials if trial == 5}


SOURCES = Sources(curves, arrays, pictures)


def draw(figure: Mapping[str, Any], sources: Sources = SOURCES, heading: bool = True, **more: Any) -> Figure:
    """The figure of such a sweep."""
    return drawing.draw(results(figure, **more), "main", sweeps.catalog(), sources, heading=heading)


def said(figure: Figure) -> str:
    """Everything that stands over a figure."""
    facts = figure.specification["usermeta"]
    return " ".join([facts["caption"], *facts["notes"]])


def data(figure: Figure) -> list[dict[str, Any]]:
    """The data that Vega-Lite draws, all plots after one another, without what only keeps panels in their place."""
    rows = [row for rows in figure.specification["datasets"].values() for row in rows]
    return [row for row in rows if row.keys() - {"column", "row"}]
