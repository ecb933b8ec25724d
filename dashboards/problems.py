"""A sweep's problems, those that say the same gathered under one line."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from orchestrator.views.sweeps import TrialProblem

MOST: Final = 100
"""As many problems as a sweep is given with: when there are that many, there may be more."""
FIRST: Final = 5
"""Trials of one problem that are named at once; the others are folded."""


@dataclass(frozen=True, slots=True)
class ProblemGroup:
    """One message and the trials that ended with it."""

    kind: str
    message: str
    trials: list[TrialProblem] = field(default_factory=list)

    @property
    def first(self) -> list[TrialProblem]:
        """The trials that are named at once."""
        return self.trials[:FIRST]

    @property
    def others(self) -> list[TrialProblem]:
        """The trials that are folded."""
        return self.trials[FIRST:]


def gathered(problems: Iterable[TrialProblem]) -> list[ProblemGroup]:
    """Failures before divergences, the most frequent first."""
    found: dict[tuple[str, str], ProblemGroup] = {}
    for one in problems:
        kind = "diverged" if one.state == "finished" else one.state.value
        found.setdefault((kind, one.message), ProblemGroup(kind, one.message)).trials.append(one)
    return sorted(found.values(), key=lambda problem: (problem.kind == "diverged", -len(problem.trials)))
