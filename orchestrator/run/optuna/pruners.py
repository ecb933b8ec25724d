"""Optuna's pruners: a study in memory for each competition, in which a trial is a candidate."""

import math
import statistics
import warnings
from collections.abc import Callable, Mapping
from typing import Final

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, SuccessiveHalvingPruner, WilcoxonPruner
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, Trial, TrialState

optuna.logging.set_verbosity(optuna.logging.WARNING)

Options = Mapping[str, float]
"""The options of a rule by name, as `orchestrator.plan.parse` has them."""

NAME: Final = "cell"
"""The name of every study: hyperband draws a trial's bracket from it and from the trial's number."""


class OptunaPruner:
    """Follows `run.pruner.Pruner`."""

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
