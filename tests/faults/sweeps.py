"""The sweeps that faults disturb, and their tables when nothing disturbs them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.faults.trainings import POISON
from tests.inline_conductor import conduct

STEPS = 24
FORMATS = ("csv", "latex")


def spec(*, steps: int = STEPS, seeds: int = 3, rates: tuple[float, ...] = (0.001,)) -> bytes:
    """A sweep of 2 x `seeds` trainings for each learning rate, always trained anew."""
    document = {
        "version": 1,
        "name": "disturbed",
        "fresh": True,
        "recipe": {**_RECIPE, "iterations": steps},
        "compare": {"regularizer": ["none", "sec"], "optimizer.lr": list(rates)},
        "repeat": {"seed": list(range(seeds))},
        "slot": {"cpus": 1, "gpus": 0},
        "tables": {
            "main": {
                "rows": ["regularizer", "optimizer.lr"], "columns": ["dataset"], "metrics": ["recall@1", "map@r"],
            },
        },
    }  # fmt: skip
    return yaml.safe_dump(document, sort_keys=False).encode()


def poisoned() -> bytes:
    """A sweep in which one cell's process dies in every attempt."""
    return spec(seeds=1, rates=(0.001, POISON))


@cache
def undisturbed(body: bytes, train: str) -> Mapping[str, bytes]:
    """Its table by format, after one process trained everything in order."""
    with TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder), engine="inline", train=train)
        service = Service.open(settings)
        try:
            sweep = service.submissions.submit(body).id
            conduct(settings)
            return {name: service.tables.render(sweep, "main", name).content for name in FORMATS}
        finally:
            service.close()


_RECIPE: dict[str, Any] = {
    "dataset": "digits",
    "backbone": {"name": "mlp", "width": 16},
    "embedding": 16,
    "loss": "triplet",
    "sampler": {"name": "balanced", "classes": 4, "per_class": 8},
    "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
}
