"""The needs of a spec: what its trainings read of a data root, and the content that they are planned with."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from orchestrator.plan.points import Point, cells_of, points, recipe_of
from orchestrator.spec.spec import Spec
from orchestrator.views.operations import Inspected, PlannedContent
from workers.catalog import UNKNOWN, Catalog, Need, decisive, need_of, undeclared
from workers.contract import Part, Recipe

MOST_LOOKED_AT: Final = 10_000


@dataclass(frozen=True)
class Contents:
    """The content of the data that a sweep is planned with."""

    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By the key of the need, as `Finding.content` has it."""
    otherwise: str | None = None
    """What stands for content that nobody could tell, so that no other sweep reuses the training: the sweep's uid.

    None where nodes are not inspected: the content is not pinned then.
    """

    @classmethod
    def of(cls, planned: PlannedContent | None, found: Iterable[Inspected] = ()) -> "Contents":
        """What a sweep is planned with, and for what it does not say what was found since; None: nodes say nothing."""
        return cls() if planned is None else cls({**agreed(found), **planned.known}, planned.uid)

    def of_spec(self, spec: Spec, catalog: Catalog) -> dict[str, Mapping[str, str]]:
        """What is known of the needs of a spec."""
        keys = [one.key for one in needs(spec, catalog)]
        return {key: self.known[key] for key in keys if key in self.known}

    def pinned(self, recipe: Recipe, catalog: Catalog) -> Recipe:
        """A completed recipe for the content of the data that it reads."""
        wanted = decisive(recipe, catalog)
        if not wanted:
            return recipe
        need = need_of(recipe.dataset, recipe.backbone, catalog)
        found = self.known.get(need.key, {}) if need is not None else {}
        if wanted <= found.keys() and not undeclared(recipe, catalog):
            pins = {pin: found[name] for name, pin in (("data", "content"), ("weights", "weights")) if name in wanted}
        elif self.otherwise is not None:
            pins = {"content": f"{UNKNOWN}: {self.otherwise}"}
        else:
            return recipe
        return recipe.model_copy(update={"pins": recipe.pins.model_copy(update=pins)})


def agreed(found: Iterable[Inspected]) -> dict[str, dict[str, str]]:
    """The content of each need by its key: that of most nodes which have it, of equally many that of the first host.

    Nodes with other files are passed over by trainings that are planned so.
    """
    votes: dict[str, Counter[tuple[tuple[str, str], ...]]] = {}
    for one in sorted(found, key=lambda one: (one.host, one.node)):
        if one.finding.state == "ok" and one.finding.content and not one.need.content:
            votes.setdefault(one.need.key, Counter())[tuple(sorted(one.finding.content.items()))] += 1
    return {key: dict(counted.most_common(1)[0][0]) for key, counted in votes.items()}


def counted(found: Iterable[Inspected]) -> dict[str, dict[str, dict[str, int]]]:
    """The classes and images that nodes found in data sets, by the key of the need of the data set alone."""
    return {
        Need(dataset=one.need.dataset).key: one.finding.counts
        for one in found
        if one.finding.state == "ok" and one.finding.counts
    }


class Needs:
    """What recipes need; the trials of a sweep name few data sets and backbones, and each pair is looked up once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._last: tuple[Part | None, Part | None] | None = None
        self._need: Need | None = None

    def of(self, recipe: Recipe) -> Need | None:
        """What a training of the recipe reads; none: nothing of the data root."""
        found = self.of_parts(recipe.dataset, recipe.backbone)
        return found.holding(recipe.pins) if found is not None else None

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
