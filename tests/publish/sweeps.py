"""Sweeps made up for the tests: outcomes as the store gives them, with numbers drawn from a fixed seed."""

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from orchestrator.views.runs import Candidate, Cell, SweepResults, TrialResult
from orchestrator.views.states import TrialState
from workers.catalog import Catalog, Entry

LOSSES = ("triplet", "semihard", "normalized_npair", "multi_similarity")
REGULARIZERS = ("none", "l2", "sec", "svmax")
ETAS = {"none": (), "l2": ("0.01", "0.001", "0.0001"), "sec": ("0.25", "0.5", "1"), "svmax": ("0.25", "0.5", "1")}
METRICS = ("nmi", "f1", "recall@1", "map@r", "norm_var")

OVER: dict[str, dict[str, Any]] = {"recall": {"over": "queries"}, "map": {"over": "queries"}}

Keep = Callable[[Mapping[str, str]], bool]
"""Whether a cell with these labels is in the sweep."""

Fate = Callable[[Mapping[str, str], int, int], str]
"""What becomes of a trial, by its cell's labels, candidate and repeat: ok, diverged or a trial state."""


def catalog() -> Catalog:
    """A catalog that stays as it is, so that golden files do not follow the real one."""
    labels = {
        "loss": {
            "triplet": "Triplet", "semihard": "Semihard triplet", "normalized_npair": "Normalized N-pair",
            "multi_similarity": "Multi-similarity",
        },
        "regularizer": {"none": "None", "l2": "L2", "sec": "SEC", "svmax": "SVMax"},
        "dataset": {"digits": "Digits", "omniglot": "Omniglot"},
    }  # fmt: skip
    metrics = {
        "recall": ("R", "higher"), "map": ("MAP", "higher"), "nmi": ("NMI", "higher"), "f1": ("F1", "higher"),
        "nmi_sec": ("NMI", "higher"),
        "norm_var": ("Norm var", "none"), "spread": ("Spread", "lower"),
    }  # fmt: skip
    parts = [
        Entry(kind=kind, name=name, label=label) for kind, found in labels.items() for name, label in found.items()
    ]
    parts += [
        Entry(kind="metric", name=name, label=label, facts={"better": better, **OVER.get(name, {})})
        for name, (label, better) in metrics.items()
    ]
    return Catalog(entries=parts)


def spec(**given: Any) -> dict[str, Any]:
    """A normalized spec as far as publish reads it."""
    table = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": list(METRICS)}
    return {
        "version": 1, "name": "sec-on-digits", "recipe": {"dataset": "digits", "seed": 0},
        "select": {"metric": "map@r", "split": "validation"}, "tables": {"main": table}, "search": {"name": "grid"},
        **given
    }  # fmt: skip


def axes(labels: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Axes as a stored spec has them, each of whose alternatives sets its label; "" is where an axis does not apply."""
    return {
        axis: [{"when": {}, "choices": [{"label": label, "patch": {axis: label}} for label in found if label]}]
        for axis, found in labels.items()
    }


def value(random_: random.Random, metric: str, checkpoint: str = "best") -> dict[str, float]:
    """One metric on both splits."""
    found = abs(random_.gauss(0.02, 0.01)) if metric == "norm_var" else min(1.0, abs(random_.gauss(0.6, 0.08)))
    return {f"{checkpoint}/test/{metric}": found, f"{checkpoint}/validation/{metric}": found + 0.05}


def ok(labels: Mapping[str, str], candidate: int, repeat: int) -> str:
    """Everything finishes."""
    return "ok"


def always(labels: Mapping[str, str]) -> bool:
    """The whole grid."""
    return True


def grid(
    compare: Mapping[str, Sequence[str]],
    specification: Mapping[str, Any],
    *,
    fate: Fate = ok,
    keep: Keep = always,
    seeds: int = 3,
    state: str = "finished",
    metrics: Sequence[str] = METRICS,
) -> SweepResults:
    """The outcomes of a grid; an axis does not apply where its label is empty, and eta is tuned where it can be."""
    random_ = random.Random(7)
    cells, candidates, trials = [], [], []
    points = [dict(zip(compare, point, strict=True)) for point in product(*compare.values())]
    for index, point in enumerate(filter(keep, points)):
        labels = {axis: label for axis, label in point.items() if label}
        cells.append(Cell(index, labels))
        etas = () if "regularizer.eta" in compare else ETAS.get(labels.get("regularizer", "none"), ())
        tuned: list[dict[str, str]] = [{"regularizer.eta": eta} for eta in etas] or [{}]
        for number, chosen in enumerate(tuned):
            candidates.append(Candidate(index, number, chosen))
            for repeat in range(seeds):
                what = fate(labels, number, repeat)
                values = {k: v for metric in metrics for k, v in value(random_, metric).items()}
                trials.append(
                    TrialResult(
                        trial=len(trials) + 1, cell=index, candidate=number, repeat=repeat,
                        repeat_labels={"seed": str(repeat)},
                        state=TrialState.FINISHED if what in {"ok", "diverged"} else TrialState(what),
                        diverged=what == "diverged", values=values if what == "ok" else {},
                    ),
                )  # fmt: skip
    name = str(specification.get("name", ""))
    return SweepResults(7, name, state, specification, tuple(cells), tuple(candidates), tuple(trials))


def digits(**given: Any) -> SweepResults:
    """The demo: 4 losses x 4 regularizers on one data set, complete."""
    return grid({"loss": LOSSES, "regularizer": REGULARIZERS}, spec(**given))


def rich() -> SweepResults:
    """Two data sets and everything that can become of a cell."""
    table = {
        "rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["nmi", "recall@1", "map@r", "norm_var"],
        "show_tuned": True,
    }  # fmt: skip
    fates = {
        ("semihard", "l2", "digits"): lambda candidate, repeat: "diverged",
        ("semihard", "none", "omniglot"): lambda candidate, repeat: "failed" if repeat == 1 else "ok",
        ("semihard", "sec", "omniglot"): lambda candidate, repeat: "diverged" if candidate == 2 else "ok",
        ("multi_similarity", "sec", "digits"): lambda candidate, repeat: "running" if candidate == 2 else "ok",
        ("multi_similarity", "sec", "omniglot"): lambda candidate, repeat: "running" if repeat == 0 else "waiting",
    }

    def fate(labels: Mapping[str, str], candidate: int, repeat: int) -> str:
        found = fates.get((labels["loss"], labels["regularizer"], labels["dataset"]))
        return found(candidate, repeat) if found else "ok"

    compare = {
        "dataset": ("digits", "omniglot"),
        "loss": ("triplet", "semihard", "multi_similarity"),
        "regularizer": ("none", "l2", "sec"),
    }
    return grid(compare, spec(tables={"main": table}), fate=fate, state="running")


SVMAX_COMPARE = {
    "loss": ("triplet", "semihard"), "regularizer": ("none", "svmax"), "regularizer.eta": ("", "1", "0.1"),
    "optimizer.lr": ("0.01", "0.001"),
}  # fmt: skip
SVMAX_LAYOUT: dict[str, Any] = {
    "rows": ["loss", "regularizer", "regularizer.eta"],
    "columns": ["optimizer.lr"],
    "metrics": [
        {"metric": "nmi", "unit": "fraction", "decimals": 3}, "recall@1",
        {"metric": "map@r", "when": {"optimizer.lr": ["0.01"]}},
        {"metric": "recall@1", "delta": {"regularizer": "none"}, "signed": True},
    ],
    "labels": {
        "loss": {"triplet": "Triplet†"}, "regularizer": {"none": "", "svmax": "SVMax (λ={regularizer.eta})"},
        "optimizer.lr": {"0.01": "fast – 0.01"},
    },
    "titles": {"loss": "Method", "regularizer": "", "regularizer.eta": None, "optimizer.lr": "lr"},
    "std": {"decimals": 3, "unit": "fraction"},
    "missing": "-",
    "diverged": "degenerate (loss → nan)",
}  # fmt: skip


def svmax(**layout: Any) -> SweepResults:
    """Weights and learning rates as axes of the table, as SVMax prints them; one cell diverged, one is not there."""

    def keep(labels: Mapping[str, str]) -> bool:
        absent = (labels["loss"], labels["regularizer.eta"], labels["optimizer.lr"]) == ("semihard", "0.1", "0.001")
        return not absent and (labels["regularizer"] == "none") == (labels["regularizer.eta"] == "")

    def fate(labels: Mapping[str, str], candidate: int, repeat: int) -> str:
        lost = {"loss": "semihard", "regularizer": "svmax", "regularizer.eta": "1", "optimizer.lr": "0.01"}
        return "diverged" if labels == lost else "ok"

    specification = spec(tables={"main": {**SVMAX_LAYOUT, **layout}}, compare=axes(SVMAX_COMPARE))
    return grid(SVMAX_COMPARE, specification, fate=fate, keep=keep)


def tiny() -> SweepResults:
    """One cell, one metric, one seed, nothing tuned, nothing named."""
    table = {"rows": [], "columns": [], "metrics": ["recall@1"]}
    return grid({}, spec(name="one", tables={"main": table}, select={"metric": "recall@1"}), seeds=1)
