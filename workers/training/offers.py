"""What the trainer offers a task: the parts of its recipe, each from a seed of its own, and what all tasks get."""

from pathlib import Path
from typing import Any

import torch

from workers import registry
from workers.catalog import load
from workers.catalog.holdings import former
from workers.contract import Place, Recipe
from workers.data.batches import Batches
from workers.evaluation.measures import Measures
from workers.figures.traces import AskedFigures
from workers.tasks import Task
from workers.tasks._network import embedder
from workers.training import determinism
from workers.training.length import Length


class Offers:
    """The parts of a recipe, built where its task asks for them."""

    def __init__(
        self, recipe: Recipe, place: Place, device: torch.device, batches: Batches | None, length: Length
    ) -> None:
        self._recipe, self._place, self._device = recipe, place, device
        self._batches, self._length = batches, length

    def task(self, measures: Measures) -> Task:
        """The task of the recipe; raises ValueError where it is of the form that tasks had in format 1."""
        recipe, parts = self._recipe, self._place.parts
        asks = _asks(recipe.task.name, parts)
        offers: dict[str, Any] = {
            "batches": self._batches, "measures": measures, "device": self._device,
            "figures": AskedFigures(recipe.figures, self._length.total, self._length.unit, recipe.distance),
            "seed": determinism.derived(recipe.seed, f"task/{recipe.task.name}"),
        }  # fmt: skip
        if "model" in asks:
            offers["model"] = self._model()
        for kind in ("loss", "regularizer"):
            if kind in asks:
                offers[kind] = self._made(kind) if kind in recipe.kinds else None
        if "eta" in asks:
            offers["eta"] = self._eta(offers.get("regularizer"))
        determinism.seed_everything(offers["seed"])  # for modules of the task's own
        made: Task = registry.build("task", recipe.task, parts, **offers)
        return made

    def _model(self) -> Any:
        if "backbone" not in self._recipe.kinds:
            return None
        backbone = self._made("backbone")
        return embedder(backbone, self._made("head", features=backbone.features), self._recipe)

    def _eta(self, regularizer: object) -> Any:
        """The weight of the regularizer by iteration; none where there is no regularizer."""
        eta, span = getattr(regularizer, "eta", None), self._length
        if eta is None:
            return None
        offers = {"eta": float(eta), "total": span.total, "epoch": span.epoch, "unit": span.unit}
        return registry.build("eta_schedule", self._recipe.eta_schedule, self._place.parts, **offers)

    def _made(self, kind: str, **more: Any) -> Any:
        """A part with weights or buffers; it is initialized from a seed of its own, whatever the others are."""
        determinism.seed_everything(determinism.derived(self._recipe.seed, kind))
        offers = {**self._of_images(), "root": self._place.data_root, "scratch": self._place.scratch, **more}
        return registry.build(kind, self._recipe.part(kind), self._place.parts, **offers).to(self._device)

    def _of_images(self) -> dict[str, Any]:
        if self._batches is None:
            return {"dim": self._recipe.embedding}
        train = self._batches.splits.train
        return {
            "channels": train.channels, "side": self._batches.augment.side, "classes": train.classes,
            "images": len(train), "dim": self._recipe.embedding, "batch": self._batches.batch,
            "epoch": self._length.epoch, "network": self._batches.network,
        }  # fmt: skip


def _asks(name: str, parts: Path | None) -> list[str]:
    """What the task `name` asks for; raises ValueError where it has not the form of a task."""
    entry = load(parts).get("task", name)
    if entry is not None and (message := former(entry)):
        raise ValueError(message)
    return entry.asks if entry else []
