"""A sweep's problems, those that say the same gathered under one line."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from orchestrator.views.sweeps import TrialProblem

MOST: Final = 100
"""As many problems as a sweep is given with: when there are that many, there may be more."""
_NUMBERS: Final = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
FIRST: Final = 5
"""Trials of one problem that are named at once; the others are folded."""


@dataclass(frozen=True, slots=True)
class ProblemGroup:
    """One cause and the trials that ended by it."""

    kind: str
    message: str
    """The first line of what the first of them said."""
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
    """Failures before divergences, the most frequent first; messages that differ in numbers alone have one cause."""
    found: dict[tuple[str, str], ProblemGroup] = {}
    for one in problems:
        kind = "diverged" if one.state == "finished" else one.state.value
        first = one.message.partition("\n")[0]
        found.setdefault((kind, _NUMBERS.sub("0", first)), ProblemGroup(kind, first)).trials.append(one)
    return sorted(found.values(), key=lambda problem: (problem.kind == "diverged", -len(problem.trials)))
