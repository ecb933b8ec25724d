"""SEC's self-supervised learning: tables 5 and 12, and table 1 of the author response."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.workers.published.printed import Recipes, ours, settings, weighted

LAST = {"validation": "none", "select": {"metric": "top@1", "split": "last"}}
"""Which checkpoint is probed no paper says."""


def simclr(dataset: str, epochs: int, task: Mapping[str, Any], rate: float, **changes: Any) -> dict[str, Any]:
    """One training; what no paper says is SimCLR's for CIFAR, and the decay that of a code with the same probe."""
    return {
        "task": {"name": "self_supervised", "probe_batch": 256, "probe_views": "crops", **task},
        "dataset": dataset, "augment": "simclr", "backbone": {"name": "resnet50", "stem": "cifar"}, "embedding": 128,
        "head": "projection", "loss": {"name": "nt_xent", "temperature": 0.5},
        "sampler": {"name": "shuffle", "batch": 256}, "schedule": "cosine", "eta_schedule": "linear",
        "optimizer": {"name": "sgd", "lr": rate, "momentum": 0.9, "weight_decay": 1e-4},
        "epochs": epochs, "evaluate_every": epochs, **LAST, **changes,
    }  # fmt: skip


def sec_simclr(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """The rows of tables 5 and 12, with the grids of eta from which those of the rows were chosen."""
    grids = {"sec": printed["eta_grids"]["ssl_sec"], "l2": printed["eta_grids"]["ssl_l2reg"]}
    task = {"probe_lr": [5.0], "probe_epochs": 100, "probe_at": [60, 75, 90], "probe_factor": 0.2}
    rate = printed["eta_grids"]["ssl_lr"][0]
    seen = set()
    for row in settings(folder / "sec_t12_ssl_ema.csv"):
        name, dataset, epochs = ours(row["regularizer"]), row["dataset"], int(row["epochs"])
        if name in grids:
            assert float(row["eta"]) in grids[name], row
            etas = grids[name]
        else:
            etas = [float(row["eta"])] if name == "sec_ema" else [0.0]
        for eta in etas:
            rho = {"rho": float(row["rho"])} if name == "sec_ema" else {}
            regularizer = "none" if name == "none" else weighted(name, eta, **rho)
            seen.add((dataset, epochs))
            yield (
                f"sec-t12-{dataset}-{epochs}-{name}-{eta:g}",
                simclr(dataset, epochs, task, rate, regularizer=regularizer),
            )
    assert len(seen) == 4


def response_simclr(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Table 1 of the author response: a linear head, and the best of the probe's rates."""
    rates = printed["eta_grids"]["rebuttal_linear_lr"]
    task = {"probe_lr": rates, "probe_epochs": 50, "probe_at": [], "probe_reports": "best"}
    for row in settings(folder / "rebuttal_t1_simclr.csv"):
        regularizer = "none" if row["regularizer"] == "none" else weighted("sec", float(row["eta"]))
        for rate in (0.1, 0.2, 0.3, 0.4, 0.5):
            changes = {"regularizer": regularizer, "head": "fc"}
            name = f"response-t1-{row['regularizer']}-{rate:g}"
            yield name, simclr(row["dataset"], int(row["epochs"]), task, rate, **changes)
