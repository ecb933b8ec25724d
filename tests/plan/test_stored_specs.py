"""Sound specs as they are stored: defaults, labels as the axes spell them, and what is left of a subset."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema

from orchestrator.plan.check import check
from orchestrator.plan.schema import json_schema
from orchestrator.spec.spec import Spec
from tests.plan.conftest import Small
from tests.plan.test_figure_layout import SOUND, line, with_figure
from tests.plan.test_layout import AXES, BOTH, table, with_table, with_wide
from tests.plan.test_subset import ROWS
from workers.catalog import Catalog

SHOWN = ("compare", "tune", "rules", "slots", "select", "prune", "tables", "figures")
"""Of a stored spec; the recipe is shown by the tests of trials."""
MNIST = {"metric": "nmi", "when": {"dataset": "mnist"}}


def layouts(small: Small) -> dict[str, Any]:
    """Tables, and how their metrics, labels and runs are told."""
    column = {"metric": "recall@1", "label": "R@1", "unit": "fraction", "decimals": 3}
    runs = {"spread": "ci95", "counts": "always", "against": {"regularizer": "none"}, "test": "wilcoxon"}
    judged = {"against": {"regularizer": "none"}, "margin": 0.5, "level": 0.05, "looks": "any", "marks": True}
    somewhere = [
        {"metric": "recall@1000", "when": {"dataset": "big"}},  # digits does not compute it
        {"metric": "nmi", "when": {"optimizer.lr": [0.01]}, "decimals": 1},
        {"metric": "nmi", "when": {"optimizer.lr": [1e-5]}, "decimals": 3},
    ]
    delta = {"metric": "nmi", "delta": {"optimizer.lr": 1e-5}, "signed": True}
    held = {"rows": [], "columns": ["dataset"], "metrics": [{"metric": "nmi", "when": {"dataset": "digits"}}],
            "labels": {"dataset": {"digits": "Digits!"}}}  # fmt: skip
    fixed = {"rows": ["loss", "optimizer"], "columns": ["dataset", "sampler.classes"]}
    labels = {
        "optimizer.lr": {"1e-2": "fast", "0.00001": 1e-05, "": "none"}, "regularizer.eta": {"1": "one"},
        "loss": {"triplet": "T (lr={optimizer.lr})"},
    }  # fmt: skip
    titles = {"loss": "Method", "optimizer.lr": None}
    labelled = with_wide(small, labels=labels, titles=titles, std={"decimals": 3, "unit": "fraction"})
    labelled["recipe"]["regularizer"] = "sec"
    sop = {"label": "SOP", "patch": {"dataset": "sop", "iterations": 12_000, "optimizer": {"lr": 0.1}}}
    axes = {
        "loss": ["triplet", {"name": "triplet", "margin": 0.2}, {"margin": 0.3}],
        "dataset": ["digits", sop], "regularizer": ["none", "svmax", "sec_ema"],
    }  # fmt: skip
    etas = [{"values": [1e-5, 1, 1.5], "when": {"regularizer": "svmax"}},
            {"values": [1], "when": {"regularizer": ["sec_ema"]}}]  # fmt: skip
    rho = {"values": [0.5], "when": {"regularizer": "sec_ema", "regularizer.eta": 1.0}}
    return {
        "axes of every form": small(compare=axes, tune={"regularizer.eta": etas, "regularizer.rho": rho}),
        "no tables": small(compare=AXES), "nothing is compared": small(), "held fixed": small(tables={"t": fixed}),
        "a metric of a form of its own": with_table(small, metrics=["nmi", column]),
        "runs": with_table(small, **runs), "verdicts": with_table(small, verdicts=judged),
        "a median": with_table(small, center="median", spread="std"),
        "against a number": with_wide(small, against={"optimizer.lr": 1e-5}),
        "metrics under some columns": with_wide(small, metrics=somewhere),
        "metrics where the recipe holds an axis": small(tables={"main": held}),
        "a difference": with_wide(small, metrics=["nmi", delta, {"metric": "nmi", "label": "again"}]),
        "labels and titles": labelled | {"tune": {"regularizer.eta": [0.5, 1.0]}},
        "published": with_wide(small, published="SEC-T3"),
        "both selections": table(small, selections=BOTH, flattery=True),
    }  # fmt: skip


def figures(small: Small) -> dict[str, Any]:
    """Figures of every kind."""
    spelt = line(labels={"optimizer.lr": {"1.0e-3": "low"}}, when={"optimizer.lr": [0.0010]})
    tuned = {"kind": "line", "metric": "nmi", "x": "optimizer.lr", "colour": "loss"}
    of_test = {"f": {"kind": "curves", "metric": "test/recall@1"}}
    return {
        **{f"figure {number}": with_figure(small, **figure) for number, figure in enumerate([*SOUND, spelt])},
        "a tune axis": small(compare={"loss": ["triplet", "semihard"]}, tune={"optimizer.lr": [1e-3, 1e-2]},
                             figures={"f": tuned}),
        "a curve of the test split": small(select={"metric": "map@r", "split": "test"}, figures=of_test),
    }  # fmt: skip


def subsets(small: Small, design: dict[str, Any]) -> dict[str, Any]:
    """What is left of rules, slots, tables and figures once a part of the trials is taken."""
    rules = [
        {"when": {"loss": ["semihard", "triplet"]}, "patch": {"iterations": 5}},
        {"when": {"regularizer": "svmax"}, "patch": {"embedding": 8}},
    ]
    slots = [{"when": {"regularizer.eta": [0.5, 0.001]}, "cpus": 2}, {"when": {"loss": "semihard"}, "cpus": 3}]
    two = design | {"compare": design["compare"] | {"dataset": ["digits", "mnist"]}}
    main = {
        "rows": ["loss", "regularizer"], "columns": ["dataset"], "against": {"regularizer": "none"},
        "panels": [{"dataset": ["digits"]}, {"dataset": ["mnist"]}], "bold": ["loss", "dataset"],
        "metrics": ["recall@1", MNIST | {"when": {"dataset": ["digits", "mnist"]}}, MNIST | {"metric": "f1"},
                    {"metric": "recall@1", "delta": {"regularizer": "l2"}, "label": "Δ"}],
        "verdicts": {"against": {"regularizer": "none"}, "margin": 1},
        "labels": {"dataset": {"mnist": "MNIST"}, "regularizer": {"l2": "L2", "sec": "SEC {regularizer.eta}"}},
    }  # fmt: skip
    other = {**ROWS, "columns": ["dataset"], "metrics": [MNIST]}
    eta = {"regularizer": ["none", "sec"], "regularizer.eta": [{"values": [0.5, 1.0], "when": {"regularizer": "sec"}}]}
    with_eta = {
        "rows": ["regularizer", "regularizer.eta"], "metrics": ["nmi"], "bold": ["regularizer.eta"],
        "titles": {"regularizer.eta": None, "regularizer": ""}, "labels": {"regularizer": {"sec": "{regularizer.eta}"}},
    }  # fmt: skip
    drawn = {
        "bars": {"kind": "bars", "metric": "nmi", "x": "regularizer", "colour": "regularizer.eta"},
        "line": {"kind": "line", "metric": "nmi", "x": "regularizer.eta", "colour": "regularizer"},
        "some": {"kind": "bars", "metric": "nmi", "x": "regularizer.eta", "when": {"regularizer": "sec"}},
    }
    none = {"only": {"regularizer": "none"}}
    return {
        "rules and slots": design | {"rules": rules, "slots": slots,
                                     "only": {"loss": "triplet", "regularizer": ["none", "sec"]}},
        "tables": two | {"tables": {"main": main, "other": other}, "only": {"dataset": "digits"},
                         "without": {"regularizer": "l2"}},
        "an axis that no trial has": small(compare=eta, tables={"main": with_eta}, figures=drawn) | none,
        "the baseline alone": design | {"tables": {"main": {**ROWS, "against": {"regularizer": "none"}}}} | none,
        "no table": two | {"tables": {"only-mnist": other}, "without": {"dataset": "mnist"}},
        "nothing competes": design | {"prune": "median"} | none,
        "candidates compete": design | {"prune": "median", "only": {"regularizer": "sec"}},
    }  # fmt: skip


def test_stored_specs_equal_their_golden_files(
    small: Small, design: Any, catalog: Catalog, golden: Callable[[str, bytes], None]
) -> None:
    validator = jsonschema.Draft7Validator(json_schema(catalog))
    for name, documents in {
        "layouts": layouts(small), "figures": figures(small), "subsets": subsets(small, design),
    }.items():  # fmt: skip
        told = []
        for title, document in documents.items():
            notes: list[str] = []
            spec = check(document, catalog, notes)
            stored = spec.model_dump(mode="json")
            assert Spec.model_validate(stored) == spec, title
            validator.validate(document)
            kept = {key: stored[key] for key in SHOWN if stored.get(key)}
            told += [f"===== {title}", *notes, json.dumps(kept, indent=1, ensure_ascii=False)]
        golden(f"{name}.txt", "\n".join([*told, ""]).encode())
