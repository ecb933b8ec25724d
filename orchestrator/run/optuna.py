"""Optuna's samplers, pruners and importance, each rebuilt from what was recorded."""

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
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, SuccessiveHalvingPruner, WilcoxonPruner
from optuna.samplers import (
    BaseSampler,
    BruteForceSampler,
    CmaEsSampler,
    GPSampler,
    QMCSampler,
    RandomSampler,
    TPESampler,
)
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from orchestrator.run.engine import Values
from orchestrator.views.errors import ConflictError
from orchestrator.views.runs import Dimension

_ABSENT: Final = "–"
_WIDE: Final = 50  # of the greatest to the least, above which an axis is logarithmic
_MOST_LABELS: Final = 100


def importances(
    axes: Mapping[str, Sequence[float | str | None]], numbers: Sequence[float], *, higher: bool
) -> dict[str, float]:
    """The share of each axis that varies, the greatest first; they add up to one."""
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
    """The values of an axis and their distribution; none where all are equal, or too many to be categories."""
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

Options = Mapping[str, float]
"""The options of a rule by name, as `orchestrator.plan.parse` has them."""

NAME: Final = "cell"
"""The name of every study: hyperband draws a trial's bracket from it and from the trial's number."""


class OptunaPruner:
    """Follows `run.engine.Pruner`."""

    def __init__(self, rule: str, options: Options, *, higher: bool) -> None:
        """A pruner by `rule` (median, hyperband, asha or wilcoxon), of scores of which higher or lower ones are better.

        Of hyperband `max_evaluations` is needed.
        """
        self._rule, self._options, self._higher = rule, options, higher
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=optuna.exceptions.ExperimentalWarning)
            pruner = _PRUNERS[rule](options)
        self._study = optuna.create_study(
            study_name=NAME,
            direction="maximize" if higher else "minimize",
            sampler=RandomSampler(seed=0),  # nothing is drawn
            pruner=pruner,
        )
        self._trials: list[Trial] = []

    def report(self, candidate: int, number: int, value: float) -> None:
        """Evaluation `number` (1, 2, 3 ...) of a candidate's training; NaN where it was not a number."""
        self._trial(candidate).report(value, number)

    def decision(self, candidate: int) -> str | None:
        """Why the candidate is to be pruned at its latest evaluation, with numbers; none: it goes on."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # wilcoxon: repeats that the best candidate has not
            pruned = self._trial(candidate).should_prune()
        if not pruned:
            return None
        one = self._study.get_trials(deepcopy=False)[candidate]
        if math.isnan(one.intermediate_values[one.last_step or 0]):
            return "not a number"
        return _WHY[self._rule](self, one)

    def finish(self, candidate: int, score: float) -> None:
        """The candidate's training ended well, with this score."""
        self._study.tell(self._trial(candidate), score)

    def _trial(self, candidate: int) -> Trial:
        while len(self._trials) <= candidate:  # the trial's number is the candidate's
            self._trials.append(self._study.ask())
        return self._trials[candidate]

    def _there(self, step: int, *, finished: bool) -> list[float]:
        """What was reported at a step, the best first."""
        states = (TrialState.COMPLETE,) if finished else None
        trials = self._study.get_trials(deepcopy=False, states=states)
        values = (one.intermediate_values[step] for one in trials if step in one.intermediate_values)
        return sorted((value for value in values if not math.isnan(value)), reverse=self._higher)

    def _by_median(self, one: FrozenTrial) -> str:
        values = [value for value in one.intermediate_values.values() if not math.isnan(value)]
        best = max(values) if self._higher else min(values)
        peers = self._there(one.last_step or 0, finished=True)
        said = f"its best is {best:.4g}, the median of " if len(values) > 1 else "the median of "
        return f"{said}{_counted(len(peers), 'peer')} {statistics.median(peers):.4g}"

    def _by_rung(self, one: FrozenTrial) -> str:
        step = one.last_step or 0
        values = self._there(step, finished=False)
        place = values.index(one.intermediate_values[step]) + 1
        further = max(1, len(values) // int(self._options["reduction"]))
        go = "goes" if further == 1 else "go"
        return f"place {place} of {len(values)} at this rung, of which {further} {go} on"

    def _by_bracket(self, one: FrozenTrial) -> str:
        return f"not among the best of its bracket at this rung, of which 1 in {self._options['reduction']:g} goes on"

    def _by_test(self, one: FrozenTrial) -> str:
        best = self._study.best_trial
        of_best = statistics.fmean(best.intermediate_values[step] for step in one.intermediate_values)
        return f"the best candidate has {of_best:.4g} there, and p is below {self._options['p']:g}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


_PRUNERS: Final[Mapping[str, Callable[[Options], BasePruner]]] = {
    "median": lambda given: MedianPruner(
        # Optuna gives its first decision at the warm-up's last step, ours after it.
        n_startup_trials=int(given["startup"]), n_warmup_steps=int(given["warmup"]) + 1
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
}  # fmt: skip

_WHY: Final[Mapping[str, Callable[[OptunaPruner, FrozenTrial], str]]] = {
    "median": OptunaPruner._by_median,
    "asha": OptunaPruner._by_rung,
    "hyperband": OptunaPruner._by_bracket,
    "wilcoxon": OptunaPruner._by_test,
}


class OptunaStudy:
    """Follows `run.engine.Study`. The seed and the order of questions and answers decide what it suggests."""

    def __init__(self, sampler: str, dimensions: Sequence[Dimension], seed: int, *, higher: bool) -> None:
        """A study of one cell; ConflictError when the sampler needs what is not installed here."""
        self._dimensions = dimensions
        self._study = optuna.create_study(
            sampler=_sampler(sampler, seed), direction="maximize" if higher else "minimize"
        )
        self._open: dict[int, Trial] = {}  # by our number
        self._count = 0
        self._exhausted = False

    def ask(self, recorded: Values | None = None) -> tuple[int, Values] | None:
        """The next suggestion and its number, or the recorded one as if it had just been suggested.

        None when every point has been suggested.
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
        """The score of a suggestion; none when it failed, diverged or was cancelled.

        One that was pruned after evaluation `pruned` has what it had there; none where that was not a number.
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
            # brute_force stops the study after its last point, which Optuna allows within `optimize` only.
            if not self._study.trials[trial.number].state.is_finished():
                raise
            self._exhausted = True

    def learn(self, values: Values, score: float | None, pruned: int | None = None) -> None:
        """Take up a recorded suggestion and its score, where asking anew does not give the same."""
        self._study.add_trial(_trial(self._dimensions, Answer(values, score, open=False, pruned=pruned)))
        self._count += 1

    def export(self) -> optuna.Study:
        """The study itself, for Optuna's own tools."""
        return self._study


@dataclass(frozen=True, slots=True)
class Answer:
    """A suggestion and what became of it; open while it trains."""

    values: Values
    score: float | None
    open: bool
    pruned: int | None = None
    """The evaluation after which it was pruned; its score is what it had there."""


def write_journal(
    file: Path, name: str, dimensions: Sequence[Dimension], answers: Sequence[Answer], *, higher: bool
) -> None:
    """Write a study as a journal for Optuna's own tools, trials in the order of the suggestions; replaces the file."""
    with TemporaryDirectory(dir=file.parent) as folder:
        written = Path(folder) / file.name
        storage = JournalStorage(JournalFileBackend(str(written)))
        study = optuna.create_study(storage=storage, study_name=name, direction="maximize" if higher else "minimize")
        study.add_trials([_trial(dimensions, one) for one in answers])
        written.replace(file)


def _trial(dimensions: Sequence[Dimension], answer: Answer) -> FrozenTrial:
    known = _named(dimensions, answer.values)
    used = {one.name: _distribution(one) for one in dimensions if one.name in known}
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
    """Values by the names of the dimensions that they were drawn from."""
    found: dict[str, str | float] = {}
    seen: dict[str, str | float] = {}
    for one in dimensions:
        if one.axis in values and one.axis not in seen and _applies(one, seen):
            found[one.name] = seen[one.axis] = values[one.axis]
    return found


def _sampler(name: str, seed: int) -> BaseSampler:
    for module in _NEEDED.get(name, ()):
        if importlib.util.find_spec(module) is None:
            raise ConflictError(f"search '{name}' needs the package {module} where the conductor runs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=optuna.exceptions.ExperimentalWarning)
        return _SAMPLERS[name](seed)


_SAMPLERS: Final[Mapping[str, Callable[[int], BaseSampler]]] = {
    "random": lambda seed: RandomSampler(seed=seed),
    # By group, since with `when` not every suggestion has all dimensions.
    "tpe": lambda seed: TPESampler(seed=seed, group=True),
    "gp": lambda seed: GPSampler(seed=seed, warn_independent_sampling=False),
    "cmaes": lambda seed: CmaEsSampler(seed=seed, warn_independent_sampling=False),
    "qmc": lambda seed: QMCSampler(
        seed=seed, scramble=True, warn_asynchronous_seeding=False, warn_independent_sampling=False
    ),
    "brute_force": lambda seed: BruteForceSampler(seed=seed, avoid_premature_stop=True),
}
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {"gp": ("torch",), "cmaes": ("cmaes",)}


def _applies(one: Dimension, values: Values) -> bool:
    return all(str(values.get(axis, "")) in labels for axis, labels in one.when.items())


def _suggest(trial: Trial, one: Dimension) -> str | float:
    if one.labels:
        return str(trial.suggest_categorical(one.name, one.labels))
    if one.whole:
        return trial.suggest_int(one.name, int(one.low), int(one.high), step=int(one.step or 1), log=one.log)
    return trial.suggest_float(one.name, one.low, one.high, step=one.step, log=one.log)


def _distribution(one: Dimension) -> BaseDistribution:
    if one.labels:
        return CategoricalDistribution(one.labels)
    if one.whole:
        return IntDistribution(int(one.low), int(one.high), one.log, int(one.step or 1))
    return FloatDistribution(one.low, one.high, one.log, one.step)


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump(importances(asked["axes"], asked["numbers"], higher=asked["higher"]), sys.stdout)
