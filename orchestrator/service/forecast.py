"""Forecasts of checked specs: how much of a sweep is known already, and what the rest costs."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.cost.estimate import Demand, Slots, Workload, estimate, models, shape, workload
from orchestrator.plan.check import Checked
from orchestrator.settings import Settings
from orchestrator.views import operations
from orchestrator.views.errors import UnavailableError
from orchestrator.views.sweeps import Preview, Reuse
from workers.catalog import Catalog
from workers.contract import Recipe

if TYPE_CHECKING:
    from orchestrator.record.store import Store


MOST_TRIALS: Final = 2_000
"""The cost of larger sweeps is not computed, since that would take seconds."""


def forecast(
    checked: Checked, store: "Store | None", catalog: Catalog, project: str | None = None, planned: Collection[str] = ()
) -> Preview:
    """The trial counts, known results and cost of a checked spec; without a store nothing is known.

    Known are results that a sweep of the project (by default the caller's own) would reuse. Trials with a fingerprint
    of `planned` are only counted: the sweep that is extended has them already.
    """
    plan, spec = checked.plan, checked.spec
    adaptive = spec.search.adaptive
    trials, shares = _by_search(checked, catalog) if adaptive else _planned(checked, catalog, planned)
    reusing = store is not None and not spec.fresh and not adaptive
    within = store.accounts.reusing(project) if store is not None and reusing else 0
    known = store.trainings.known(trials, within) if store is not None and reusing else set[str]()
    times = store.trainings.trained(known, within) if store is not None and known else None
    evaluated, unreached = _evaluable(checked, store if reusing else None, {*planned, *known}, within)
    demands: dict[str, Demand] = defaultdict(Demand)
    for fingerprint, share in shares.items():
        if fingerprint not in known | evaluated:
            share.add_to(demands[share.shape], trials[fingerprint] if adaptive else 1)
    if store is None:
        cost = estimate(demands, {}, spec.slot.gpus)
    else:
        nodes = store.capacity.nodes(present=True)
        number = min(operations.capacity(spec.slot, nodes), operations.MOST_SLOTS)
        slots = Slots(number, operations.shape_of(spec.slot, nodes).gpus > 0)
        cost = estimate(demands, store.trainings.durations(demands), spec.slot.gpus, slots)
    return Preview(
        name=spec.name,
        cells=len(plan.cells),
        candidates=plan.candidate_count,
        trials=plan.trial_count,
        planned=0 if adaptive else plan.trial_count - sum(trials.values()),
        trainings=plan.trial_count if adaptive else len(trials),
        cached=sum(trials[fingerprint] for fingerprint in known),
        evaluated=sum(trials[fingerprint] for fingerprint in evaluated),
        exact=not adaptive,
        reuse=Reuse(trainings=len(known), of=len(trials), first=times[0], last=times[1]) if times else None,
        cost=cost.model_copy(update={"at_most": list(_bounds(checked, shares))}),
        notes=[*checked.notes, *([_trained_for(unreached)] if unreached else [])],
    )


@dataclass(frozen=True, slots=True)
class Share:
    """The part that one training adds to a sweep's cost."""

    shape: str
    models: int
    units: int
    work: Workload
    patient: bool

    @classmethod
    def of(cls, recipe: Recipe, catalog: Catalog) -> "Share":
        """The cost share of the training of a complete recipe."""
        number, span = models(recipe), recipe.iterations or recipe.epochs or 0
        return cls(shape(recipe), number, number * span, workload(recipe, catalog), recipe.patience is not None)

    def add_to(self, demand: Demand, number: int) -> None:
        """Add `number` trainings with this share to a demand."""
        demand.trainings += number
        demand.models += number * self.models
        demand.units += number * self.units
        demand.work += self.work.times(number)


Trials = dict[str, int]
"""The number of trials by fingerprint."""
Shares = dict[str, Share]
"""By fingerprint."""


def _by_search(checked: Checked, catalog: Catalog) -> tuple[Trials, Shares]:
    """One recipe for each cell, which stands for all candidates that a search would try there."""
    trials: Trials = {}
    shares: Shares = {}
    for count, recipe in checked.plan.outlines():
        trials[recipe.fingerprint] = trials.get(recipe.fingerprint, 0) + count
        shares[recipe.fingerprint] = Share.of(recipe, catalog)
    return trials, shares


def _planned(checked: Checked, catalog: Catalog, planned: Collection[str]) -> tuple[Trials, Shares]:
    trials: Trials = {}
    shares: Shares = {}
    for _, repeats in groupby(checked.plan.trials(), lambda trial: (trial.cell, trial.candidate)):
        share: Share | None = None
        for trial in repeats:
            if trial.fingerprint not in planned:
                share = share or Share.of(trial.recipe, catalog)  # repeats of a candidate take equally long
                trials[trial.fingerprint] = trials.get(trial.fingerprint, 0) + 1
                shares.setdefault(trial.fingerprint, share)
    return trials, shares


def _evaluable(checked: Checked, store: "Store | None", known: set[str], project: int) -> tuple[set[str], list[str]]:
    """The fingerprints of trials that kept weights can evaluate, and the metric keys that they cannot give."""
    if store is None:
        return set(), []
    every = (trial for trial in checked.plan.trials() if trial.further and trial.further.names)
    trials = {trial.fingerprint: trial for trial in every}
    unknown = [trial for fingerprint, trial in trials.items() if fingerprint not in known]
    return store.trainings.evaluable(unknown, project)


def _bounds(checked: Checked, shares: Shares) -> Iterator[str]:
    if checked.spec.search.adaptive:
        yield "a search may propose fewer, or what is trained already"
    if checked.spec.prune is not None:
        yield "early stopping leaves out the hopeless"
    if any(share.patient for share in shares.values()):
        yield "`patience` may end trainings"


def _trained_for(keys: Sequence[str]) -> str:
    few = ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
    return f"trainings that differ by `metrics` alone have finished, but the weights that they keep do not tell {few}"


def forecast_here(checked: Checked, settings: Settings, catalog: Catalog) -> Preview:
    """The forecast without a server, from the database of the home folder if there is one."""
    file = Path(settings.database.removeprefix("sqlite:///"))
    if settings.database_url or not file.is_file():
        return forecast(checked, None, catalog)
    from orchestrator.record.store import Store  # needs libraries that a bare client does not have

    try:
        with closing(Store.of(settings, migrate=False)) as store:
            return forecast(checked, store, catalog)
    except UnavailableError:  # a database of another version, or an unreadable one
        return forecast(checked, None, catalog)
