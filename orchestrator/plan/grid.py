"""Expands a spec into cells, candidates and trials, always in the same order."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from orchestrator.plan.needs import Contents, Needs
from orchestrator.plan.parse import slot_of
from orchestrator.plan.points import (
    MOST_TRIALS,
    Point,
    candidates_of,
    cells_of,
    count,
    count_candidates,
    points,
    recipe_of,
)
from orchestrator.spec.axes import Patch, apply
from orchestrator.spec.spec import Spec
from orchestrator.views import errors
from orchestrator.views.errors import timely
from orchestrator.views.runs import Candidate, Cell, Labels, PlannedTrial
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


@dataclass(frozen=True)
class Plan:
    """What a spec expands to; its trials are made as they are asked for."""

    spec: Spec
    cells: list[Cell]
    candidates: list[Candidate]
    trial_count: int
    _catalog: Catalog = field(repr=False)
    _contents: Contents = field(default=Contents(), repr=False)

    def trials(self) -> Iterator[PlannedTrial]:
        """All trials by cell, candidate and repeat, each with its completed recipe; none where a search is adaptive."""
        if self.spec.search.adaptive:
            return
        needs = Needs(self._catalog)
        for cell, at_cell in enumerate(cells_of(self.spec)):
            repeats = list(points(self.spec.repeat, at_cell.labels))
            for candidate, at_candidate in enumerate(candidates_of(self.spec, at_cell, self._catalog)):
                raw = recipe_of(self.spec, at_cell, at_candidate)
                slot = slot_of(self.spec, {**at_cell.labels, **at_candidate.labels})
                for repeat, (labels, completed) in enumerate(self._repeated(raw, repeats)):
                    errors.check()
                    recipe, document, fingerprint, further = completed
                    need = needs.of(recipe)
                    yield PlannedTrial(
                        cell, candidate, repeat, labels, recipe, fingerprint, slot, document, need, further
                    )

    @property
    def candidate_count(self) -> int:
        """How many candidates there are; of an adaptive search, how many it may try."""
        if self.spec.search.adaptive:
            return sum(count_candidates(self.spec, cell.labels) for cell in self.cells)
        return len(self.candidates)

    def outlines(self) -> Iterator[tuple[int, Recipe]]:
        """Of each cell of an adaptive search the most trials that it can have, and the recipe of a first one."""
        for cell in cells_of(self.spec):
            repeats = list(points(self.spec.repeat, cell.labels))
            raw = recipe_of(self.spec, cell, next(points(self.spec.tune, cell.labels)))
            yield _most_trials(self.spec, cell, len(repeats)), next(self._repeated(raw, repeats))[1].recipe

    def _repeated(self, raw: Patch, repeats: list[Point]) -> Iterator[tuple[Labels, Completed]]:
        """The completed recipes of one candidate."""
        seeded: Seeded | None = None
        for repeat in repeats:
            patches = [choice.patch for choice in repeat.choices]
            seed = _seed_only(patches)
            if seed is None:
                yield repeat.labels, Completed.of(apply(raw, patches), self._catalog, self._contents)
                continue
            seeded = seeded or Seeded(raw, self._catalog, self._contents)
            yield repeat.labels, seeded.at(seed)


def expand(spec: Spec, catalog: Catalog, contents: Contents = Contents()) -> Plan:  # noqa: B008 - it is frozen
    """The plan of a checked spec; the same spec, catalog and contents of the data give the same plan."""
    cells: list[Cell] = []
    candidates: list[Candidate] = []
    total = 0
    for index, cell in enumerate(timely(cells_of(spec))):
        cells.append(Cell(index, cell.labels))
        if spec.search.adaptive:
            total += _most_trials(spec, cell, count(spec.repeat, cell.labels, MOST_TRIALS))
            continue
        of_cell = [Candidate(index, at, one.labels) for at, one in enumerate(candidates_of(spec, cell, catalog))]
        candidates += of_cell
        total += len(of_cell) * count(spec.repeat, cell.labels, MOST_TRIALS)
    return Plan(spec, cells, candidates, total, catalog, contents)


def _most_trials(spec: Spec, cell: Point, repeats: int) -> int:
    return count_candidates(spec, cell.labels) * repeats + spec.search.reproduce


def _seed_only(patches: list[Patch]) -> int | None:
    """The seed where patches set nothing else."""
    if len(patches) != 1 or list(patches[0]) != ["seed"]:
        return None
    seed = patches[0]["seed"]
    return seed if type(seed) is int else None
