"""What is fused: recipes of the bundled sweeps on digits and Omniglot, and the sessions of their seeds."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
import yaml

from workers import catalog
from workers.contract import Place, Recipe
from workers.training.session import Session

SWEEPS: Final = Path(__file__).parents[2] / "sweeps"
DATA: Final = Path(os.environ.get("METRICSWEEP_DATA") or Path(__file__).parents[3] / "shared" / "data")
ENDLESS: Final = 10**7


@dataclass(frozen=True)
class Candidate:
    """Several seeds of the recipe of `sweeps/<dataset>.yaml`, with a loss and a regularizer of it."""

    dataset: str
    loss: str
    regularizer: str
    seeds: int
    device: str
    folder: Path
    """Where trainings keep what they write."""
    data: Path = DATA

    def recipe(self, seed: int, iterations: int) -> Recipe:
        """That of a seed, evaluated at its end only, where its last weights are kept."""
        document: Mapping[str, Any] = yaml.safe_load((SWEEPS / f"{self.dataset}.yaml").read_text(encoding="utf-8"))
        changed = {
            "loss": self.loss, "regularizer": self.regularizer, "seed": seed, "iterations": iterations,
            "evaluate_every": iterations, "select": {"split": "last", "metric": document["select"]["metric"]},
        }  # fmt: skip
        return catalog.complete(Recipe.model_validate(document["recipe"] | changed), catalog.load(None))

    def place(self, name: str) -> Place:
        """Where the training called `name` runs."""
        storage = self.folder / name
        storage.mkdir(parents=True, exist_ok=True)
        return Place(self.data, self.folder, storage, self.device, checkpoint_seconds=1e9)

    def sessions(self, iterations: int) -> list[Session]:
        """Those of all seeds."""
        device, place = torch.device(self.device), self.place("sessions")
        return [Session(self.recipe(seed, iterations), place, device) for seed in range(self.seeds)]
