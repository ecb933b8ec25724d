"""What trainings do: optimizer steps, and images through the network, counted from recipes without any data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from workers.catalog import NEEDS, STARTS, Catalog, Clustering, metric_entry, stated
from workers.contract import CrossValidation, NoValidation, Recipe


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
