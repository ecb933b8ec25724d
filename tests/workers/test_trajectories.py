"""Losses, regularizers and metrics give recorded values: numbers change only with the version of the part."""

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
import torch
from torch import Tensor

from tests.workers.inputs import EMBEDDED, block_labels, golden_embeddings, part, part_names, random_batch
from workers.catalog import load
from workers.catalog.inventory import parse_metric
from workers.evaluation.evaluate import evaluate
from workers.registry import find

GOLDEN: Final = Path(__file__).with_name("trajectories.json")
WRITE: Final = os.environ.get("METRICSWEEP_WRITE_GOLDEN") == "1"
STEPS, KEPT = 20, (1, 2, 5, 10, 20)
RATE: Final = 0.02
CASES: Final = [("loss", name) for name in part_names("loss")] + [
    ("regularizer", name) for name in part_names("regularizer") if name != "none"
]


def version(kind: str, name: str) -> int:
    entry = load().get(kind, name)
    assert entry is not None
    return entry.version


def trajectory(kind: str, name: str) -> list[float]:
    """The values at some of 20 plain gradient steps on the embeddings and on what the part owns, in float64."""
    embeddings, labels = random_batch(seed=3, classes=4, per_class=4)
    built = part(kind, name, classes=4)
    built.train()
    if hasattr(built, "begin"):
        built.begin(lambda: 2.0)
    torch.manual_seed(5)  # for what draws
    moved = embeddings.clone().requires_grad_()
    owned = [parameter for parameter in built.parameters() if parameter.requires_grad]
    found = []
    for step in range(1, STEPS + 1):
        value = built(moved, labels) if kind == "loss" or getattr(built, "labelled", False) else built(moved)
        if step in KEPT:
            found.append(float(value.detach()))
        gradients = torch.autograd.grad(value, [moved, *owned], allow_unused=True)
        _descend([moved, *owned], gradients)
    return found


def _descend(parameters: list[Tensor], gradients: tuple[Tensor | None, ...]) -> None:
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            if gradient is not None:
                parameter.sub_(RATE * gradient)


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    return found


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind}-{name}" for kind, name in CASES])
def test_numbers_change_only_with_the_version(kind: str, name: str) -> None:
    golden, key = recorded(), f"{kind}.{name}"
    known, now = golden.get(key), {"version": version(kind, name), "values": trajectory(kind, name)}
    if WRITE and (known is None or known["version"] < now["version"]):
        golden[key] = now
        GOLDEN.write_text(json.dumps(dict(sorted(golden.items())), indent=1) + "\n", encoding="utf-8")
        return
    assert known is not None, f"{key} is new: record it with METRICSWEEP_WRITE_GOLDEN=1"
    assert known["version"] == now["version"], f"{key} has a new version: record it with METRICSWEEP_WRITE_GOLDEN=1"
    assert now["values"] == pytest.approx(known["values"], rel=1e-6, abs=1e-9), f"give {key} a new version"


def test_nothing_is_recorded_that_is_gone() -> None:
    assert set(recorded()) == {f"{kind}.{name}" for kind, name in CASES}


GIVEN: dict[str, tuple[int, float]] = {
    "ami": (1, -0.01577610845955423),
    "cos_an": (1, -0.003109729095252561),
    "cos_an@std": (1, 0.3513270774498065),
    "cos_ap": (1, -0.010908750847627173),
    "cos_ap@std": (1, 0.29345140106566997),
    "f1": (1, 0.16267942583732056),
    "f1_sec": (1, 0.13427561837455831),
    "map@r": (2, 0.04408509700176366),
    "nmi": (1, 0.1319581157688845),
    "nmi@geometric": (1, 0.132088777958734),
    "nmi_sec": (1, 0.0989127528845208),
    "norm_mean": (1, 2.4789284173069897),
    "norm_var": (1, 0.30734006524328034),
    "r_precision": (2, 0.15),
    "recall@1": (2, 0.05),
    "recall@4": (2, 0.4166666666666667),
    "recall_sec@1": (1, 0.05),
    "recall_sec@4": (1, 0.4166666666666667),
    "s_mu": (1, 2.7177321993357797),
    "s_mu_lower": (1, 0.9682458365518543),
    "s_mu_upper": (1, 2.7386127875258306),
}
"""The version and the value of each metric; a new metric adds a line, and a new version replaces its own."""


def test_a_version_always_gives_the_same() -> None:
    """Where this fails, give the metric a new version, and write its value here."""
    assert {parse_metric(name)[0] for name in GIVEN} == set(EMBEDDED)
    found = evaluate(golden_embeddings(60, 8), block_labels(6, 10), list(GIVEN))
    assert {name: find("metric", parse_metric(name)[0]).version for name in GIVEN} == {
        name: version for name, (version, _) in GIVEN.items()
    }
    assert found == pytest.approx({name: value for name, (_, value) in GIVEN.items()}, rel=1e-9)
