"""The needs of a spec: what its trainings read of their machines' data roots."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from orchestrator.plan.reading.points import Point, cells_of, points, recipe_of
from orchestrator.spec.spec import Spec
from workers.catalog import Catalog, Need, need_of
from workers.contract import Part, Recipe

MOST_LOOKED_AT: Final = 10_000


class Needs:
    """What recipes need; the trials of a sweep name few data sets and backbones, and each pair is looked up once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._last: tuple[Part | None, Part | None] | None = None
        self._need: Need | None = None

    def of(self, recipe: Recipe) -> Need | None:
        """What a training of the recipe reads; none: nothing of the data root."""
        return self.of_parts(recipe.dataset, recipe.backbone)

    def of_parts(self, dataset: Part | None, backbone: Part | None) -> Need | None:
        """The same of a recipe with these parts."""
        if self._last != (dataset, backbone):
            self._last, self._need = (dataset, backbone), need_of(dataset, backbone, self._catalog)
        return self._need


def needs(spec: Spec, catalog: Catalog) -> list[Need]:
    """Every different need of a checked spec's trainings, in the order of its cells; of the first places only."""
    lookup, found = Needs(catalog), dict[str, Need]()
    for cell, candidate in islice(_places(spec), MOST_LOOKED_AT):
        raw = recipe_of(spec, cell, candidate)
        held = {kind: Part.model_validate(raw[kind]) for kind in ("dataset", "backbone") if kind in raw}
        one = lookup.of_parts(held.get("dataset"), held.get("backbone"))
        if one is not None:
            found.setdefault(one.key, one)
    return list(found.values())


def _places(spec: Spec) -> Iterator[tuple[Point, Point]]:
    """Every cell with its candidates, or with the first one where tuning changes neither data set nor backbone."""
    choices = (choice for axis in spec.tune.values() for group in axis for choice in group.choices)
    tuned = any(path.partition(".")[0] in ("dataset", "backbone") for choice in choices for path in choice.patch)
    for cell in cells_of(spec):
        for candidate in islice(points(spec.tune, cell.labels), None if tuned else 1):
            yield cell, candidate
