"""What a checked spec would become: how much of it is known already, and what the rest would cost."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.cost.estimate import Cost, Demand, Slots, Workload, estimate, models, shape, workload
from orchestrator.plan import grid
from orchestrator.plan.grid import Contents
from orchestrator.plan.validated import Checked
from orchestrator.settings import Settings
from orchestrator.spec.axes import Slot
from orchestrator.spec.spec import Spec
from orchestrator.views import operations
from orchestrator.views.accounts import caller
from orchestrator.views.errors import UnavailableError
from orchestrator.views.states import SWEEP_ENDED, SweepState
from orchestrator.views.sweeps import Preview, Reuse, SweepView
from workers.catalog import Catalog
from workers.contract import Recipe

if TYPE_CHECKING:
    from orchestrator.record.store import Store


@dataclass(frozen=True, slots=True)
class Share:
    """What one training adds to a sweep's cost."""

    shape: str
    models: int
    units: int
    work: Workload
    patient: bool

    @classmethod
    def of(cls, recipe: Recipe, catalog: Catalog) -> "Share":
        """That of a complete recipe."""
        number, span = models(recipe), recipe.iterations or recipe.epochs or 0
        return cls(shape(recipe), number, number * span, workload(recipe, catalog), recipe.patience is not None)

    def add_to(self, demand: Demand, number: int) -> None:
        """Count so many of it."""
        demand.trainings += number
        demand.models += number * self.models
        demand.units += number * self.units
        demand.work += self.work.times(number)


Trials = dict[str, int]
"""The number of trials by fingerprint."""
Shares = dict[str, Share]
"""By fingerprint."""


def forecast(checked: Checked, store: "Store | None", catalog: Catalog, project: str | None = None) -> Preview:
    """Counts, known results and cost; without a store nothing is known.

    Known is what a sweep of the project would reuse: by its name, else of the one that the caller's sweeps are of.
    """
    plan, spec = checked.plan, checked.spec
    adaptive = spec.search.adaptive
    trials, shares = _found_by_search(checked, catalog) if adaptive else _planned(checked, catalog)
    reusing = store is not None and not spec.fresh and not adaptive
    within = store.accounts.reusing(project) if store is not None and reusing else 0
    known = store.trainings.known(trials, within) if store is not None and reusing else set[str]()
    times = store.trainings.trained(known, within) if store is not None and known else None
    evaluated, unreached = _evaluable(checked, store if reusing else None, known, within)
    demands: dict[str, Demand] = defaultdict(Demand)
    for fingerprint, share in shares.items():
        if fingerprint not in known | evaluated:
            share.add_to(demands[share.shape], trials[fingerprint] if adaptive else 1)
    cost = (
        estimate(demands, store.trainings.durations(demands), spec.slot.gpus, _slots(spec.slot, store))
        if store is not None
        else estimate(demands, {}, spec.slot.gpus)
    )
    return Preview(
        name=spec.name,
        cells=len(plan.cells),
        candidates=plan.candidate_count,
        trials=plan.trial_count,
        trainings=plan.trial_count if adaptive else len(trials),
        cached=sum(trials[fingerprint] for fingerprint in known),
        evaluated=sum(trials[fingerprint] for fingerprint in evaluated),
        exact=not adaptive,
        reuse=Reuse(trainings=len(known), of=len(trials), first=times[0], last=times[1]) if times else None,
        cost=cost.model_copy(update={"at_most": list(_bounds(checked, shares))}),
        notes=[*checked.notes, *([_trained_for(unreached)] if unreached else [])],
    )


def _evaluable(checked: Checked, store: "Store | None", known: set[str], project: int) -> tuple[set[str], list[str]]:
    """The fingerprints of what kept weights can tell, and the keys that they cannot."""
    if store is None:
        return set(), []
    asked = {one.fingerprint: one for one in checked.plan.trials() if one.recipe.metrics}
    return store.trainings.evaluable([one for fingerprint, one in asked.items() if fingerprint not in known], project)


def _trained_for(keys: Sequence[str]) -> str:
    few = ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
    return f"trainings that differ by `metrics` alone have finished, but the weights that they keep do not tell {few}"


def _bounds(checked: Checked, shares: Mapping[str, Share]) -> Iterator[str]:
    """Why all of it may turn out to be less."""
    if checked.spec.search.adaptive:
        yield "a search may propose fewer, or what is trained already"
    if checked.spec.prune is not None:
        yield "early stopping leaves out the hopeless"
    if any(share.patient for share in shares.values()):
        yield "`patience` may end trainings"


def _slots(slot: Slot, store: "Store") -> Slots:
    nodes = store.capacity.nodes(present=True)
    return Slots(operations.slots(slot, nodes), operations.shape_of(slot, nodes).gpus > 0)


def forecast_here(checked: Checked, settings: Settings, catalog: Catalog) -> Preview:
    """The same, asking no server: with what the database of the home folder holds, where there is one."""
    file = Path(settings.database.removeprefix("sqlite:///"))
    if settings.database_url or not file.is_file():
        return forecast(checked, None, catalog)
    from orchestrator.record.store import Store  # only now: without a database nobody waits for its libraries

    try:
        with closing(Store.of(settings, migrate=False)) as store:
            return forecast(checked, store, catalog)
    except UnavailableError:  # another version's, or not to be read
        return forecast(checked, None, catalog)


def _planned(checked: Checked, catalog: Catalog) -> tuple[Trials, Shares]:
    trials: Trials = {}
    shares: Shares = {}
    place, last = (-1, -1), None
    alike: dict[tuple[str, int | None, int | None, bool], Share] = {}
    for trial in checked.plan.trials():
        if last is None or (trial.cell, trial.candidate) != place:  # the repeats of a candidate take as long
            place, recipe = (trial.cell, trial.candidate), trial.recipe
            decides = shape(recipe), recipe.iterations, recipe.epochs, recipe.patience is not None
            last = alike.get(decides) or alike.setdefault(decides, Share.of(recipe, catalog))
        trials[trial.fingerprint] = trials.get(trial.fingerprint, 0) + 1
        shares.setdefault(trial.fingerprint, last)
    return trials, shares


def _found_by_search(checked: Checked, catalog: Catalog) -> tuple[Trials, Shares]:
    """One recipe for each cell, which stands for all that a search would try there."""
    trials: Trials = {}
    shares: Shares = {}
    for count, recipe in checked.plan.outlines():
        trials[recipe.fingerprint] = trials.get(recipe.fingerprint, 0) + count
        shares[recipe.fingerprint] = Share.of(recipe, catalog)
    return trials, shares


MOST_TRIALS: Final = 2_000
"""Of larger sweeps it is not counted: that would take seconds."""
SECONDS: Final = 60.0
"""How old it may be."""
_KEPT: Final = 256  # sweeps


class Outlook:
    """Remembers what it counted, since pages are drawn every few seconds."""

    def __init__(self, store: "Store", catalog: Catalog, now: Callable[[], float] = time.monotonic) -> None:
        self._store, self._catalog, self._now = store, catalog, now
        self._counted: dict[tuple[int, str], tuple[float, int, Cost | None]] = {}

    def left(self, sweep: SweepView) -> Cost | None:
        """The cost of what is left; none of a sweep that has ended, of a large one, and where it cannot be known.

        The last is so of a search that has begun, of one that trains everything anew, and of a spec of another release.
        """
        if sweep.state in SWEEP_ENDED or sweep.total > MOST_TRIALS:
            return None
        key = sweep.id, caller().key  # what has trained already is counted as far as it is seen
        at, total, cost = self._counted.get(key, (float("-inf"), -1, None))
        if self._now() - at > SECONDS or total != sweep.total:  # it may have been extended
            cost = self._count(sweep)
            self._counted.pop(key, None)
            self._counted[key] = (self._now(), sweep.total, cost)
            while len(self._counted) > _KEPT:
                self._counted.pop(next(iter(self._counted)), None)
        return cost

    def _count(self, sweep: SweepView) -> Cost | None:
        try:
            spec = Spec.model_validate(sweep.spec)
            if (spec.search.adaptive or spec.fresh) and sweep.state is not SweepState.QUEUED:
                return None
            contents = Contents.of(self._store.data.planned_content(sweep.id))
            return forecast(
                Checked(spec, grid.expand(spec, self._catalog, contents)), self._store, self._catalog, sweep.project
            ).cost
        except (ValueError, LookupError):  # of another release, or of own parts that are gone
            return None
