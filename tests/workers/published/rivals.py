"""The losses that Proxy-ISA compares with: a recipe for each cell of its tables 1 and 2; settings in rivals.toml."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.workers.published.printed import Recipes, ours, settings
from tests.workers.published.proxies import isa_recipe

PAIRS = {"margin", "multi_similarity", "multi_similarity+miner"}
"""The losses of MLRC that take pairs of a class; the others are its classification losses."""


def rivals(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Every row of both tables but Proxy-ISA's own."""
    known = tomllib.loads(Path(__file__).with_name("rivals.toml").read_text())
    for values in settings(folder / "isa_t1_sota.csv"):
        dataset, loss = values["dataset"], values["loss"]
        if loss != "proxy_isa":
            yield f"isa-t1-{dataset}-{loss}", sota(printed, known["authors"].get(loss, {}), dataset, loss)
    for values in settings(folder / "isa_t2_mlrc.csv"):
        dataset, loss = values["dataset"], values["loss"]
        if loss == "proxy_anchor":  # the paper's own training again
            yield f"isa-t2-{dataset}-{loss}", sota(printed, {}, dataset, loss)
        elif loss != "proxy_isa":
            yield f"isa-t2-{dataset}-{loss}", mlrc(known["mlrc"], dataset, loss)


def sota(printed: Mapping[str, Any], known: Mapping[str, Any], dataset: str, loss: str) -> dict[str, Any]:
    """A row of table 1: Proxy-ISA's fair setting, and what the authors of the loss set."""
    part = {"name": loss, **known.get("loss", {}), **(known.get("sop", {}) if dataset == "sop" else {})}
    fair: dict[str, Any] = isa_recipe(printed, dataset, part, fair=dataset in {"cub", "cars"})
    if "epochs" not in known:
        return fair
    rate = known.get("proxies_lr_sop", known["proxies_lr"]) if dataset == "sop" else known["proxies_lr"]
    changes = {
        "optimizer": {"name": "adam", "lr": known["lr"], "eps": known["eps"], "weight_decay": 1e-4},
        "loss_rate": round(rate / known["lr"], 9), "sampler": {"name": "shuffle", "batch": known["batch"]},
        "clip_value": None,
        "schedule": {"name": "step", "at": known["at"], "gamma": known["gamma"]}, "warmup": 0,
    }  # fmt: skip
    return {**fair, **changes, "epochs": known["epochs"]}


def mlrc(known: Mapping[str, Any], dataset: str, loss: str) -> dict[str, Any]:
    """A row of table 2: four models by cross-validation, judged apart and together."""
    owned = loss in {"margin", "proxy_nca", "cosface", "arcface", "soft_triple"}
    return {
        "dataset": ours(dataset), "augment": "crop_flip", "crop": known["crop"], "embedding": known["embedding"],
        "backbone": known["backbone"], "head": "fc", "loss": known["losses"][loss], "undecayed": "none",
        "loss_rate": known["proxies_lr"] / known["optimizer"]["lr"] if owned else 1,
        "sampler": known["pairs" if loss in PAIRS else "classification"], "optimizer": known["optimizer"],
        "schedule": {"name": "constant"}, "iterations": known["iterations"],
        "evaluate_every": known["evaluate_every"], "patience": known["patience"],
        "validation": {"name": "cross_validation", "folds": known["folds"]},
        "select": {"metric": "map@r", "split": "validation"},
    }  # fmt: skip
