"""What trainings cost: which take about as long a step as one another, and what those of a sweep would add up to."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from statistics import median, quantiles
from typing import Any, Final, Literal

from orchestrator.cost.view import Cost, DeviceHours
from orchestrator.cost.workload import Workload
from workers.contract import Recipe, canonical_json

FIELDS: Final = (
    "task", "dataset", "augment", "crop", "backbone", "head", "embedding", "sampler", "evaluate_every", "precision",
    "channels_last", "compile", "validation", "metrics", "distance",
)  # fmt: skip
"""The fields of a recipe that decide how long a step takes, its share of the evaluations included; losses,
regularizers and rates hardly do, and the length is counted."""

NEEDED: Final = 3
"""Trainings of one shape on one device after which hours are told."""

_HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class Duration:
    """How long one training took, over all its attempts, and where."""

    seconds: float
    units: float
    """The iterations or epochs that it trained."""
    device: str  # cpu, cuda, ...
    device_name: str = ""


@dataclass(slots=True)
class Demand:
    """The trainings of one shape that are still to be done."""

    trainings: int = 0
    models: int = 0
    units: int = 0
    """Their iterations, or epochs."""
    work: Workload = field(default_factory=Workload)


@dataclass(frozen=True, slots=True)
class Slots:
    """How many slots there are at once."""

    number: int
    on_gpu: bool


def shape(recipe: Recipe) -> str:
    """What a recipe has in common with all whose steps take about as long."""
    return shape_of(recipe.model_dump(mode="json", include={*FIELDS, "select", "epochs"}))


def shape_of(stored: Mapping[str, Any]) -> str:
    """The same of a recipe as JSON. Which fold is held out does not matter; which splits are evaluated does."""
    found = {name: stored.get(name) for name in FIELDS}
    if isinstance(validation := found["validation"], Mapping):
        found["validation"] = {name: value for name, value in validation.items() if name != "fold"}
    select = stored.get("select") or {}
    unit = "iterations" if stored.get("epochs") is None else "epochs"
    return canonical_json(found | {"beside": select.get("beside"), "split": select.get("split"), "unit": unit})


def shape_key(shape: str) -> str:
    """What a database knows a shape by."""
    return sha256(shape.encode()).hexdigest()[:32]


def estimate(
    demands: Mapping[str, Demand],
    measured: Mapping[str, Sequence[Duration]],
    gpus: float | Literal["auto"],
    slots: Slots | None = None,
) -> Cost:
    """What the demanded trainings cost, from what was measured of their shapes.

    Told for each device by its name, of those of the kind that `gpus` of their slot means; with `auto`, of either.
    """
    wanted = {key: demand for key, demand in demands.items() if demand.trainings}
    by_device: dict[tuple[str, str], list[tuple[Demand, list[float]]]] = defaultdict(list)
    known: set[str] = set()
    most = 0
    for key, demand in wanted.items():
        for device, rates in _rates(measured.get(key, ()), gpus).items():
            if len(rates) >= NEEDED:
                by_device[device].append((demand, rates))
                known.add(key)
        if key not in known:
            most = max([most, *map(len, _rates(measured.get(key, ()), gpus).values())])
    work = sum((demand.work for demand in wanted.values()), Workload())
    return Cost(
        trainings=sum(demand.trainings for demand in wanted.values()),
        models=sum(demand.models for demand in wanted.values()),
        steps=work.steps,
        images=work.trained,
        evaluated=work.evaluated,
        clusterings=work.clusterings,
        products=work.products,
        measured=sum(wanted[key].trainings for key in known),
        unmeasured_shapes=len(wanted) - len(known),
        nearest=most,
        needed=NEEDED,
        hours=[_hours(device, found, slots) for device, found in by_device.items()],
    )


def _rates(found: Sequence[Duration], gpus: float | Literal["auto"]) -> dict[tuple[str, str], list[float]]:
    """The seconds of one iteration or epoch by the kind and the name of the device."""
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in found:
        on_cpu = one.device == "cpu"
        if one.units > 0 and (gpus == "auto" or on_cpu == (gpus == 0)):
            rates["cpu" if on_cpu else "gpu", one.device_name or one.device].append(one.seconds / one.units)
    return rates


def _hours(device: tuple[str, str], found: Sequence[tuple[Demand, list[float]]], slots: Slots | None) -> DeviceHours:
    kind, name = device
    low, middle, high = (
        sum(demand.units * pick(rates) for demand, rates in found) / _HOUR for pick in (_lower, median, _upper)
    )
    trainings = sum(demand.trainings for demand, _ in found)
    at_once = min(slots.number, trainings) if slots and slots.number and slots.on_gpu == (kind == "gpu") else None
    return DeviceHours(
        kind="gpu" if kind == "gpu" else "cpu",
        device=name,
        trainings=trainings,
        hours=middle,
        low=low,
        high=high,
        slots=at_once,
        wall_hours=middle / at_once if at_once else None,
    )


def _lower(rates: Sequence[float]) -> float:
    return quantiles(rates, n=4, method="inclusive")[0]


def _upper(rates: Sequence[float]) -> float:
    return quantiles(rates, n=4, method="inclusive")[2]
