"""What trainings cost: which take about as long as one another, and what those of a sweep would add up to."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from orchestrator.views import Cost
from workers.contract import CrossValidation, Recipe, canonical_json

FIELDS: Final = (
    "task", "dataset", "augment", "crop", "backbone", "head", "embedding", "sampler", "iterations", "epochs",
    "evaluate_every", "precision", "channels_last", "compile", "validation",
)  # fmt: skip
"""The fields of a recipe that decide how long it trains; losses, regularizers and rates hardly do."""

_HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class Duration:
    """How long one training took, over all its attempts, and where."""

    seconds: float
    device: str  # cpu, cuda, ...
    device_name: str = ""


@dataclass(slots=True)
class Demand:
    """The trainings of one shape that are still to be done."""

    trainings: int = 0
    models: int = 0


def shape(recipe: Recipe) -> str:
    """What a recipe has in common with all that take about as long."""
    return shape_of(recipe.model_dump(mode="json", include={*FIELDS, "select"}))


def shape_of(stored: Mapping[str, Any]) -> str:
    """The same of a recipe as JSON. Which fold is held out does not matter; a second split to evaluate does."""
    found = {name: stored.get(name) for name in FIELDS}
    if isinstance(validation := found["validation"], Mapping):
        found["validation"] = {name: value for name, value in validation.items() if name != "fold"}
    return canonical_json(found | {"beside": (stored.get("select") or {}).get("beside")})


def named(shape: str, field: Literal["dataset", "backbone"]) -> str:
    """The name of a part that a shape holds."""
    return str(json.loads(shape)[field]["name"])


def models(recipe: Recipe) -> int:
    """How many models one training of the recipe trains."""
    return len(recipe.validation.holdouts) if isinstance(recipe.validation, CrossValidation) else 1


def estimate(
    demands: Mapping[str, Demand], measured: Mapping[str, Sequence[Duration]], gpus: float | Literal["auto"]
) -> Cost:
    """What the demanded trainings cost, from what was measured of their shapes, the latest first.

    They count on the kind of device that `gpus` of their slot means; with `auto`, on that of the latest.
    """
    hours: dict[str, float] = defaultdict(float)
    devices: dict[str, None] = {}
    known = 0
    for one, demand in demands.items():
        found = _alike(measured.get(one, ()), gpus)
        if found and demand.trainings:
            known += demand.trainings
            kind = "cpu" if found[0].device == "cpu" else "gpu"
            hours[kind] += demand.trainings * sum(each.seconds for each in found) / len(found) / _HOUR
            devices |= dict.fromkeys(each.device_name or each.device for each in found)
    return Cost(
        trainings=sum(demand.trainings for demand in demands.values()),
        models=sum(demand.models for demand in demands.values()),
        measured=known,
        gpu_hours=hours.get("gpu"),
        cpu_hours=hours.get("cpu"),
        devices=list(devices),
    )


def _alike(found: Sequence[Duration], gpus: float | Literal["auto"]) -> list[Duration]:
    """Those on the kind of device that is meant."""
    if not found:
        return []
    on_cpu = found[0].device == "cpu" if gpus == "auto" else gpus == 0
    return [one for one in found if (one.device == "cpu") == on_cpu]
