"""Spherical embedding constraint: deep metric learning, appendix, self-supervision and author response."""

import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from tests.workers.published.printed import BY_TEST, Recipes, ours, settings, weighted

SEC_BATCH = {
    "triplet": (40, 3), "semihard": (40, 3), "normalized_npair": (60, 2), "multi_similarity": (24, 5),
    "tuplet_margin": (32, 4),
}  # fmt: skip
"""Classes and images of each (SEC app. B; author response, table 4)."""
EQUATION_3 = {"name": "normalized_npair", "pairs": "paper"}
"""What SEC calls normalized N-pair loss (author response, R5 to reviewer 3)."""
SEC_MEAN = [104, 117, 123]  # SEC's code; the other papers' third is 128
EVALUATED = {"cub": 100, "cars": 100, "inshop": 200, "sop": 500}  # SEC's code, in iterations
DECAY = {"cub": 2.5e-3, "cars": 2.5e-3, "sop": 1e-5, "inshop": 1e-5}  # C6


def sec_recipe(dataset: str, kind: str, rates: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """One training of SEC; `rates` is a row of table 6, whose first rate is the head's (C1)."""
    classes, per_class = SEC_BATCH[ours(kind)]
    regularizer = changes.get("regularizer", "none")
    constrained = isinstance(regularizer, dict) and regularizer["name"] in {"sec", "sec_ema"}
    optimizer = {"name": "adam", "lr": rates["lr_head"], "weight_decay": DECAY[dataset]}
    return {
        "dataset": ours(dataset), "augment": "crop_flip", "crop": 227, "embedding": 512,
        "loss": EQUATION_3 if ours(kind) == "normalized_npair" else ours(kind),
        "backbone": {"name": "bn_inception", "pretrained": True, "freeze_bn": True, "mean": SEC_MEAN},
        # Only multi-similarity without SEC has no batch norm before the linear layer.
        "head": "fc" if kind == "multi_similarity" and not constrained else "bn_fc",
        "sampler": {"name": "balanced", "classes": classes, "per_class": per_class},
        "optimizer": optimizer, "backbone_rate": rates["lr_backbone"] / rates["lr_head"],
        "schedule": {"name": "step", "at": rates["at"], "gamma": rates["decay"]},
        "iterations": rates["iters"], "evaluate_every": EVALUATED[dataset], **BY_TEST, **changes,
    }  # fmt: skip


def rates_of(text: str, iters: int) -> dict[str, Any]:
    """Rates printed as `1e-5/5e-6/0.5@4k, 6k`."""
    head, backbone, decay, at = re.split("[/@]", text)
    steps = [1000 * int(step) for step in re.findall(r"(\d+)k", at)]
    return {"lr_head": float(head), "lr_backbone": float(backbone), "decay": float(decay), "at": steps, "iters": iters}


def sec(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Tables 6, 7 and 10, with the grids of eta from which table 7 was chosen."""
    grids = {"sec": printed["eta_grids"]["dml_sec"], "l2": printed["eta_grids"]["dml_l2reg"]}
    for row in printed["sec_table6"]:
        for loss in row["losses"]:
            start = f"sec-t6-{row['dataset']}-{loss}"
            yield start, sec_recipe(row["dataset"], loss, row)
            for name, eta in ((name, eta) for name, grid in grids.items() for eta in grid):
                yield f"{start}-{name}-{eta:g}", sec_recipe(row["dataset"], loss, row, regularizer=weighted(name, eta))
            chosen = dict(zip(grids, printed["sec_table7_eta"][row["dataset"]][loss], strict=True))
            for name, eta in chosen.items():
                assert eta in grids[name], (row, name)  # each eta of table 7 is in its grid, and so is here
            ema = weighted("sec_ema", chosen["sec"], rho=0.01)
            yield f"sec-t10-{row['dataset']}-{loss}-sec_ema", sec_recipe(row["dataset"], loss, row, regularizer=ema)


def sec_ablations(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Tables 2, 8 and 9, all of triplets on Cars196; the footnote of table 6 (C3); and the README's baselines (C4)."""
    row = next(row for row in printed["sec_table6"] if row["dataset"] == "cars" and "triplet" in row["losses"])
    grids = printed["eta_grids"]
    found = [("t2", weighted("sec", eta)) for eta in grids["table2_eta"]]
    found += [("t8", weighted("l2", eta)) for eta in grids["table8_eta"]]
    found += [("t9", weighted("sec_ema", 0.5, rho=rho)) for rho in grids["table9_rho"]]
    for table, regularizer in found:
        value = regularizer.get("rho", regularizer["eta"])
        name = f"sec-{table}-{regularizer['name']}-{value:g}"
        yield name, sec_recipe("cars", "triplet", row, regularizer=regularizer)
    yield "sec-t6-footnote", sec_recipe("cars", "normalized_npair", rates_of("2e-5/2e-5/0.5@4k, 6k", 8000))
    for dataset, text in {"cub": "1e-5/.5e-5/.1@3k, 6k", "cars": "2e-5/2e-5/.1@2k"}.items():
        yield f"sec-readme-{dataset}", sec_recipe(dataset, "multi_similarity", rates_of(text, 8000))


def sec_response(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """The author response: tables 3 (rates), 2 (weights of L2 on Cars) and 5 (normalizing heads on Cars)."""
    for row in printed["rebuttal_table3"]:
        for dataset, loss in product(row["dataset"].split("+"), list(SEC_BATCH)[:4]):
            text = next(row[name] for name in row if ours(name) == loss)
            yield f"response-t3-{dataset}-{loss}", sec_recipe(dataset, loss, rates_of(text, row["iters"]))
    rates = rates_of("1e-5/1e-5/0.5@4k, 6k", 8000)
    for values in settings(folder / "rebuttal_t2_norm_regularizers.csv"):
        name, eta = ours(values["regularizer"]), float(values["eta"])
        regularizer = "none" if name == "none" else weighted(name, eta)
        yield f"response-t2-{name}-{eta:g}", sec_recipe("cars", "semihard", rates, regularizer=regularizer)
    heads = {
        "plain": "bn_fc", "bn": {"name": "fc_bn", "first_bn": True}, "wn": {"name": "weight_norm_fc", "first_bn": True},
    }  # fmt: skip
    for values in settings(folder / "rebuttal_t5_bn_wn.csv"):
        name, head = values["regularizer"], values["head"]
        regularizer = "none" if name == "none" else weighted(name, 0.5)
        changes = {"regularizer": regularizer, "head": heads[head]}
        yield f"response-t5-{head}-{name}", sec_recipe("cars", "semihard", rates, **changes)


def tuplet_margin(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Table 4 of the author response, which prints no eta: those of SEC's grid."""
    for values in settings(folder / "rebuttal_t4_tml.csv"):
        dataset, name = values["dataset"], values["regularizer"]
        assert int(values["bs"]) == 32 * int(values["instances"])
        rates = rates_of(values["lr"], 8000 if dataset in {"cub", "cars"} else 12000)
        options = {"margin": "beta", "intra": "lambda", "epsilon": "epsilon"}
        loss = {"name": "tuplet_margin", **{key: float(values[theirs]) for key, theirs in options.items()}}
        for eta in printed["eta_grids"]["dml_sec"] if name == "sec" else [0]:
            changes = {"loss": loss, "regularizer": weighted("sec", eta) if eta else "none"}
            yield f"response-t4-{dataset}-{name}-{eta:g}", sec_recipe(dataset, "tuplet_margin", rates, **changes)


TESTED = ["lfw", "agedb30", "cfp_fp", "megaface"]
MARGINS: dict[str, dict[str, Any]] = {
    "softmax": {}, "sphereface": {"margin": 3, "scale": 64.0}, "cosface": {"margin": 0.35, "scale": 64.0},
    "arcface": {"margin": 0.45, "scale": 64.0},
}  # fmt: skip
"""Section 4.1; radians."""
SCHEDULES = {"none": "constant", "l2": "face_warmup", "sec": "face_warmup", "sec_ema": "min_ramp"}
"""Of eta: appendix B.2 and equation 32."""


def faces(printed: Mapping[str, Any], folder: Path) -> Recipes:
    """Tables 4 and 11, with the grids from which table 11's eta were chosen; what is not stated is InsightFace's."""
    grids = {"sec": printed["eta_grids"]["face_sec"], "l2": printed["eta_grids"]["face_l2reg"]}
    found: dict[str, dict[str, Any]] = {}
    for values in settings(folder / "sec_t11_face_ema.csv"):
        loss, name = values["loss"], ours(values["regularizer"])
        assert name not in grids or float(values["eta"]) in grids[name], values
        rho = {"rho": float(values["rho"])} if name == "sec_ema" else {}
        for eta in grids.get(name, [float(values.get("eta", 0))]):
            regularizer = "none" if name == "none" else weighted(name, eta, **rho)
            found[f"sec-t11-{loss}-{name}-{eta:g}"] = {
                "task": {"name": "verification", "flip": True}, "dataset": {"name": "casia_webface", "tests": TESTED},
                "augment": "flip", "backbone": "se_resnet50_ir", "embedding": 512,
                "head": {"name": "fc_bn", "gain": False, "init": "kaiming"}, "loss": {"name": loss, **MARGINS[loss]},
                "regularizer": regularizer, "eta_schedule": SCHEDULES[name],
                "sampler": {"name": "shuffle", "batch": 256}, "epochs": 16,
                "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4},
                "schedule": {"name": "step", "at": [10, 14], "gamma": 0.1}, "validation": "none",
                "select": {"metric": "accuracy", "split": "test"},
            }  # fmt: skip
    yield from found.items()


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
