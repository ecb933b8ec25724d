"""Optuna's samplers, pruners and importances of axes, rebuilt from recorded trials."""

import importlib.util
import json
import math
import statistics
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import optuna
from optuna import samplers
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, SuccessiveHalvingPruner, WilcoxonPruner
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from orchestrator.run.engine import Values
from orchestrator.views.errors import ConflictError
from orchestrator.views.runs import Dimension

_ABSENT: Final = "–"
_WIDE: Final = 50  # an axis is logarithmic if its greatest value is more than this multiple of its least
_MOST_LABELS: Final = 100


def importances(
    axes: Mapping[str, Sequence[float | str | None]], numbers: Sequence[float], *, higher: bool
) -> dict[str, float]:
    """The importance of each varied axis for the score, the greatest first; they add up to one."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize" if higher else "minimize")
    read = {axis: _read(values) for axis, values in axes.items()}
    varied = {axis: made for axis, made in read.items() if made is not None}
    for at, number in enumerate(numbers):
        study.add_trial(
            optuna.trial.create_trial(
                params={axis: values[at] for axis, (values, _) in varied.items()},
                distributions={axis: distribution for axis, (_, distribution) in varied.items()},
                value=number,
            )
        )
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator)) if varied else {}


def _read(values: Sequence[float | str | None]) -> tuple[list[Any], Any] | None:
    """The values of an axis and their distribution; `None` if all are equal, or too many to be categories."""
    if len(set(values)) < 2:
        return None
    if all(isinstance(value, float) for value in values):
        numbers = [float(value) for value in values]  # type: ignore[arg-type]
        low, high = min(numbers), max(numbers)
        return numbers, FloatDistribution(low, high, log=low > 0 and high > _WIDE * low)
    labels = [_ABSENT if value is None else str(value) for value in values]
    kinds = sorted(set(labels))
    return (labels, CategoricalDistribution(kinds)) if len(kinds) <= _MOST_LABELS else None


optuna.logging.set_verbosity(optuna.logging.WARNING)

Options = Mapping[str, float]  # the options of a pruning rule, as `orchestrator.spec.spec` defines them

NAME: Final = "cell"
"""The name of every study: hyperband draws the bracket of a trial from it and from the trial's number."""


class OptunaPruner:
    """Decides which candidates to stop early. The same reports in the same order give the same decisions."""

    def __init__(self, rule: str, options: Options, *, higher: bool) -> None:
        """`rule`: median, hyperband (which needs `max_evaluations`), asha or wilcoxon. `higher`: scores are better."""
        self._rule, self._options, self._higher = rule, options, higher
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=optuna.exceptions.ExperimentalWarning)
            pruner = _PRUNERS[rule](options)
        self._study = optuna.create_study(
            study_name=NAME,
            direction="maximize" if higher else "minimize",
            sampler=samplers.RandomSampler(seed=0),  # not used
            pruner=pruner,
        )
        self._trials: list[Trial] = []

    def report(self, candidate: int, number: int, value: float) -> None:
        """Record evaluation `number` (1, 2, 3 ...) of a candidate's training; `value` may be NaN."""
        self._trial(candidate).report(value, number)

    def decision(self, candidate: int) -> str | None:
        """The reason to prune a candidate after its latest evaluation, with numbers; `None` if it continues."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # wilcoxon: repeats that the best candidate lacks
            pruned = self._trial(candidate).should_prune()
        if not pruned:
            return None
        trial = self._study.get_trials(deepcopy=False)[candidate]
        step = trial.last_step or 0
        if math.isnan(trial.intermediate_values[step]):
            return "not a number"
        if self._rule == "median":
            return self._by_median(trial, step)
        if self._rule == "asha":
            return self._by_rung(trial, step)
        if self._rule == "hyperband":
            reduction = f"{self._options['reduction']:g}"
            return f"not among the best of its bracket at this rung, of which 1 in {reduction} goes on"
        best = self._study.best_trial
        of_best = statistics.fmean(best.intermediate_values[step] for step in trial.intermediate_values)
        return f"the best candidate has {of_best:.4g} there, and p is below {self._options['p']:g}"

    def finish(self, candidate: int, score: float) -> None:
        """Record the score of a candidate whose training finished."""
        self._study.tell(self._trial(candidate), score)

    def _trial(self, candidate: int) -> Trial:
        while len(self._trials) <= candidate:  # the trial's number is the candidate's
            self._trials.append(self._study.ask())
        return self._trials[candidate]

    def _values_at(self, step: int, *, finished: bool) -> list[float]:
        """The values that all (finished) trials reported at a step, the best first."""
        states = (TrialState.COMPLETE,) if finished else None
        trials = self._study.get_trials(deepcopy=False, states=states)
        values = (trial.intermediate_values[step] for trial in trials if step in trial.intermediate_values)
        return sorted((value for value in values if not math.isnan(value)), reverse=self._higher)

    def _by_median(self, trial: FrozenTrial, step: int) -> str:
        values = [value for value in trial.intermediate_values.values() if not math.isnan(value)]
        best = max(values) if self._higher else min(values)
        peers = self._values_at(step, finished=True)
        own = f"its best is {best:.4g}, " if len(values) > 1 else ""
        noun = "peer" if len(peers) == 1 else "peers"
        return f"{own}the median of {len(peers)} {noun} {statistics.median(peers):.4g}"

    def _by_rung(self, trial: FrozenTrial, step: int) -> str:
        values = self._values_at(step, finished=False)
        place = values.index(trial.intermediate_values[step]) + 1
        further = max(1, len(values) // int(self._options["reduction"]))
        go = "goes" if further == 1 else "go"
        return f"place {place} of {len(values)} at this rung, of which {further} {go} on"


_PRUNERS: Final[Mapping[str, Callable[[Options], BasePruner]]] = {
    "median": lambda given: MedianPruner(
        # Optuna decides for the first time at the last step of the warm-up, we decide after it.
        n_startup_trials=int(given["startup"]),
        n_warmup_steps=int(given["warmup"]) + 1,
    ),
    "asha": lambda given: SuccessiveHalvingPruner(
        min_resource=int(given["min_evaluations"]), reduction_factor=int(given["reduction"])
    ),
    "hyperband": lambda given: HyperbandPruner(
        min_resource=int(given["min_evaluations"]),
        max_resource=max(int(given["min_evaluations"]), int(given["max_evaluations"])),
        reduction_factor=int(given["reduction"]),
    ),
    "wilcoxon": lambda given: WilcoxonPruner(p_threshold=given["p"], n_startup_steps=int(given["startup"])),
}


class OptunaStudy:
    """Suggests the candidates of one cell. The same seed and the same scores give the same suggestions."""

    def __init__(self, sampler: str, dimensions: Sequence[Dimension], seed: int, *, higher: bool) -> None:
        """Raises ConflictError if the sampler needs a package that is not installed."""
        self._dimensions = dimensions
        self._study = optuna.create_study(
            sampler=_sampler(sampler, seed), direction="maximize" if higher else "minimize"
        )
        self._open: dict[int, Trial] = {}  # by our number
        self._count = 0
        self._exhausted = False

    def ask(self, recorded: Values | None = None) -> tuple[int, Values] | None:
        """The number, from 0, and the values of the next candidate, or of the `recorded` one as if just suggested.

        `None` means that every point has been suggested.
        """
        if self._exhausted and recorded is None:
            return None
        if recorded is not None:
            self._study.enqueue_trial(_named(self._dimensions, recorded))
        trial = self._study.ask()
        values: dict[str, str | float] = {}
        for dimension in self._dimensions:
            if dimension.axis not in values and _applies(dimension, values):
                values[dimension.axis] = _suggest(trial, dimension)
        number, self._count = self._count, self._count + 1
        self._open[number] = trial
        return number, values

    def tell(self, number: int, score: float | None, pruned: int | None = None) -> None:
        """Record the score of a suggested candidate; `None` if it failed, diverged or was cancelled.

        A suggestion that was pruned after evaluation `pruned` has the score of that evaluation, `None` for NaN.
        """
        trial = self._open.pop(number)
        try:
            if pruned is not None:
                trial.report(math.nan if score is None else score, pruned)
                self._study.tell(trial, state=TrialState.PRUNED)
            elif score is None:
                self._study.tell(trial, state=TrialState.FAIL)
            else:
                self._study.tell(trial, score)
        except RuntimeError:
            # brute_force stops the study after its last point, which Optuna allows only within `optimize`.
            if not self._study.trials[trial.number].state.is_finished():
                raise
            self._exhausted = True

    def learn(self, values: Values, score: float | None, pruned: int | None = None) -> None:
        """Add a recorded candidate with its score, if asking again does not suggest the same one."""
        self._study.add_trial(_trial(self._dimensions, Answer(values, score, open=False, pruned=pruned)))
        self._count += 1


@dataclass(frozen=True, slots=True)
class Answer:
    """A suggested candidate and its score, which is open while it trains."""

    values: Values
    score: float | None
    open: bool
    pruned: int | None = None  # the evaluation after which it was pruned, with the score of that evaluation


def write_journal(
    file: Path, name: str, dimensions: Sequence[Dimension], answers: Sequence[Answer], *, higher: bool
) -> None:
    """Write the search of a cell as an Optuna journal, which Optuna's tools read; replaces the file."""
    with TemporaryDirectory(dir=file.parent) as folder:
        written = Path(folder) / file.name
        storage = JournalStorage(JournalFileBackend(str(written)))
        study = optuna.create_study(storage=storage, study_name=name, direction="maximize" if higher else "minimize")
        study.add_trials([_trial(dimensions, answer) for answer in answers])
        written.replace(file)


def _trial(dimensions: Sequence[Dimension], answer: Answer) -> FrozenTrial:
    known = _named(dimensions, answer.values)
    used = {dimension.name: _distribution(dimension) for dimension in dimensions if dimension.name in known}
    score = None if answer.open else answer.score
    state, reported = TrialState.FAIL if score is None else TrialState.COMPLETE, {}
    if answer.open:
        state = TrialState.RUNNING
    elif answer.pruned is not None:
        state, reported = TrialState.PRUNED, {answer.pruned: math.nan if score is None else score}
    return optuna.trial.create_trial(
        state=state, value=score, params=known, distributions=used, intermediate_values=reported
    )


def _named(dimensions: Sequence[Dimension], values: Values) -> dict[str, str | float]:
    """Values by the name of the dimension instead of its axis."""
    found: dict[str, str | float] = {}
    seen: dict[str, str | float] = {}
    for dimension in dimensions:
        axis = dimension.axis
        if axis in values and axis not in seen and _applies(dimension, seen):
            found[dimension.name] = seen[axis] = values[axis]
    return found


def _sampler(name: str, seed: int) -> samplers.BaseSampler:
    for module in _NEEDED.get(name, ()):
        if importlib.util.find_spec(module) is None:
            raise ConflictError(f"search '{name}' needs the package {module} where the conductor runs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=optuna.exceptions.ExperimentalWarning)
        return _SAMPLERS[name](seed)


_SAMPLERS: Final[Mapping[str, Callable[[int], samplers.BaseSampler]]] = {
    "random": lambda seed: samplers.RandomSampler(seed=seed),
    # In groups, since with `when` not every suggestion has all dimensions.
    "tpe": lambda seed: samplers.TPESampler(seed=seed, group=True),
    "gp": lambda seed: samplers.GPSampler(seed=seed, warn_independent_sampling=False),
    "cmaes": lambda seed: samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False),
    "qmc": lambda seed: samplers.QMCSampler(
        seed=seed, scramble=True, warn_asynchronous_seeding=False, warn_independent_sampling=False
    ),
    "brute_force": lambda seed: samplers.BruteForceSampler(seed=seed, avoid_premature_stop=True),
}
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {"gp": ("torch",), "cmaes": ("cmaes",)}


def _applies(dimension: Dimension, values: Values) -> bool:
    return all(str(values.get(axis, "")) in labels for axis, labels in dimension.when.items())


def _suggest(trial: Trial, of: Dimension) -> str | float:
    if (span := of.span) is None:
        return str(trial.suggest_categorical(of.name, of.labels))
    if span.whole:
        return trial.suggest_int(of.name, int(span.low), int(span.high), step=int(span.step or 1), log=span.log)
    return trial.suggest_float(of.name, span.low, span.high, step=span.step, log=span.log)


def _distribution(of: Dimension) -> BaseDistribution:
    if (span := of.span) is None:
        return CategoricalDistribution(of.labels)
    if span.whole:
        return IntDistribution(int(span.low), int(span.high), span.log, int(span.step or 1))
    return FloatDistribution(span.low, span.high, span.log, span.step)


if __name__ == "__main__":
    given = json.load(sys.stdin)
    json.dump(importances(given["axes"], given["numbers"], higher=given["higher"]), sys.stdout)
