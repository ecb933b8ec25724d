"""What a plan and a budget would decide, before anything is trained: resolutions played on supposed truths."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.cost.estimate import Demand, estimate
from orchestrator.cost.view import DeviceHours
from orchestrator.plan.validated import Checked, read
from orchestrator.publish.published import library
from orchestrator.publish.tables import published_comparison, supposition
from orchestrator.publish.tables.judged_cells import JudgedTable, judged
from orchestrator.publish.tables.supposition import Supposition
from orchestrator.publish.verdicts.replay import Design, Played, resolved
from orchestrator.publish.verdicts.rounds import PAIRS, Limits
from orchestrator.record.store import Store
from orchestrator.service.forecast import Share
from orchestrator.spec.seeds import seed_axis
from orchestrator.views.deadline import timely
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.foresight import DeviceForesight, ForeseenComparison, ForesightView, SupposedTruth
from orchestrator.views.lifecycle import SweepState
from orchestrator.views.outcomes import NO_SWEEP, SweepOutcomes
from orchestrator.views.resolutions import ResolutionBudget
from workers.catalog import Catalog, unknown

MOST_PLAYS: Final = 200
MOST_JUDGED: Final = 4_000
"""Comparisons over all plays: a table of hundreds is played less often."""
SEED: Final = 20_261_123
"""The same question has the same answer."""


class Foresight:
    """Plays resolutions; stores nothing."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog

    def foresee(
        self, body: bytes, budget: ResolutionBudget, truth: SupposedTruth, table: str | None = None
    ) -> ForesightView:
        """What becomes of a table of a spec, by default its first one.

        InvalidSpecError for a wrong spec; NotFoundError where there is no such table or sweep; ConflictError where
        nothing is compared, no seed can be added, too little is supposed, or the budget has a `within`.
        """
        import numpy as np

        if budget.within is not None:
            raise ConflictError("`within` is not played; bound `hours` or `seeds`")
        checked = read(body, self._catalog, library.PrintedLines())
        name = table if table is not None else next(iter(checked.spec.tables), "")
        if name not in checked.spec.tables:
            raise NotFoundError(f"in the spec: {unknown('table', name, checked.spec.tables)}")
        compared = self._compared(checked, name)
        supposed = self._supposed(checked, compared, truth)
        planned = _planned_seeds(checked)
        each = _trials_a_seed(checked, planned)
        hours = self._hours(checked)
        slowest = {cell: _slowest(hours) * number for cell, number in each.items()}
        design = _design(checked, compared, budget, slowest, planned)
        random = np.random.default_rng(SEED)
        plays = [
            resolved(random, supposition.drawn(supposed, random), design)
            for _ in timely(range(max(10, min(MOST_PLAYS, MOST_JUDGED // len(supposed)))))
        ]
        numbers = {cell: len(seeds) for cell, seeds in planned.items()}
        return _Plays(checked, supposed, plays, each, hours, numbers).view(name, budget)

    def _compared(self, checked: Checked, name: str) -> JudgedTable:
        spec = checked.spec.model_dump(mode="json")
        cells, candidates = tuple(checked.plan.cells), tuple(checked.plan.candidates)
        outcomes = SweepOutcomes(NO_SWEEP, checked.spec.name, SweepState.QUEUED, spec, cells, candidates, ())
        found = judged(published_comparison.build(outcomes, name, self._catalog), outcomes, (), "seeds")
        if not any(pair.baseline is not None for pair in found.pairs.values()):
            raise ConflictError(f"table {name} compares nothing: none of its cells has a baseline")
        return found

    def _supposed(self, checked: Checked, compared: JudgedTable, truth: SupposedTruth) -> Sequence[Supposition]:
        if truth.like is not None and (truth.spread is not None or truth.effect is not None):
            raise ConflictError(f"`like` takes both from sweep {truth.like}; leave `spread` and `effect` out")
        if truth.like is None:
            if truth.spread is None or truth.effect is None:
                raise ConflictError("say what is supposed: `like` a sweep, or `spread` and `effect`")
            return supposition.stated(compared, truth.spread, truth.effect)
        outcomes, looks = self._store.outcomes.of(truth.like), self._store.requests.looks(truth.like)
        names = list(outcomes.spec.get("tables") or {})
        name = compared.table.name if compared.table.name in names else next(iter(names), "")
        if not name:
            raise ConflictError(f"sweep {truth.like} has no table")
        known = judged(published_comparison.build(outcomes, name, self._catalog), outcomes, looks, "seeds")
        labels = {cell.index: cell.labels for cell in checked.plan.cells}
        return supposition.like(compared, labels, known, {cell.index: cell.labels for cell in outcomes.cells})

    def _hours(self, checked: Checked) -> list[DeviceHours]:
        """What the whole plan takes, trained or not."""
        demands: dict[str, Demand] = defaultdict(Demand)
        for trial in timely(checked.plan.trials()):
            share = Share.of(trial.recipe, self._catalog)
            share.add_to(demands[share.shape], 1)
        return estimate(demands, self._store.trainings.durations(demands), checked.spec.slot.gpus).hours


def _design(
    checked: Checked,
    compared: JudgedTable,
    budget: ResolutionBudget,
    hours: Mapping[int, float],
    planned: Mapping[int, frozenset[int]],
) -> Design:
    plan = max((place + 1 for seeds in planned.values() for place in seeds), default=0)
    if not plan or checked.spec.search.adaptive:
        raise ConflictError("no seed can be added: the spec repeats by none, or searches adaptively")
    if plan > PAIRS:
        raise ConflictError(f"the plan has {plan} seeds; more than {PAIRS} are not followed")
    if budget.hours is not None and not any(hours.values()):
        raise ConflictError("hours are not known: too few such trainings were measured here; bound `seeds` instead")
    asked = compared.asked
    return Design(plan, Limits(budget.hours, budget.seeds), asked.looks == "any", asked.level, hours, planned)


def _trials_a_seed(checked: Checked, planned: Mapping[int, frozenset[int]]) -> dict[int, int]:
    counted: dict[int, int] = defaultdict(int)
    for trial in checked.plan.trials():
        counted[trial.cell] += 1
    return {cell: max(1, number // max(1, len(planned[cell]))) for cell, number in counted.items()}


def _slowest(hours: Sequence[DeviceHours]) -> float:
    """Of one training, on the device where it takes longest: no budget is exceeded by what is planned so."""
    return max((one.hours / one.trainings for one in hours), default=0.0)


@dataclass(frozen=True, slots=True)
class _Plays:
    """What came of all plays."""

    checked: Checked
    supposed: Sequence[Supposition]
    plays: Sequence[Played]
    each: Mapping[int, int]  # trials of a seed, by cell
    hours: Sequence[DeviceHours]
    planned: Mapping[int, int]  # seeds of the plan, by cell

    def view(self, name: str, budget: ResolutionBudget) -> ForesightView:
        comparisons = [self._comparison(at, supposed) for at, supposed in enumerate(self.supposed)]
        plan, decided = self.checked.plan.trial_count, sum(one.decided for one in comparisons)
        trials = sorted(plan + self._added(play) for play in self.plays)
        low, middle, high = (_quantile(trials, share) for share in (0.1, 0.5, 0.9))
        devices = [(one.device, one.hours / one.trainings) for one in self.hours]
        return ForesightView(
            table=name, plays=len(self.plays), budget=budget, comparisons=comparisons, decided=decided,
            said=f"about {decided:.1f} of {len(comparisons)} comparisons are decided",
            plan_trials=plan, trials=sum(trials) / len(trials), low_trials=low, high_trials=high,
            hours=[
                DeviceForesight(device=name, plan=plan * hours, low=low * hours, middle=middle * hours,
                                high=high * hours)
                for name, hours in devices
            ],
        )  # fmt: skip

    def _comparison(self, at: int, supposed: Supposition) -> ForeseenComparison:
        cell, number = supposed.pair.cell, len(self.plays)
        return ForeseenComparison(
            cell=cell, labels=dict(self.checked.plan.cells[cell].labels), baseline=supposed.pair.baseline or 0,
            metric=supposed.pair.column.key, supposed=supposed.said(),
            decided=sum(play.words[at] not in ("unresolved", "untested") for play in self.plays) / number,
            seeds=sum(play.seeds[cell] for play in self.plays) / number,
        )  # fmt: skip

    def _added(self, play: Played) -> int:
        """Trials beyond the plan."""
        return sum((seeds - self.planned[cell]) * self.each.get(cell, 1) for cell, seeds in play.seeds.items())


def _planned_seeds(checked: Checked) -> dict[int, frozenset[int]]:
    """By cell, as places on the axis: a resolution leaves cells with unequal seeds, and so may a spec."""
    axis = seed_axis(checked.spec)
    found: dict[int, set[int]] = {cell.index: set() for cell in checked.plan.cells}
    if axis is not None:
        at = {label: place for place, label in enumerate(axis.by_label)}
        for trial in timely(checked.plan.trials()):
            if axis.name in trial.repeat_labels:
                found[trial.cell].add(at[trial.repeat_labels[axis.name]])
    return {cell: frozenset(seeds) for cell, seeds in found.items()}


def _quantile(numbers: Sequence[int], share: float) -> int:
    return numbers[min(len(numbers) - 1, int(share * len(numbers)))]
