"""The protocols of the papers as recipes, on digits: each builds and trains a few steps."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.workers.recipes import DIGITS, recipe, run
from workers.catalog import load, problems

CROP = {"augment": "crop_flip", "crop": 7}
TEST = {"validation": "none", "select": {"metric": "recall@1", "split": "test"}}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "SEC, deep metric learning (table 6, CUB)": {
        **CROP, **TEST, "head": "bn_fc", "loss": "triplet", "regularizer": {"name": "sec", "eta": 1.0},
        "sampler": {"name": "balanced", "classes": 4, "per_class": 3}, "backbone_rate": 0.5,
        "optimizer": {"name": "adam", "lr": 5e-6, "weight_decay": 2.5e-3}, "schedule": {"name": "step", "at": [5]},
        "iterations": 8,
    },
    "SEC, face recognition": {
        **TEST, "head": "bn_fc", "loss": "arcface", "eta_schedule": "min_ramp",
        "regularizer": {"name": "sec_ema", "eta": 1.0, "rho": 0.4},
        "sampler": {"name": "shuffle", "batch": 256}, "optimizer": {"name": "sgd", "lr": 0.1, "weight_decay": 5e-4},
        "iterations": None, "epochs": 2, "evaluate_every": 1, "schedule": {"name": "step", "at": [1]},
    },
    "SVMax (table 1)": {
        **TEST, "head": "unit_fc", "loss": "batch_hard", "regularizer": {"name": "svmax", "eta": 0.1},
        "sampler": {"name": "balanced", "classes": 6, "per_class": 6}, "optimizer": {"name": "sgd", "lr": 0.01},
        "schedule": {"name": "polynomial", "floor": 1e-7, "hold": 0.5}, "iterations": 8,
    },
    "Proxy-Anchor": {
        **CROP, **TEST, "loss": "proxy_anchor", "sampler": {"name": "shuffle", "batch": 180}, "warmup": 1,
        "optimizer": {"name": "adamw", "lr": 1e-4, "weight_decay": 1e-4}, "clip_value": 10, "precision": "bf16",
        "schedule": {"name": "step", "every": 1, "gamma": 0.5}, "iterations": None, "epochs": 2, "evaluate_every": 1,
    },
    "Proxy-ISA": {
        **CROP, **TEST, "loss": {"name": "proxy_isa", "memory": 500, "memory_epoch": 0, "filter_epoch": 1},
        "sampler": {"name": "shuffle", "batch": 128}, "optimizer": {"name": "adam", "lr": 1e-4, "weight_decay": 1e-4},
        "clip_value": 10, "schedule": {"name": "step", "every": 1, "gamma": 0.5}, "iterations": None, "epochs": 2,
        "evaluate_every": 1,
    },
    "MLRC": {
        **CROP, "validation": {"name": "cross_validation", "folds": 3}, "loss": "multi_similarity", "loss_rate": 10,
        "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "patience": 9, "evaluate_every": 2,
        "optimizer": {"name": "rmsprop", "lr": 1e-6, "momentum": 0.9, "weight_decay": 1e-4}, "iterations": 6,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_published_protocol_trains(name: str, tmp_path: Path) -> None:
    changes = PROTOCOLS[name]
    raw = {key: value for key, value in {**DIGITS, **changes}.items() if value is not None}
    assert problems(raw, load()) == []
    what = recipe(**changes)
    result, _ = run(what, tmp_path)
    assert result.outcome == "ok"
    assert result.metrics[what.select.key] > 0
    assert all(math.isfinite(value) for _, value in result.curves["train/loss"])
    assert what.loss_rate == {"Proxy-Anchor": 100, "Proxy-ISA": 100, "MLRC": 10}.get(name, 1)
