"""Where the resolution of a table stands: its verdicts, what of them is open, and the round that comes next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.publish.tables import published_comparison
from orchestrator.publish.tables.agenda import Agenda, agenda, pairs_a_seed, pruned_candidates, spent_hours, stock
from orchestrator.publish.tables.judged_cells import JudgedTable, judged
from orchestrator.publish.verdicts.rounds import Stock
from orchestrator.spec.seeds import seed_axis
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import ConflictError
from orchestrator.views.extension import SweepLook
from orchestrator.views.outcomes import SweepOutcomes
from orchestrator.views.planned import Labels
from orchestrator.views.resolutions import CellSeeds, LeftOut, ResolutionBudget, ResolutionRound
from orchestrator.views.verdicts import CellVerdictView
from workers.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Added:
    """The trials that a resolution added."""

    since: int  # the position of the first one
    lost: float = 0.0  # hours of those of their trainings that gave nothing


@dataclass(frozen=True, slots=True)
class ResolutionStep:
    """A resolution between two rounds."""

    judged: JudgedTable
    agenda: Agenda
    stock: Stock
    labels: Mapping[int, Labels]
    trials_a_seed: Mapping[int, int]
    """By cell: one for each candidate that is not pruned, and each other repeat."""
    spent: float
    """Hours of training since it began."""

    def comparisons(self) -> list[CellVerdictView]:
        """The verdicts as they are now."""
        return self.judged.view(self.labels).comparisons

    def next(self, number: int, budget: ResolutionBudget) -> ResolutionRound:
        """The round that comes next; without cells where nothing more can be decided within the budget."""
        drawn = self.agenda.round(self.stock, budget, self.spent)
        left_out = {**drawn.left_out, **self.agenda.hopeless}
        return ResolutionRound(
            number=number,
            cells=[CellSeeds(cell=cell, labels=dict(self.labels[cell]), seeds=list(seeds))
                   for cell, seeds in drawn.seeds.items()],
            trials=sum(len(seeds) * self.trials_a_seed[cell] for cell, seeds in drawn.seeds.items()),
            hours=drawn.hours,
            open=len(self.agenda.questions),
            left_out=[LeftOut(cell=place[0], labels=dict(self.labels[place[0]]), metric=place[2], why=why)
                      for place, why in left_out.items()],
        )  # fmt: skip

    def saved(self) -> int:
        """Trials less than if each compared cell had been given as many seeds as the one that got most."""
        most = max((self.stock.added[cell] for cell in self.agenda.cells), default=0)
        return sum((most - self.stock.added[cell]) * self.trials_a_seed[cell] for cell in self.agenda.cells)

    def said(self) -> str:
        """How much is decided, and how much will not be."""
        total, still, never = len(self.judged.pairs), len(self.agenda.questions), len(self.agenda.hopeless)
        if not total:
            return "nothing is compared: no cell has a baseline"
        words = [f"{total - still - never} of {total} comparison{'s' * (total > 1)} decided"]
        words += [f"{still} open"] if still else []
        words += [f"{never} that seeds do not decide"] if never else []
        return ", ".join(words)


def resolution_step(
    outcomes: SweepOutcomes,
    table: str,
    looks: Sequence[SweepLook],
    catalog: Catalog,
    budget: ResolutionBudget,
    added: Added | None = None,
) -> ResolutionStep:
    """Where the resolution of a table stands that has added these trials, or none yet.

    ConflictError where the sweep repeats its trainings by no seed.
    """
    axis = seed_axis(Spec.model_validate(outcomes.spec))
    if axis is None:
        raise ConflictError(f"sweep {outcomes.sweep} repeats its trainings by no seed, so that none can be added")
    its_verdicts = judged(published_comparison.build(outcomes, table, catalog), outcomes, looks)
    per_seed = pairs_a_seed(outcomes, axis)
    candidates = dict.fromkeys((cell.index for cell in outcomes.cells), 0)
    pruned = pruned_candidates(outcomes)
    for candidate in outcomes.candidates:
        candidates[candidate.cell] += (candidate.cell, candidate.index) not in pruned
    return ResolutionStep(
        judged=its_verdicts,
        agenda=agenda(its_verdicts, budget, per_seed),
        stock=stock(outcomes, axis, None if added is None else added.since),
        labels={cell.index: cell.labels for cell in outcomes.cells},
        trials_a_seed={cell: number * per_seed for cell, number in candidates.items()},
        spent=spent_hours(outcomes, added.since) + added.lost if added else 0.0,
    )
