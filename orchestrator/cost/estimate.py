"""What a sweep will cost: steps and images counted from recipes, hours from measured trainings."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from statistics import median, quantiles
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from workers.catalog import NEEDS, STARTS, Catalog, Clustering, metric_entry, stated
from workers.contract import CrossValidation, NoValidation, Recipe, canonical_json


class DeviceHours(BaseModel):
    """The hours that trainings would take on one device, from the median seconds a step of those that ran on it."""

    model_config = ConfigDict(defer_build=True)

    kind: Literal["cpu", "gpu"]
    device: str
    trainings: int
    """Those of whose shape enough ran on this device; the hours are of these alone."""
    hours: float
    """One after the other."""
    low: float
    """By the lower quartile of the seconds a step."""
    high: float
    """By the upper one."""
    slots: int | None = None
    """How many of them the nodes that are there can train at once; none: not known."""
    wall_hours: float | None = None
    """The hours, shared between these slots."""


class Cost(BaseModel):
    """What is still to be trained: the work, and the hours that it would take by what was measured."""

    model_config = ConfigDict(defer_build=True)

    trainings: int
    """Different recipes without a result."""
    models: int
    """What these train: one each, and one a fold under cross-validation."""
    steps: int | None = None
    """Of the optimizer; none: not known before the data is read."""
    images: int | None = None
    """Through the network, forward and back: steps times the images of a batch."""
    evaluated: int | None = None
    """At most so many more through the network, by evaluations."""
    clusterings: int = 0
    """Dear clusterings by the protocol of SEC's code (`nmi_sec`, `f1_sec`), once at the end of a training."""
    products: int = 0
    """The multiplications that one iteration of all their starts takes, of tens of iterations that a start needs."""
    at_most: list[str] = Field(default_factory=list)
    """Why it may turn out to be less; empty: it is all trained to its end."""
    measured: int = 0
    """Trainings whose hours are known."""
    unmeasured_shapes: int = 0
    """Shapes of the others: trainings of one shape take about as long a step."""
    nearest: int = 0
    """The most trainings that ran of one of these shapes, on one device."""
    needed: int = 3
    """How many have to run before hours are told."""
    hours: list[DeviceHours] = Field(default_factory=list)
    """By device: alternatives where the same trainings are known of several."""


def cost_in_words(cost: "Cost") -> Iterator[str]:
    """The work, then the hours: a line for each device, and what is not known yet."""
    if not cost.trainings:
        yield "cost: nothing is left to train"
        return
    yield f"work: {_work(cost)}"
    if cost.clusterings:
        number = "1 expensive clustering" if cost.clusterings == 1 else f"{cost.clusterings} expensive clusterings"
        each = f"{_count(cost.products)} multiplications an iteration, of some tens"
        yield f"clustering: {number} for nmi_sec and f1_sec at the ends of trainings: {each}"
    for estimate in cost.hours:
        part = f" for {estimate.trainings} of {cost.trainings} trainings" if estimate.trainings < cost.trainings else ""
        spread = f" ({_amount(estimate.low)} to {_amount(estimate.high)})"
        hours = f"hours: about {_amount(estimate.hours)}{spread} on {estimate.device}{part}"
        yield (
            hours
            if estimate.wall_hours is None
            else f"{hours}; {_amount(estimate.wall_hours)} {_at_once(estimate.slots)}"
        )
    if unknown := cost.trainings - cost.measured:
        part = "" if unknown == cost.trainings else f" for {unknown} trainings"
        measured = f"{cost.nearest} of {cost.needed} trainings"
        if cost.unmeasured_shapes == 1:
            yield f"hours: not known yet{part}: {measured} of this shape measured"
        else:
            shapes = f"{cost.unmeasured_shapes} shapes, each with at most {measured} measured"
            yield f"hours: not known yet{part}: {shapes}"


def _at_once(slots: int | None) -> str:
    return "in the one present slot" if slots == 1 else f"in {slots} present slots at once"


def _work(cost: "Cost") -> str:
    most = "at most " if cost.at_most else ""
    models = "" if cost.models == cost.trainings else f" for {cost.models} models"
    if cost.steps is None:
        steps = f"{most}{cost.trainings} trainings{models}, whose steps are not known before the data is read"
    else:
        steps = f"{most}{_count(cost.steps)} steps{models}"
    images = "" if cost.images is None else f", {_count(cost.images)} images through the network"
    looks = "" if cost.evaluated is None else f", and up to {_count(cost.evaluated)} by evaluations"
    return f"{steps}{images}{looks}" + (f" ({'; '.join(cost.at_most)})" if cost.at_most else "")


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
    """The work of one training or of several; none: not known before the data is read."""

    steps: int | None = 0
    """Of the optimizer, over all models of a cross-validation."""
    trained: int | None = 0
    """Images through the network, forward and back: steps times those of a batch."""
    evaluated: int | None = 0
    """At most so many more, forward alone: evaluations on the way and those of the kept weights."""
    clusterings: int = 0
    """The dear ones, at the ends of trainings."""
    products: int = 0
    """The multiplications of one iteration of all their starts."""

    def __add__(self, other: "Workload") -> "Workload":
        return Workload(
            _sum(self.steps, other.steps),
            _sum(self.trained, other.trained),
            _sum(self.evaluated, other.evaluated),
            self.clusterings + other.clusterings,
            self.products + other.products,
        )

    def times(self, number: int) -> "Workload":
        """Of so many alike."""
        steps, trained, evaluated = (
            None if one is None else one * number for one in (self.steps, self.trained, self.evaluated)
        )
        return Workload(steps, trained, evaluated, self.clusterings * number, self.products * number)


def models(recipe: Recipe) -> int:
    """How many models one training of the recipe trains."""
    return len(recipe.validation.holdouts) if isinstance(recipe.validation, CrossValidation) else 1


def units(recipe: Mapping[str, Any]) -> int:
    """The length of a recipe as JSON in what it counts in, iterations or epochs, over all its models."""
    validation = recipe.get("validation") or {}
    folds = validation.get("folds", 4) if validation.get("name") == "cross_validation" else 1
    return int(recipe.get("iterations") or recipe.get("epochs") or 0) * int(folds)


def workload(recipe: Recipe, catalog: Catalog) -> Workload:
    """The work of one training of a complete recipe, were it to go on to its end.

    Of clusterings only the dear ones count: those of the weights that are kept, and of those that `beside` keeps.
    """
    number, clustered = 1 + (recipe.select.beside is not None), _dear(recipe, catalog)
    seen = _seen(recipe, catalog)
    if clustered is None:
        return seen
    return replace(seen, clusterings=number, products=number * STARTS * clustered.products)


def _dear(recipe: Recipe, catalog: Catalog) -> Clustering | None:
    """The clustering of the test images by SEC's code, where a metric asks for it and it is dear."""
    if recipe.dataset is None:
        return None
    entries = (metric_entry(name, catalog) for name in _computed(recipe, catalog))
    dataset = catalog.get("dataset", recipe.dataset.name)
    if dataset is None or not any(entry and entry.facts.get("needs") == NEEDS for entry in entries):
        return None
    found = stated(dataset, recipe.dataset.options, recipe.embedding * models(recipe))
    return found if found is not None and found.dear else None


def _seen(recipe: Recipe, catalog: Catalog) -> Workload:
    """The steps, and the images through the network.

    How many images a data set has is what its file declares. Of folds an equal share is taken, though classes differ in
    size: so the numbers of a recipe that counts in epochs, and all of evaluations, are near and not exact.
    """
    batch, images = _batch(recipe), _images(recipe, catalog)
    number, views = models(recipe), _views(recipe, catalog)
    if batch is None or (images is None and recipe.iterations is None):
        steps = recipe.iterations * number if recipe.iterations else None
        return Workload(steps, steps * batch * views if steps and batch else None, None)
    sizes = images or {}
    folds = 0 if isinstance(recipe.validation, NoValidation) else recipe.validation.folds
    held_out = sizes.get("train", 0) // folds if folds else 0
    total, every = _length(recipe, max(1, (sizes.get("train", 0) - held_out) // batch))
    if images is None:
        return Workload(total * number, total * batch * views * number, None)
    splits = {**sizes, "train": sizes["train"] - held_out, "validation": held_out}
    if any(name not in splits for name in _test_sets(recipe)):
        return Workload(total * number, total * batch * views * number, None)
    looks = (total - 1) // every
    evaluated = looks * _watched(recipe, splits) + _at_the_end(recipe, splits, catalog)
    tested = splits["test"] + sum(splits[name] for name in _test_sets(recipe))
    joined = tested if number > 1 else 0  # by each of the models that are judged together
    return Workload(total * number, total * batch * views * number, (evaluated + joined) * number)


def _views(recipe: Recipe, catalog: Catalog) -> int:
    """How often an image that is drawn goes through the network."""
    task = catalog.get("task", recipe.task.name)
    views = task.facts.get("views") if task else None
    return views if isinstance(views, int) else 1


def _length(recipe: Recipe, epoch: int) -> tuple[int, int]:
    """The steps of one model, and those between two evaluations, as workers/training/optimization.py has them."""
    if recipe.epochs is not None:
        return recipe.epochs * epoch, recipe.evaluates_every * epoch
    return recipe.iterations or 0, recipe.evaluates_every


def _watched(recipe: Recipe, splits: Mapping[str, int]) -> int:
    """The images of one evaluation on the way."""
    select = recipe.select
    return splits["test" if select.split == "last" else select.split] + (splits["test"] if select.beside else 0)


def _at_the_end(recipe: Recipe, splits: Mapping[str, int], catalog: Catalog) -> int:
    """The images by which the last weights are judged, and the best ones where these are others."""
    task = catalog.get("task", recipe.task.name)
    trained = task.stated("trained") if task else []
    norms = any(name in trained for name in _computed(recipe, catalog))
    everything = splits["test"] + splits["validation"] + (splits["train"] if norms else 0)
    everything += sum(splits[name] for name in _test_sets(recipe))
    kept = 1 if recipe.select.split == "last" else 2
    return kept * everything + (splits["test"] if recipe.select.beside else 0)


def _test_sets(recipe: Recipe) -> list[str]:
    """The splits that a data set has beside `test`."""
    asked = recipe.dataset.options.get("tests") if recipe.dataset else None
    return [f"test_{name}" for name in asked] if isinstance(asked, list) else []


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
    """The images of each split where the data set declares them and is taken whole."""
    if recipe.dataset is None:
        return None
    entry = catalog.get("dataset", recipe.dataset.name)
    declared = entry.facts.get("images") if entry else None
    if not isinstance(declared, Mapping) or recipe.dataset.options.get("official") is False:
        return None
    found = {split: count for split, count in declared.items() if isinstance(count, int)}
    return found if {"train", "test"} <= set(found) else None


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


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
