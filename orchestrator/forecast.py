"""What a checked spec would become: how much of it is known already, and what the rest would cost."""

from collections import defaultdict
from pathlib import Path

from orchestrator.checked import Checked
from orchestrator.costs import Demand, estimate, models, shape
from orchestrator.errors import UnavailableError
from orchestrator.record.store import Store
from orchestrator.settings import Settings
from orchestrator.views import Preview


def forecast(checked: Checked, store: Store | None) -> Preview:
    """Counts, known results and cost; without a store nothing is known."""
    plan, adaptive = checked.plan, checked.spec.search.adaptive
    trials, shapes = _found_by_search(checked) if adaptive else _planned(checked)
    reusing = store is not None and not checked.spec.fresh and not adaptive
    known = store.known(trials) if store is not None and reusing else set[str]()
    demands: dict[str, Demand] = defaultdict(Demand)
    for fingerprint, (one, count) in shapes.items():
        if fingerprint not in known:
            number = trials[fingerprint] if adaptive else 1
            demands[one].trainings += number
            demands[one].models += number * count
    return Preview(
        name=checked.spec.name,
        cells=len(plan.cells),
        candidates=plan.candidate_count,
        trials=plan.trial_count,
        trainings=plan.trial_count if adaptive else len(trials),
        cached=sum(trials[fingerprint] for fingerprint in known),
        exact=not adaptive,
        cost=estimate(demands, store.durations(demands) if store is not None else {}, checked.spec.slot.gpus),
        notes=list(checked.notes),
    )


def forecast_here(checked: Checked, settings: Settings) -> Preview:
    """The same, asking no server: with what the database of the home folder holds, where there is one."""
    file = Path(settings.database.removeprefix("sqlite:///"))
    if settings.database_url or not file.is_file():
        return forecast(checked, None)
    store = Store.open(settings.database, migrate=False)
    try:
        return forecast(checked, store)
    except UnavailableError:  # another version's, or not to be read
        return forecast(checked, None)
    finally:
        store.close()


Trials = dict[str, int]
"""The number of trials by fingerprint."""
Shapes = dict[str, tuple[str, int]]
"""The shape and the number of models by fingerprint."""


def _planned(checked: Checked) -> tuple[Trials, Shapes]:
    trials: Trials = {}
    shapes: Shapes = {}
    place, last = (-1, -1), ("", 0)
    for trial in checked.plan.trials():
        if (trial.cell, trial.candidate) != place:  # the repeats of a candidate take as long as one another
            place, last = (trial.cell, trial.candidate), (shape(trial.recipe), models(trial.recipe))
        trials[trial.fingerprint] = trials.get(trial.fingerprint, 0) + 1
        shapes.setdefault(trial.fingerprint, last)
    return trials, shapes


def _found_by_search(checked: Checked) -> tuple[Trials, Shapes]:
    """One recipe for each cell, which stands for all that a search would try there."""
    trials: Trials = {}
    shapes: Shapes = {}
    for count, recipe in checked.plan.outlines():
        trials[recipe.fingerprint] = trials.get(recipe.fingerprint, 0) + count
        shapes[recipe.fingerprint] = (shape(recipe), models(recipe))
    return trials, shapes
