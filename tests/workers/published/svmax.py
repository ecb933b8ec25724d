"""Singular value maximization: its tables 1, 2 and 4, and its ablations."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from tests.workers.published.printed import BY_TEST, Recipes, ours, settings, weighted

LOSSES = ("contrastive", "npair", "batch_hard_triplet", "angular")


def svmax_recipe(printed: Mapping[str, Any], values: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """One training of SVMax; `values` has the data set, the loss, the learning rate and the regularizer."""
    kind, dataset, lr = values["loss"], values["dataset"], float(values["lr"])
    margins, batch = printed["svmax"]["margins"], printed["svmax"]["batch"]
    losses = {
        # The text's pairs and equation 6; its code has half as many pairs, squared (C15).
        "contrastive": {"name": "contrastive", "margin": margins["contrastive"], "pairs": "paper", "squared": False},
        "batch_hard_triplet": {"name": "batch_hard", "margin": margins["triplet"]},
        "angular": {"name": "angular", "alpha": margins["angular_degrees"], "pairs": "paper"},
        "npair": {"name": "npair", "pairs": "paper"},  # appendix A.1: b - 2 negatives
        "npair_unnormalized": {"name": "npair", "unit": False, "pairs": "paper"},
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


def lines(printed: Mapping[str, Any], losses: Iterable[str], *, both: bool = True) -> Iterator[dict[str, Any]]:
    """Loss, regularizer and rate of each training that a figure or table shows of one data set and one network.

    `both` lambdas of triplets stand in tables 1 and 2; captions of figures have 0.1 alone.
    """
    for loss, lr in product(losses, printed["svmax"]["lr"]):
        weights = printed["svmax"]["lambda"][loss]
        several = weights if isinstance(weights, list) else [weights]
        found = [("none", 0), ("spread_out", 1)]
        found += [("svmax", weight) for weight in (several if both else several[:1])]
        for name, weight in found:
            yield {"loss": loss, "lr": lr, "regularizer": name, "lambda": weight}


def named(values: Mapping[str, Any]) -> str:
    return "{dataset}-{loss}-{lr:g}-{regularizer}-{lambda:g}".format(**values)


def svmax(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Tables 1 and 2, and the same of Cars196, which only figures show."""
    for dataset, one in product(printed["svmax"]["iterations"], lines(printed, LOSSES)):
        values = {"dataset": dataset, **one}
        yield f"svmax-t1-{named(values)}", svmax_recipe(printed, values)


def svmax_ablations(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Other backbones, batches and widths than those of the tables: figures 6 and 9 to 15."""
    two = ("contrastive", "batch_hard_triplet")
    wide = [("b288", 288, 256), ("b288", 288, 64), ("b72", 72, 64)]  # of b {288, 72} and d {256, 64}, where b >= d
    for backbone, sizes, shown in [
        ("mobilenet_v2", wide, {"cub": two, "cars": two, "sop": LOSSES}),
        ("googlenet", [("b72", 72, 128)], {"cub": LOSSES, "sop": LOSSES}),
        ("resnet50", [("b144", 144, 128)], {"cub": LOSSES, "cars": LOSSES}),
    ]:  # fmt: skip
        for (label, b, d), (dataset, losses) in product(sizes, shown.items()):  # type: ignore[attr-defined]
            for one in lines(printed, losses, both=backbone != "mobilenet_v2"):
                values = {"dataset": dataset, **one}
                recipe = svmax_recipe(printed, values, backbone={"name": backbone, "pretrained": True}, embedding=d)
                per_class = recipe["sampler"]["per_class"]
                recipe["sampler"] = {"name": "balanced", "classes": b // per_class, "per_class": per_class}
                yield f"svmax-{backbone}-{label}-d{d}-{named(values)}", recipe


def svmax_raw(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Table 4: embeddings that are not normalized."""
    for values in settings(folder / "svmax_t4_npair_unnormalized.csv"):
        # Section 3: "via the Euclidean distance in feature space", which is raw here.
        raw = {"head": {"name": "fc", "init": "orthogonal"}, "distance": "euclidean"}
        recipe = svmax_recipe(printed, values, **raw)
        yield f"svmax-t4-{values['dataset']}-{values['regularizer']}-{values['lr']}", recipe
