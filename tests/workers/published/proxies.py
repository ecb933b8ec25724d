"""Proxy-Anchor, SVMax with it (table 3), Proxy-ISA and the losses that it compares with; settings in rivals.toml."""

import re
import tomllib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from tests.workers.published.printed import BY_TEST, Recipes, ours, settings, weighted


def proxies(dataset: str, loss: Any, batch: int, epochs: int, decay: tuple[float, int], **changes: Any) -> Any:
    """One training of Proxy-Anchor's code, as Proxy-ISA's is too; `decay` is a factor and after how many epochs."""
    large = dataset in {"sop", "inshop"}
    return {
        "dataset": ours(dataset), "augment": "proxy_anchor", "crop": 224, "embedding": 512, "loss": loss,
        "backbone": {"name": "bn_inception", "pretrained": True, "freeze_bn": not large, "pool": "avg+max"},
        "head": {"name": "fc", "init": "kaiming"}, "sampler": {"name": "shuffle", "batch": batch},
        "optimizer": {"name": "adamw", "lr": 6e-4 if large else 1e-4, "weight_decay": 1e-4}, "loss_rate": 100,
        "undecayed": "none", "schedule": {"name": "step", "every": decay[1], "gamma": decay[0]}, "warmup": 1,
        "clip_value": 10, "epochs": epochs, "evaluate_every": 1, **BY_TEST, **changes,
    }  # fmt: skip


def svmax_proxies(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """SVMax's table 3 and figure 3, and Proxy-Anchor by its README."""
    weights, table = printed["svmax"]["lambda"], printed["svmax"]["table3"]
    decays = {"cub": (0.5, 10), "cars": (0.5, 20), "sop": (0.25, 20), "inshop": (0.25, 20)}
    slower = {"cub": (0.5, 5), "cars": (0.5, 10)}
    for dataset, decay in decays.items():
        yield f"proxy_anchor-{dataset}", proxies(dataset, "proxy_anchor", 180, 60, decay)
    for dataset, (name, batch) in product(("cub", "cars", "sop"), table["b"].items()):
        for eta in sorted({0, *weights["proxy_anchor"], *weights["proxy_anchor_fig3"]}):
            backbone = {"name": name, "pretrained": True, "freeze_bn": dataset != "sop", "pool": "avg+max"}
            changes = {"backbone": backbone, "regularizer": weighted("svmax", eta), "embedding": table["d"]}
            decay = decays[dataset]
            if name == "resnet50" and dataset in slower:  # its README has no ResNet-50 of the other data sets
                changes, decay = {**changes, "warmup": 5}, slower[dataset]
            recipe = proxies(dataset, "proxy_anchor", batch, 60, decay, **changes)
            yield f"svmax-t3-{dataset}-{name}-{eta:g}", recipe


def isa_recipe(printed: Mapping[str, Any], dataset: str, loss: Any, *, fair: bool, pool: str = "avg") -> dict[str, Any]:
    """One training of Proxy-ISA's code with whatever loss; `fair` is the setting without Proxy-Anchor's extras."""
    paper, code = printed["proxy_isa"]["paper_defaults"], printed["proxy_isa"]["code_defaults"]
    gamma, span = map(float, re.findall(r"[\d.]+", printed["proxy_isa"]["code_lr_decay"][dataset]))
    lr = paper["lr"] if dataset in {"cub", "cars"} else paper["lr_sop_inshop"]
    optimizer = {"name": "adam" if fair else "adamw", "lr": lr, "weight_decay": code["weight_decay"]}
    changes = {
        "backbone": {"name": paper["backbone"], "pretrained": True, "freeze_bn": True, "pool": pool},
        "embedding": paper["d"], "crop": paper["crop"], "optimizer": optimizer, "warmup": 0 if fair else 1,
        "seed": code["seed"], "loss_rate": code["proxy_lr_multiplier"], "clip_value": code["clip_grad_value"],
    }  # fmt: skip
    found: dict[str, Any] = proxies(dataset, loss, paper["batch"], code["epochs"], (gamma, int(span)), **changes)
    return found


def isa(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Proxy-ISA's fair setting, its exceptional one (table 4), its penalties (table 3), its other base (figure 11b)."""
    paper, code = printed["proxy_isa"]["paper_defaults"], printed["proxy_isa"]["code_defaults"]
    options = {
        "alpha": paper["alpha"], "delta": paper["delta"], "lam": paper["lambda"], "v": paper["V"], "h": paper["h"],
        "tau": paper["tau"], "memory": code["T"],
        "memory_epoch": 1, "filter_epoch": 2,  # the text's second epoch, and one after; its code has 2 and 3
    }  # fmt: skip

    def recipe(dataset: str, k: float, loss: Mapping[str, Any], **changes: Any) -> Any:
        return isa_recipe(printed, dataset, {"name": "proxy_isa", **options, "k": k, **loss}, **changes)

    for dataset, theirs in printed["proxy_isa"]["code_k"].items():
        fair, k = dataset in {"cub", "cars"}, paper["k"]
        for one in sorted({k, theirs}):
            yield f"isa-{dataset}-{one:g}", recipe(dataset, one, {}, fair=fair)
        yield f"isa-t4-{dataset}", recipe(dataset, k, {}, fair=False, pool="avg+max")
        yield f"anchor-t4-{dataset}", isa_recipe(printed, dataset, "proxy_anchor", fair=False, pool="avg+max")
        for positive, negative in product(("none", "inverse", "nu", "sigma"), ("none", "inverse")):
            penalties = {"positive_penalty": positive, "negative_penalty": negative}
            yield f"isa-t3-{dataset}-{positive}-{negative}", recipe(dataset, k, penalties, fair=fair)
        yield f"isa-f11b-{dataset}", recipe(dataset, k, {"base": "proxy_nca"}, fair=fair)


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
