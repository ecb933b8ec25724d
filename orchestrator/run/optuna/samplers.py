"""Optuna's samplers behind ask and tell: a study in memory for each cell, rebuilt by replaying what was recorded."""

import importlib.util
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
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

from orchestrator.run.search import Values
from orchestrator.views.errors import ConflictError
from orchestrator.views.runs import Dimension

optuna.logging.set_verbosity(optuna.logging.WARNING)


class OptunaStudy:
    """Follows `run.search.Study`. The seed and the order of questions and answers decide what it suggests."""

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
