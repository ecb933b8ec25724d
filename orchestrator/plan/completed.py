"""Completed recipes, each with what is made of it once: its JSON, its fingerprint, and what decides on kept weights."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from orchestrator.plan.needs import Contents
from workers.catalog import Catalog, FurtherMetrics, complete, further_metrics, out_of_reach, without_further
from workers.contract import Recipe, canonical_json, fingerprint_of


class Completed(NamedTuple):
    """A completed recipe."""

    recipe: Recipe
    document: dict[str, Any]
    fingerprint: str
    further: FurtherMetrics

    @classmethod
    def of(cls, raw: Mapping[str, Any], catalog: Catalog, contents: Contents) -> "Completed":
        """That of a recipe without problems as it was written."""
        recipe = contents.pinned(complete(Recipe.model_validate(raw), catalog), catalog)
        document = recipe.model_dump(mode="json")
        fingerprint = fingerprint_of(document)
        return cls(recipe, document, fingerprint, further_metrics(recipe, fingerprint, catalog))


class Seeded:
    """A recipe with any seed: it is completed and written once, and seeds are set in that, which is quicker."""

    def __init__(self, raw: Mapping[str, Any], catalog: Catalog, contents: Contents) -> None:
        self._recipe = contents.pinned(complete(Recipe.model_validate(raw), catalog), catalog)
        self._document = self._recipe.model_dump(mode="json")
        self._fingerprint = self._base = fingerprints_by_seed(self._document)
        if self._recipe.metrics:
            self._base = fingerprints_by_seed(without_further(self._recipe, catalog).model_dump(mode="json"))
        self._out_of_reach = out_of_reach(self._recipe, catalog)

    def at(self, seed: int) -> Completed:
        """The same recipe with this seed."""
        fingerprint = self._fingerprint(seed)
        base = fingerprint if self._base is self._fingerprint else self._base(seed)
        further = FurtherMetrics(base=base, out_of_reach=self._out_of_reach)
        document = {**self._document, "seed": seed}
        return Completed(self._recipe.model_copy(update={"seed": seed}), document, fingerprint, further)


def fingerprints_by_seed(recipe: Mapping[str, Any]) -> Callable[[int], str]:
    """`fingerprint_of` for a recipe that is JSON already with any seed, which writes the rest of it once."""
    before, found, after = canonical_json({**recipe, "seed": None}).rpartition('"seed":null')
    if not found or '"seed":null' in before:  # a part has a seed of its own that is not set
        return lambda seed: fingerprint_of({**recipe, "seed": seed})
    begun = hashlib.sha256(f'{before}"seed":'.encode())

    def of(seed: int) -> str:
        digest = begun.copy()
        digest.update(f"{seed}{after}".encode())
        return digest.hexdigest()

    return of
