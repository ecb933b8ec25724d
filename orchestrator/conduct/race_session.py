"""The race within one cell: after each repeat that all who race have ended, those that are beaten leave it."""

from collections.abc import Iterable, Sequence

from orchestrator.publish.verdicts.boundary import beaten
from orchestrator.record.searches import Competitor, RecordedEvaluation
from orchestrator.record.transitions import PruningDecision
from orchestrator.spec.axes import Race
from orchestrator.views.states import TRIAL_ACTIVE, TrialState


class RaceSession:
    """Judges whole rounds alone, in their order: what each repeat gave decides, and not when it came."""

    def __init__(self, key: str, race: Race, *, higher: bool) -> None:
        self._key, self._race, self._higher = key, race, higher
        self._trials: dict[int, dict[int, Competitor]] = {}  # by candidate and repeat
        self._out: set[int] = set()
        self._decided: set[int] = set()  # candidates that are pruned, or were and are trained to their end
        self._round = race.first  # repeats after which is judged next
        self._due: list[PruningDecision] = []

    def after(self, trial: int) -> int:
        """No evaluations are read."""
        return 0

    def take(self, competitors: Sequence[Competitor], rows: Iterable[RecordedEvaluation] = ()) -> None:
        """How trials stand now; judges the rounds that have ended."""
        for one in competitors:
            self._trials.setdefault(one.candidate, {})[one.repeat] = one
            if one.spared or one.state is TrialState.PRUNED:
                self._decided.add(one.candidate)
        shared = self._shared()
        while self._round < len(shared) and self._judged(shared[: self._round]):
            self._round += 1

    def decisions(self) -> list[PruningDecision]:
        """Candidates that left the race since this was asked last."""
        due, self._due = self._due, []
        return [one for one in due if one.candidate not in self._decided]

    def decide(self, candidate: int) -> None:
        """Note that a candidate is pruned."""
        self._decided.add(candidate)

    def _shared(self) -> list[int]:
        """The repeats that every candidate has: of the last one there is nothing left to spare."""
        repeats = [set(one) for one in self._trials.values()]
        return sorted(set.intersection(*repeats)) if repeats else []

    def _judged(self, repeats: Sequence[int]) -> bool:
        """Whether the round has ended; those who are beaten, or cannot be selected any more, are out then."""
        racing = {one: [its[at] for at in repeats] for one, its in self._trials.items() if one not in self._out}
        if any(trial.state in TRIAL_ACTIVE for its in racing.values() for trial in its):
            return False
        scores: dict[int, list[float]] = {}
        for candidate, its in racing.items():
            known = [trial.score for trial in its if trial.score is not None]
            if len(known) == len(repeats):
                scores[candidate] = known
            elif lost := [trial for trial in its if trial.state is TrialState.FINISHED and trial.score is None]:
                self._drop(lost[0], known, "one of them diverged, so that it cannot be selected")
        race = self._race
        losers = beaten(scores, len(self._trials) - 1, race.level, race.first, higher=self._higher)
        for candidate, out in losers.items():
            ahead = f"candidate {out.by} is ahead by {out.difference:.4g} (t = {out.t:.3g}, {out.needed:.3g} suffices)"
            self._drop(racing[candidate][-1], scores[candidate], f"raced out: {ahead}")
        return True

    def _drop(self, trial: Competitor, known: Sequence[float], why: str) -> None:
        self._out.add(trial.candidate)
        mean = sum(known) / len(known) if known else float("nan")
        said = f"after {self._round} repeats: mean {self._key} {mean:.4g}; {why}"
        self._due.append(
            PruningDecision(trial.sweep, trial.cell, trial.candidate, trial.trial, self._round, mean, said)
        )
