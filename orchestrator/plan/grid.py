"""Expands a spec into cells, candidates and trials, always in the same order."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.plan.budget import candidates_of
from orchestrator.plan.completed import Completed, Seeded
from orchestrator.plan.needs import Contents, Needs
from orchestrator.plan.reading.points import MOST_TRIALS, Point, cells_of, count, count_candidates, points, recipe_of
from orchestrator.plan.reading.slots import slot_of
from orchestrator.spec.patch import Patch, apply
from orchestrator.spec.spec import Spec
from orchestrator.views import deadline
from orchestrator.views.deadline import timely
from orchestrator.views.planned import Candidate, Cell, Labels, PlannedTrial
from workers.catalog import Catalog
from workers.contract import Recipe


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
                    deadline.check()
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
