"""What a sweep will cost: steps and images counted from recipes, hours from measured trainings."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from heapq import heapify, heapreplace
from statistics import quantiles, stdev
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from workers.catalog import NEEDS, STARTS, Catalog, clustering_of, metric_entry
from workers.contract import CrossValidation, NoValidation, Recipe, canonical_json


class DeviceHours(BaseModel):
    """The hours that trainings would take on one device, from the median seconds per step measured on it."""

    kind: Literal["cpu", "gpu"]
    device: str
    trainings: int
    """The trainings that the hours are of: those whose shape ran often enough on this device."""
    hours: float
    """If they train one after the other."""
    low: float
    """By the lower quartile of the seconds per step."""
    high: float
    """By the upper quartile."""
    slots: int | None = None
    """How many of them the present nodes can train at once; `None` if unknown."""
    wall_hours: float | None = None
    """The hours, shared between these slots."""


class Cost(BaseModel):
    """The remaining work of a sweep, and an estimate of its hours from measured trainings."""

    trainings: int
    """Different recipes without a result."""
    models: int
    """The models of these trainings: one each, or one per fold under cross-validation."""
    steps: int | None = None
    """Optimizer steps; `None` if they are unknown until the data is read."""
    images: int | None = None
    """Images through the network, forward and backward: steps times the batch size."""
    evaluated: int | None = None
    """Further images through the network by evaluations, at most."""
    clusterings: int = 0
    """Expensive clusterings by the protocol of SEC's code (`nmi_sec`, `f1_sec`), at the end of a training."""
    products: int = 0
    """The multiplications of one iteration over all starts; a start needs tens of iterations."""
    at_most: list[str] = Field(default_factory=list)
    """Reasons why the work may turn out to be less."""
    measured: int = 0
    """Trainings whose hours are known."""
    unmeasured_shapes: int = 0
    """The number of shapes of the other trainings; steps of one shape take about equally long."""
    nearest: int = 0
    """The largest number of measured trainings among these shapes, on one device."""
    needed: int = 3
    """The number of measured trainings from which hours are estimated."""
    hours: list[DeviceHours] = Field(default_factory=list)
    """By device; devices that measured the same trainings are alternatives."""


def cost_in_words(cost: Cost) -> Iterator[str]:
    """The remaining work and hours of a sweep in words: a line for each device, and what is not known yet."""
    if not cost.trainings:
        yield "cost: nothing is left to train"
        return
    yield f"work: {_work(cost)}"
    if cost.clusterings:
        number = "1 expensive clustering" if cost.clusterings == 1 else f"{cost.clusterings} expensive clusterings"
        each = f"{_count(cost.products)} multiplications in each of some tens of iterations"
        yield f"clustering: {number} for nmi_sec and f1_sec at the ends of trainings: {each}"
    for estimate in cost.hours:
        part = f" for {estimate.trainings} of {cost.trainings} trainings" if estimate.trainings < cost.trainings else ""
        spread = f" ({_amount(estimate.low)} to {_amount(estimate.high)})"
        hours = f"hours: about {_amount(estimate.hours)}{spread} on {estimate.device}{part}"
        if estimate.wall_hours is not None:
            slots = "the one present slot" if estimate.slots == 1 else f"{estimate.slots} present slots at once"
            hours += f"; {_amount(estimate.wall_hours)} in {slots}"
        yield hours
    if unknown := cost.trainings - cost.measured:
        part = "" if unknown == cost.trainings else f" for {unknown} trainings"
        measured = f"{cost.nearest} of {cost.needed} trainings"
        if cost.unmeasured_shapes == 1:
            yield f"hours: not known yet{part}: {measured} of this shape measured"
        else:
            shapes = f"{cost.unmeasured_shapes} shapes, each with at most {measured} measured"
            yield f"hours: not known yet{part}: {shapes}"


def _work(cost: Cost) -> str:
    most = "at most " if cost.at_most else ""
    models = "" if cost.models == cost.trainings else f" for {cost.models} models"
    if cost.steps is None:
        steps = f"{most}{cost.trainings} trainings{models}, whose steps are not known before the data is read"
    else:
        steps = f"{most}{_count(cost.steps)} steps{models}"
    images = "" if cost.images is None else f", {_count(cost.images)} images through the network"
    evaluated = "" if cost.evaluated is None else f", and up to {_count(cost.evaluated)} by evaluations"
    return f"{steps}{images}{evaluated}" + (f" ({'; '.join(cost.at_most)})" if cost.at_most else "")


def _count(number: int) -> str:
    """`528`, `5,160`, `4.9 million`."""
    for size, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:.3g} {name}"
    return f"{number:,}"


def _amount(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


@dataclass(frozen=True, slots=True)
class Workload:
    """The work of one or several trainings; `None` means unknown until the data is read. Fields as in `Cost`."""

    steps: int | None = 0
    trained: int | None = 0
    evaluated: int | None = 0
    clusterings: int = 0
    products: int = 0

    def __add__(self, other: "Workload") -> "Workload":
        return Workload(
            _sum(self.steps, other.steps),
            _sum(self.trained, other.trained),
            _sum(self.evaluated, other.evaluated),
            self.clusterings + other.clusterings,
            self.products + other.products,
        )

    def times(self, number: int) -> "Workload":
        """The work of `number` equal trainings."""
        steps, trained, evaluated = (
            None if count is None else count * number for count in (self.steps, self.trained, self.evaluated)
        )
        return Workload(steps, trained, evaluated, self.clusterings * number, self.products * number)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def models(recipe: Recipe) -> int:
    """The number of models that one training of the recipe trains."""
    return len(recipe.validation.holdouts) if isinstance(recipe.validation, CrossValidation) else 1


def units(recipe: Mapping[str, Any]) -> int:
    """The iterations or epochs of a recipe (as JSON), whichever it counts in, over all its models."""
    validation = recipe.get("validation") or {}
    folds = validation.get("folds", 4) if validation.get("name") == "cross_validation" else 1
    return int(recipe.get("iterations") or recipe.get("epochs") or 0) * int(folds)


def workload(recipe: Recipe, catalog: Catalog) -> Workload:
    """The work of one training of a complete recipe, if it runs to its end.

    Counts only expensive clusterings: one of the kept weights, and one of those that `select.beside` keeps.
    """
    work = _images_and_steps(recipe, catalog)
    if recipe.dataset is None or (dataset := catalog.get("dataset", recipe.dataset.name)) is None:
        return work
    entries = (metric_entry(name, catalog) for name in _computed(recipe, catalog))
    if not any(entry and entry.facts.get("needs") == NEEDS for entry in entries):
        return work
    clustering = clustering_of(dataset, recipe.dataset.options, recipe.embedding * models(recipe))
    if clustering is None or not clustering.expensive:
        return work
    number = 1 + (recipe.select.beside is not None)
    return replace(work, clusterings=number, products=number * STARTS * clustering.products)


def _images_and_steps(recipe: Recipe, catalog: Catalog) -> Workload:
    """The steps, and the images through the network, without clusterings.

    The number of images is what the data set's file declares. All folds are taken to have the same size, so the numbers
    of evaluations, and of recipes that count in epochs, are approximate.
    """
    batch, sizes, number = _batch(recipe), _images(recipe, catalog), models(recipe)
    if batch is None or (sizes is None and recipe.iterations is None):
        return Workload(recipe.iterations * number if recipe.iterations else None, None, None)
    task = catalog.get("task", recipe.task.name)
    views = task.facts.get("views") if task else None  # how often a drawn image goes through the network
    train = (sizes or {}).get("train", 0)
    held_out = 0 if isinstance(recipe.validation, NoValidation) else train // recipe.validation.folds
    total, every = recipe.iterations or 0, recipe.evaluates_every
    if recipe.epochs is not None:  # as in workers/training/optimization.py
        epoch = max(1, (train - held_out) // batch)
        total, every = recipe.epochs * epoch, every * epoch
    trained = total * batch * (views if isinstance(views, int) else 1)
    work = Workload(total * number, trained * number, None)
    extra = recipe.dataset.options.get("tests") if recipe.dataset else None
    test_sets = ["test", *(f"test_{name}" for name in (extra if isinstance(extra, list) else []))]
    if sizes is None or not set(test_sets) <= set(sizes):
        return work
    tested = sum(sizes[name] for name in test_sets)
    select, splits = recipe.select, {**sizes, "validation": held_out}
    beside = sizes["test"] if select.beside else 0
    on_the_way = (total - 1) // every * (splits["test" if select.split == "last" else select.split] + beside)
    needs_train = set(_computed(recipe, catalog)) & set(task.fact_names("trained") if task else [])
    everything = tested + held_out + (train - held_out if needs_train else 0)
    at_the_end = everything * (1 if select.split == "last" else 2) + beside
    joined = tested if number > 1 else 0  # by each of the models that are evaluated together
    return replace(work, evaluated=(on_the_way + at_the_end + joined) * number)


def _computed(recipe: Recipe, catalog: Catalog) -> tuple[str, ...]:
    return (*catalog.metrics(recipe.dataset, recipe.task), *recipe.metrics)


def _batch(recipe: Recipe) -> int | None:
    """The images of a batch, as the samplers write it: `batch`, or `classes` with `per_class` of each."""
    options = recipe.sampler.options if recipe.sampler else {}
    if isinstance(batch := options.get("batch"), int):
        return batch
    classes, each = options.get("classes"), options.get("per_class")
    return classes * each if isinstance(classes, int) and isinstance(each, int) else None


def _images(recipe: Recipe, catalog: Catalog) -> Mapping[str, int] | None:
    """The images of each split, if the data set declares them and is used whole."""
    if recipe.dataset is None:
        return None
    entry = catalog.get("dataset", recipe.dataset.name)
    declared = entry.facts.get("images") if entry else None
    if not isinstance(declared, Mapping) or recipe.dataset.options.get("official") is False:
        return None
    sizes = {split: count for split, count in declared.items() if isinstance(count, int)}
    return sizes if {"train", "test"} <= set(sizes) else None


FIELDS: Final = (
    "task", "dataset", "augment", "crop", "backbone", "head", "embedding", "sampler", "evaluate_every", "precision",
    "channels_last", "compile", "chunk", "validation", "metrics", "distance",
)  # fmt: skip
"""The fields of a recipe that decide how long a step takes, including its share of the evaluations. Losses,
regularizers and rates hardly matter, and the number of steps is counted."""

NEEDED: Final = 3
"""Trainings of one shape on one device from which hours are estimated."""

_HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class Duration:
    """How long one training took over all its attempts, and on which device."""

    seconds: float
    units: float
    """The iterations or epochs that it trained."""
    device: str  # cpu, cuda, ...
    device_name: str = ""


@dataclass(slots=True)
class Demand:
    """The trainings of one shape that still have to run."""

    trainings: int = 0
    models: int = 0
    units: int = 0  # iterations or epochs
    work: Workload = field(default_factory=Workload)


@dataclass(frozen=True, slots=True)
class Slots:
    """The number of slots that train at once."""

    number: int
    on_gpu: bool


def shape(recipe: Recipe) -> str:
    """The facts of a recipe that decide how long a step takes, as canonical JSON."""
    return shape_of(recipe.model_dump(mode="json", include={*FIELDS, "select", "epochs"}))


def shape_of(stored: Mapping[str, Any]) -> str:
    """The shape of a recipe as JSON. It includes the evaluated splits but not which fold is held out."""
    shared = {name: stored.get(name) for name in FIELDS}
    if isinstance(validation := shared["validation"], Mapping):
        shared["validation"] = {name: value for name, value in validation.items() if name != "fold"}
    select = stored.get("select") or {}
    unit = "iterations" if stored.get("epochs") is None else "epochs"
    return canonical_json(shared | {"beside": select.get("beside"), "split": select.get("split"), "unit": unit})


def shape_key(shape: str) -> str:
    """The key of a shape in the database."""
    return sha256(shape.encode()).hexdigest()[:32]


def estimate(
    demands: Mapping[str, Demand],
    measured: Mapping[str, Sequence[Duration]],
    gpus: float | Literal["auto"],
    slots: Slots | None = None,
) -> Cost:
    """The cost of trainings, from measured trainings of the same shapes; both mappings are by shape.

    Hours are estimated for each device on which enough was measured: CPUs if `gpus` is 0, GPUs if it is more, both for
    `auto`.
    """
    wanted = {key: demand for key, demand in demands.items() if demand.trainings}
    by_device: dict[tuple[str, str], list[tuple[Demand, list[float]]]] = defaultdict(list)
    known: set[str] = set()
    most = 0
    for key, demand in wanted.items():
        by_rate = _rates(measured.get(key, ()), gpus)
        for device, rates in by_rate.items():
            if len(rates) >= NEEDED:
                by_device[device].append((demand, rates))
                known.add(key)
        if key not in known:
            most = max([most, *map(len, by_rate.values())])
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
        hours=[_hours(device, demanded, slots) for device, demanded in by_device.items()],
    )


def _rates(durations: Sequence[Duration], gpus: float | Literal["auto"]) -> dict[tuple[str, str], list[float]]:
    """The seconds of one iteration or epoch, by kind and name of the device."""
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    for training in durations:
        on_cpu = training.device == "cpu"
        if training.units > 0 and (gpus == "auto" or on_cpu == (gpus == 0)):
            device = "cpu" if on_cpu else "gpu", training.device_name or training.device
            rates[device].append(training.seconds / training.units)
    return rates


def _hours(device: tuple[str, str], demanded: Sequence[tuple[Demand, list[float]]], slots: Slots | None) -> DeviceHours:
    kind, name = device
    quartiles = [(demand.units, quantiles(rates, n=4, method="inclusive")) for demand, rates in demanded]
    low, middle, high = (sum(units * rates[at] for units, rates in quartiles) / _HOUR for at in range(3))
    trainings = sum(demand.trainings for demand, _ in demanded)
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


_ASSUMED_SPREAD: Final = 0.5
"""The relative deviation of a training's length before three were timed."""
_DIFF: Final = 0.1
"""The relative change of a machine's speed from now on that no measurement excludes."""
_UNKNOWN_SPREAD: Final = 0.5
"""The relative deviation of work of a kind that was never timed, for which the mean speed is used."""
_LEAST_BUSY: Final = 0.5
"""The least share of its time that a slot is assumed to train; a smaller measured share comes from other sweeps."""
_QUANTILE: Final = 1.2816  # of the normal distribution, for an interval that covers 80 %


@dataclass(frozen=True, slots=True)
class Timed:
    """Steps of a training and the seconds that they took; steps of the same `kind` take equally long."""

    kind: str
    steps: float
    seconds: float
    whole: bool = True  # whether the training has ended


@dataclass(frozen=True, slots=True)
class Pending:
    """Waiting trainings of one kind, with the sum of their steps."""

    kind: str
    trainings: float
    steps: float


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds until the last training ends; `low` and `high` are the ends of an 80 % interval."""

    seconds: float
    low: float
    high: float


def time_left(
    running: Sequence[tuple[str, float]],
    waiting: Sequence[Pending],
    timed: Sequence[Timed],
    slots: float,
    doubt: float = 0.0,
) -> TimeLeft | None:
    """The time left of running trainings (each with its kind and remaining steps) and waiting trainings.

    `None` if nothing was timed or nothing is left. `slots` is the average number of trainings at once; gaps between
    trainings make it less than whole. `doubt` is the relative deviation of the steps themselves.
    """
    paces = _step_seconds(timed)
    if not paces or not (running or waiting):
        return None
    mean = math.fsum(training.seconds for training in timed) / math.fsum(training.steps for training in timed)
    begun = [steps * paces.get(kind, mean) for kind, steps in running]
    ahead = [(pending.trainings, pending.steps * paces.get(pending.kind, mean)) for pending in waiting]
    seconds = _end_of_last(begun, ahead, max(slots, 1e-3))
    unknown = math.fsum(steps * mean for kind, steps in running if kind not in paces)
    unknown += math.fsum(pending.steps * mean for pending in waiting if pending.kind not in paces)
    work = math.fsum(begun) + math.fsum(total for _, total in ahead)
    number = len(running) + math.fsum(pending.trainings for pending in waiting)
    spread = math.hypot(_spread(timed, paces, max(1.0, number), unknown / work if work else 0.0), doubt)
    return TimeLeft(seconds, seconds * math.exp(-_QUANTILE * spread), seconds * math.exp(_QUANTILE * spread))


def _step_seconds(timed: Sequence[Timed]) -> Mapping[str, float]:
    """The seconds of a step by kind, from finished trainings if there are any of the kind, else from running ones."""
    by_kind: dict[str, list[Timed]] = defaultdict(list)
    for training in timed:
        by_kind[training.kind].append(training)
    paces = {}
    for kind, trainings in by_kind.items():
        whole = [training for training in trainings if training.whole] or trainings
        if steps := math.fsum(training.steps for training in whole):
            paces[kind] = math.fsum(training.seconds for training in whole) / steps
    return paces


def _end_of_last(begun: Sequence[float], ahead: Sequence[tuple[float, float]], slots: float) -> float:
    """When the last training ends if each slot takes the next training as soon as it is free."""
    places = max(1, len(begun), math.ceil(slots - 0.1))
    busy = min(1.0, max(_LEAST_BUSY, slots / places))
    free = [*begun, *([0.0] * (places - len(begun)))]
    heapify(free)
    for number, total in ahead:
        whole = math.ceil(number)
        for _ in range(whole):
            heapreplace(free, free[0] + total / whole)
    return max(free) / busy


def _spread(timed: Sequence[Timed], paces: Mapping[str, float], number: float, unknown: float) -> float:
    """The relative deviation of the time left: from few measurements, chance, and changes of speed."""
    ratios = [
        training.seconds / (training.steps * paces[training.kind])
        for training in timed
        if training.whole and training.steps > 0
    ]
    each = _ASSUMED_SPREAD if len(ratios) < 3 else stdev(ratios)
    measured = each / math.sqrt(max(1, len(ratios)))
    return math.sqrt(measured**2 + each**2 / number + _DIFF**2 + (_UNKNOWN_SPREAD * unknown) ** 2)
