"""The metrics that a recipe adds to those of its task and data set, and what of them kept weights can tell."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from workers.catalog.defaults import code_of, versions_of
from workers.catalog.inner_parts import named
from workers.catalog.inventory import Catalog
from workers.contract import BEST_TEST, Frozen, Recipe


class FurtherMetrics(Frozen):
    """What decides whether the weights that another training kept can stand for a training of this recipe."""

    base: str
    """The fingerprint that the recipe has without its further metrics: such trainings do the same steps."""
    out_of_reach: dict[str, list[str]] = Field(default_factory=dict)
    """By metric, the keys of a training's result or curves that kept weights cannot tell."""


def further_metrics(recipe: Recipe, fingerprint: str, catalog: Catalog) -> FurtherMetrics:
    """Those of a completed recipe."""
    base = without_further(recipe, catalog).fingerprint if recipe.metrics else fingerprint
    return FurtherMetrics(base=base, out_of_reach=out_of_reach(recipe, catalog))


def without_further(recipe: Recipe, catalog: Catalog) -> Recipe:
    """A completed recipe as it is without its further metrics."""
    # Completing it anew without them gives the same, slower: of what is complete only the versions of metrics change.
    parts, computed = named(recipe, catalog), [recipe.select.metric]
    versions, code = versions_of(parts, computed, recipe.precision, catalog), code_of(parts, computed, catalog)
    pins = recipe.pins.model_copy(update={"versions": versions, "code": code})
    return recipe.model_copy(update={"metrics": [], "pins": pins})


def out_of_reach(recipe: Recipe, catalog: Catalog) -> dict[str, list[str]]:
    """By further metric what is measured of other weights than the kept ones, where a table or a figure shows it.

    Of `last/...` where the best are kept no table asks: it is left out of what kept weights give.
    """
    if not recipe.metrics:
        return {}
    task = catalog.get("task", recipe.task.name)
    watched = set(task.stated("watched")) if task else set()
    select, unreached = recipe.select, dict[str, list[str]]()
    for metric in recipe.metrics:
        keys = [f"{BEST_TEST}/test/{metric}"] if select.beside else []
        if metric in watched:
            keys += [f"the curve of {split}/{metric}" for split in select.watched]
        if keys:
            unreached[metric] = keys
    return unreached


def asked_of(recipe: Mapping[str, Any]) -> list[str]:
    """The further metrics of a recipe that is JSON."""
    return [str(one) for one in recipe.get("metrics") or ()]


def computed_alike(names: list[str], one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two completed recipes that are JSON were planned with the same versions and code of some metrics."""
    pins = [recipe.get("pins") or {} for recipe in (one, other)]
    keys = [f"metric.{name.partition('@')[0]}" for name in names]
    versions, code = ([one.get(held) or {} for one in pins] for held in ("versions", "code"))
    return all(versions[0].get(key, 1) == versions[1].get(key, 1) for key in keys) and all(
        code[0].get(key) == code[1].get(key) for key in keys
    )
