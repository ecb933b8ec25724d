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
    return _posted(
        {
            "name": "disturbed",
            "fresh": True,
            "recipe": {**_RECIPE, "iterations": steps},
            "compare": {"regularizer": ["none", "sec"], "optimizer.lr": list(rates)},
            "repeat": {"seed": list(range(seeds))},
        }
    )


def poisoned() -> bytes:
    """A sweep in which one cell's process dies in every attempt."""
    return spec(seeds=1, rates=(0.001, POISON))


def on_digits(iterations: int) -> bytes:
    """A sweep that really trains: one cell, two seeds."""
    return _posted(
        {
            "name": "disturbed-digits",
            "fresh": True,
            "recipe": {**_RECIPE, "iterations": iterations},
            "compare": {"regularizer": ["sec"]},
            "repeat": {"seed": [0, 1]},
        }
    )


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


def _posted(document: dict[str, Any]) -> bytes:
    shape = {"rows": list(document["compare"]), "columns": ["dataset"], "metrics": ["recall@1", "map@r"]}
    more = {"slot": {"cpus": 1, "gpus": 0}, "tables": {"main": shape}}
    return yaml.safe_dump({"version": 1, **document, **more}, sort_keys=False).encode()
