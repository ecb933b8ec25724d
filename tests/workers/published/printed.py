"""What the recipes of all papers share: names, selection by the test split, and settings of results tables."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Recipes = Iterator[tuple[str, dict[str, Any]]]
NAMES = {
    "semihard_triplet": "semihard", "batch_hard_triplet": "batch_hard", "cub": "cub200", "cars": "cars196",
    "l2_reg": "l2",
}  # fmt: skip
"""What the published files call a part, and what we do."""
BY_TEST = {"validation": "none", "select": {"metric": "recall@1", "split": "test"}}  # as all these papers do


def ours(name: str) -> str:
    """Our name for a part."""
    return NAMES.get(name, name)


def weighted(name: str, eta: float, **options: Any) -> dict[str, Any]:
    """A regularizer with its weight."""
    return {"name": name, "eta": eta, **options}


def settings(path: Path) -> list[dict[str, str]]:
    """The distinct settings of a results table: data set, loss, regularizer, and hyper-parameters by name."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            key = tuple(row[name] for name in ("dataset", "loss", "regularizer", "hyperparameters"))
            options = dict(pair.split("=", 1) for pair in key[3].split(";") if pair)
            found[key] = {**dict(zip(("dataset", "loss", "regularizer"), key, strict=False)), **options}
    return list(found.values())
