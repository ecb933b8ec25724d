"""Singular value maximization: its tables 1, 2 and 4, and its ablations."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from tests.workers.published.printed import BY_TEST, Recipes, ours, settings, weighted


def svmax_recipe(printed: Mapping[str, Any], values: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """One training of SVMax; `values` has the data set, the loss, the learning rate and the regularizer."""
    kind, dataset, lr = values["loss"], values["dataset"], float(values["lr"])
    margins, batch = printed["svmax"]["margins"], printed["svmax"]["batch"]
    losses = {
        "contrastive": {"name": "contrastive", "margin": margins["contrastive"]},
        "batch_hard_triplet": {"name": "batch_hard", "margin": margins["triplet"]},
        "angular": {"name": "angular", "alpha": margins["angular_degrees"]},
        "npair": "npair",
        "npair_unnormalized": {"name": "npair", "unit": False},
    }
    shape = batch[{"batch_hard_triplet": "triplet", "npair_unnormalized": "npair"}.get(kind, kind)]
    classes, per_class = map(int, shape.split("x"))
    return {
        "dataset": ours(dataset), "augment": "crop_flip", "crop": 224, "embedding": batch["d"], "loss": losses[kind],
        "backbone": {"name": "googlenet", "pretrained": True}, "head": {"name": "unit_fc", "init": "orthogonal"},
        "regularizer": svmax_regularizer(printed, values),
        "sampler": {"name": "balanced", "classes": classes, "per_class": per_class},
        "optimizer": {"name": "sgd", "lr": lr, "momentum": 0.9, "weight_decay": 0},
        # The printed 1e-7 is a learning rate, our floor a factor on one (C17: the paper's decay, not its code's).
        "schedule": {"name": "polynomial", "hold": 0.5, "floor": round(1e-7 / lr, 12)},
        "iterations": printed["svmax"]["iterations"][dataset], **BY_TEST, **changes,
    }  # fmt: skip


def svmax_regularizer(printed: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    """The regularizer of one row of SVMax's tables 1, 2 and 4."""
    raw = {"unit": False} if values["loss"] == "npair_unnormalized" else {}
    match values["regularizer"]:
        case "spread_out":
            pairs = "negatives" if values["loss"] == "batch_hard_triplet" else "random"
            return weighted("spread_out", printed["svmax"]["spread_out_alpha"], pairs=pairs, **raw)
        case "svmax":
            return weighted("svmax", float(values["lambda"]), **raw)
        case "svmax_unbounded":
            return weighted("svmax_unbounded", float(values["lambda"]))
    return "none"


def svmax(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Tables 1 and 2, and the same of Cars196, which only figures show."""
    losses = ("contrastive", "npair", "batch_hard_triplet", "angular")
    for dataset, loss, lr in product(printed["svmax"]["iterations"], losses, printed["svmax"]["lr"]):
        weights = printed["svmax"]["lambda"][loss]
        found = [("none", 0), ("spread_out", 1)]
        found += [("svmax", weight) for weight in (weights if isinstance(weights, list) else [weights])]
        for name, weight in found:
            values = {"dataset": dataset, "loss": loss, "lr": lr, "regularizer": name, "lambda": weight}
            yield f"svmax-t1-{dataset}-{loss}-{lr:g}-{name}-{weight:g}", svmax_recipe(printed, values)


def svmax_ablations(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Other backbones, batches and widths than those of the tables, of batch-hard triplets."""
    wide = {"b": 144, "d": 128}
    for name, sizes in [
        *(("mobilenet_v2", {**wide, **size}) for size in ({"b": 288}, {"b": 72}, {"d": 256}, {"d": 64})),
        ("googlenet", {"b": 72, "d": 128}), ("resnet50", wide),
    ]:  # fmt: skip
        for dataset, regularizer in product(("cub", "cars"), ("none", "spread_out", "svmax")):
            values = {"loss": "batch_hard_triplet", "lr": 0.01, "regularizer": regularizer, "lambda": 0.1}
            sampler = {"name": "balanced", "classes": sizes["b"] // 6, "per_class": 6}
            changes = {"backbone": {"name": name, "pretrained": True}, "embedding": sizes["d"], "sampler": sampler}
            recipe = svmax_recipe(printed, {**values, "dataset": dataset}, **changes)
            yield f"svmax-{name}-b{sizes['b']}-d{sizes['d']}-{dataset}-{regularizer}", recipe


def svmax_raw(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Table 4: embeddings that are not normalized."""
    for values in settings(folder / "svmax_t4_npair_unnormalized.csv"):
        recipe = svmax_recipe(printed, values, head={"name": "fc", "init": "orthogonal"})
        yield f"svmax-t4-{values['dataset']}-{values['regularizer']}-{values['lr']}", recipe
