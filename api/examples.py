"""Examples for the OpenAPI document; a test validates each with its view."""

from typing import Any, Final

SPEC: Final = """\
version: 1
name: sec-on-digits
recipe:
  task: retrieval
  dataset: digits
  backbone: {name: small_cnn, width: 32}
  embedding: 64
  sampler: {name: balanced, classes: 4, per_class: 8}
  optimizer: {name: adam, lr: 1.0e-3}
  iterations: 300
  validation: {name: class_holdout, folds: 3, fold: 0}
compare:
  loss: [triplet, semihard, normalized_npair, multi_similarity]
  regularizer: [none, l2, sec, svmax]
tune:
  regularizer.eta:
    - {values: [1.0e-2, 1.0e-3, 1.0e-4], when: {regularizer: l2}}
    - {values: [0.25, 0.5, 1.0], when: {regularizer: [sec, svmax]}}
repeat: {seed: [0, 1, 2]}
select: {metric: map@r, split: validation}
slot: {cpus: 1, gpus: auto}
tables:
  main: {rows: [loss, regularizer], columns: [dataset], metrics: [nmi, f1, recall@1, map@r, norm_var]}
"""

_WARNINGS: Final = [
    "no node of the cluster can hold a slot of 4 CPUs, 1 GPU and 16 GB; the most that one has is 8 CPUs, 0 GPUs and "
    "18.6 GB; trials of dataset=sop wait until such a node joins"
]

_COST: Final = {
    "trainings": 84, "models": 84, "steps": 25_200, "images": 806_400, "evaluated": 1_830_000,
    "clusterings": 0, "products": 0, "at_most": [],
    "measured": 84, "unmeasured_shapes": 0, "nearest": 0, "needed": 3,
    "hours": [
        {
            "kind": "cpu", "device": "Intel(R) Xeon(R) Processor", "slots": 2,
            "trainings": 84, "hours": 0.19, "low": 0.18, "high": 0.21, "wall_hours": 0.095,
        }
    ],
}  # fmt: skip

_REUSE: Final = {"trainings": 36, "of": 120, "first": "2026-11-19T09:12:00Z", "last": "2026-11-20T18:40:00Z"}

SUBMITTED: Final = {
    "id": 7, "uid": "0b6f2c5e-2f57-4a53-9d0a-3f6f1b0c8a11", "created": True,
    "warnings": _WARNINGS, "notes": [], "reuse": _REUSE, "cost": _COST,
}  # fmt: skip

PREVIEW: Final = {
    "name": "sec-on-digits", "cells": 16, "candidates": 40, "trials": 120, "planned": 0,
    "trainings": 120, "cached": 36, "evaluated": 0, "exact": True, "cost": _COST, "reuse": _REUSE, "warnings": [],
    "notes": ["table 'main': the difference of recall@1 to regularizer none is left out: that is not taken"],
}  # fmt: skip

_COUNTS: Final = {
    "waiting": 80, "running": 2, "finished": 37, "failed": 1, "cancelled": 0, "pruned": 0, "diverged": 1, "reused": 36,
    "evaluations": 0, "evaluations_failed": 0,
}  # fmt: skip

REQUEST: Final[dict[str, Any]] = {
    "id": 12, "kind": "retry", "sweep": 7, "trial": 41, "cell": None, "actor": "ada@lab",
    "created": "2025-11-20T10:00:00Z", "state": "done", "applied": "2025-11-20T10:00:01Z",
    "outcome": "1 trial waiting again",
}  # fmt: skip

MIRROR: Final[dict[str, Any]] = {"waiting": 12, "error": None}
DELETION: Final[dict[str, Any]] = {
    "id": 13, "kind": "delete", "sweep": 7, "trial": None, "cell": None, "actor": "ada@lab",
    "created": "2025-11-20T10:00:00Z", "state": "waiting", "applied": None, "outcome": None,
}  # fmt: skip

REQUESTS: Final = {"items": [REQUEST], "next_cursor": None}

_ANNOTATION: Final = {"note": "", "tags": ["paper"], "actor": None, "changed": None}

SUMMARY: Final[dict[str, Any]] = {
    "id": 7, "uid": "0b6f2c5e-2f57-4a53-9d0a-3f6f1b0c8a11", "name": "sec-on-digits", "state": "running",
    "created": "2025-11-20T09:00:00Z", "started": "2025-11-20T09:00:02Z", "ended": None,
    "counts": _COUNTS, "total": 120,
    "steps": {
        "unit": "steps", "total": 36000, "done": 21600, "percent": 60,
        "shares": {"finished": 20400, "failed": 600, "running": 1200, "waiting": 13800},
    },
    "eta_seconds": 95.0, "eta_low_seconds": 74.0, "eta_high_seconds": 121.0,
    "tables": ["main"], "figures": ["norms"], "tags": ["paper"],
    "actor": "ada@lab", "project": "main", "priority": 0, "error": None, "notice": None,
    "best": {
        "cell": 2, "labels": {"loss": "triplet", "regularizer": "sec"}, "metric": "R@1", "key": "best/test/recall@1",
        "text": "95.05 ± 1.42", "mean": 0.9505, "std": 0.0142, "n": 3,
    },
    "differences": ["iterations: 600, 300 in #6"],
}  # fmt: skip

SWEEPS: Final = {"items": [SUMMARY], "next_cursor": None}

SWEEP: Final = SUMMARY | {
    "reuse": _REUSE,
    "spec": {"version": 1, "name": "sec-on-digits"},
    "text": "version: 1\nname: sec-on-digits\n",
    "problems": [
        {
            "trial": 41, "labels": {"loss": "triplet", "regularizer": "sec", "regularizer.eta": "1.0", "seed": "2"},
            "state": "failed", "message": "MemoryError: the slot ran out of memory", "log": "/v1/trials/41/logs",
        }
    ],
    "requests": [REQUEST],
    "mlflow_url": "/mlflow/#/experiments/3",
    "annotation": _ANNOTATION,
}  # fmt: skip

GRID: Final = [
    {
        "index": 0, "labels": {"loss": "triplet", "regularizer": "sec"}, "mlflow_url": None,
        "candidates": [
            {
                "labels": {"regularizer.eta": "0.25"}, "selected": True, "score": 0.71,
                "trials": [{"trial": 40, "repeat": 0, "state": "finished", "diverged": False}],
            }
        ],
    }
]  # fmt: skip

CELL: Final[dict[str, Any]] = {
    "sweep": 7, "sweep_name": "sec-on-digits", "index": 0, "labels": {"loss": "triplet", "regularizer": "sec"},
    "status": "complete", "selection_key": "best/validation/map@r", "mlflow_url": None, "mixed": [],
    "annotation": _ANNOTATION,
    "numbers": [
        {
            "table": "main", "metric": "recall@1", "title": "R@1", "text": "70.91 ± 0.40", "mean": 0.70912,
            "std": 0.00401, "n": 3, "published": "SEC-T3", "printed": "60.82", "difference": 0.10092,
            "tolerance": 0.01001, "verdict": "above", "source": None,
        }
    ],
    "candidates": [
        {
            "index": 0, "labels": {"regularizer.eta": "0.25"}, "selected": True, "status": "complete", "score": 0.71,
            "std": 0.004, "n": 3,
            "trials": [
                {
                    "trial": 40, "uid": "7d9a2b3c-6d1e-5a4b-8c7f-1f2e3d4c5b6a", "repeat": 0, "labels": {"seed": "0"},
                    "state": "finished", "diverged": False, "reused": False, "score": 0.712,
                    "training": "2b1c6d3e-7f80-4a91-8b2c-3d4e5f607182", "fingerprint": "9f86d081884c7d65",
                    "dataset": "digits", "data_hash": "sha256:02c53f7b261dceb", "git_commit": "5580518a9d",
                    "versions": {"torch": "2.6.0"}, "device": "cpu (AMD EPYC)", "host": "lab", "seconds": 12.5,
                    "error": None, "reason": None, "url": "/v1/trials/40", "mlflow_url": None, "outdated": [],
                }
            ],
        }
    ],
}  # fmt: skip

_TRIAL_SUMMARY: Final[dict[str, Any]] = {
    "id": 40, "uid": "7d9a2b3c-6d1e-5a4b-8c7f-1f2e3d4c5b6a", "sweep": 7, "cell": 0, "candidate": 0, "repeat": 0,
    "labels": {"loss": "triplet", "regularizer": "sec", "regularizer.eta": "0.25", "seed": "0"},
    "state": "finished", "diverged": False, "reused": False, "step": 300, "total_steps": 300,
    "score": 0.71, "error": None,
}  # fmt: skip

TRIALS: Final = {"items": [_TRIAL_SUMMARY], "next_cursor": "eyJhZnRlciI6NDB9"}

TRIAL: Final = _TRIAL_SUMMARY | {
    "sweep_name": "sec-on-digits",
    "fingerprint": "5b3f8d1c9e7a4b2f6d0c8e1a3f5b7d9c2e4a6f8b0d1c3e5a7f9b2d4c6e8a0f1b",
    "training": "c3a1e5d7-9b2f-4c6d-8e0a-1b3d5f7a9c2e",
    "recipe": {"task": {"name": "retrieval"}, "loss": {"name": "triplet", "margin": 0.2}, "seed": 0},
    "attempts": [
        {
            "number": 1, "uid": "9e8d7c6b-5a4f-4e3d-9c2b-1a0f9e8d7c6b", "state": "finished",
            "slot": "slot-0", "host": "lab",
            "requested": {"cpus": 1.0, "gpus": 0.5, "memory_gb": None, "stall_minutes": 60.0, "retries": 1},
            "started": "2025-11-20T09:00:03Z", "ended": "2025-11-20T09:00:06Z", "reason": None, "resumed_from": None,
        }
    ],
    "metrics": {"best/validation/map@r": 0.71, "best/test/recall@1": 0.93}, "best_step": 270, "seconds": 2.9,
    "provenance": {"device": "cpu", "torch": "2.6.0"}, "outdated": [], "replaced": [],
    "evaluation": None, "evaluated_from": None, "reused_from": None, "reason": None, "collected": None, "trace": None,
    "mlflow_url": "/mlflow/#/experiments/3/runs/0123456789abcdef",
    "annotation": _ANNOTATION,
}  # fmt: skip

CURVES: Final = [{"key": "train/loss", "points": [[30, 0.41], [60, 0.22], [90, None]]}]

CLASSES: Final[dict[str, Any]] = {
    "trial": 40, "trials": [40], "split": "test", "checkpoint": "best",
    "classes": [
        {
            "label": 3, "name": "Crested Auklet", "queries": 44, "recall": 0.5, "precision": 0.55, "f1": 0.5238,
            "mistaken_for": "Least Auklet",
        }
    ],
}  # fmt: skip

LOG: Final = {"trial": 40, "text": "step 30/300  loss 0.41\n", "offset": 0, "next_offset": 23, "complete": False}
