"""The session within one cell: what its trainings reported so far, told to its pruners in the recorded order."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from orchestrator.record.searches import Competitor, RecordedEvaluation
from orchestrator.record.transitions import PruningDecision
from orchestrator.run.engine import Pruner
from orchestrator.views.states import TrialState

_NEVER: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class Standing:
    """A trial of the session, as far as its pruner knows it."""

    one: Competitor
    row: int = 0  # the last evaluation that was read
    step: int = -1  # its step
    number: int = 0  # how many evaluations it has
    value: float = math.nan  # the last of them
    asked: int = 0  # how many evaluations it had when it was last asked for
    why: str = ""  # the latest decision, where it was to prune
    over: bool = False  # whether its end is known


class PruningSession:
    """Prunes by evaluations: each repeat of a cell is a competition of its own.

    The same rows give the same decisions, so that a session can be entered anew after any crash.
    """

    def __init__(self, key: str, make: Callable[[], Pruner]) -> None:
        self._key, self._make = key, make
        self._pruners: dict[int, Pruner] = {}  # by repeat
        self._entries: dict[int, Standing] = {}  # by trial
        self._repeats: Counter[int] = Counter()  # by candidate
        self._hopeless: dict[int, Standing] = {}  # those whose latest decision is to prune, by trial
        self._decided: set[int] = set()  # candidates that are pruned, or were and are trained to their end

    def after(self, trial: int) -> int:
        """The last row of a trial's evaluations that is known; 0 where there is none."""
        entry = self._entries.get(trial)
        return 0 if entry is None else entry.row

    def take(self, competitors: Sequence[Competitor], rows: Iterable[RecordedEvaluation]) -> None:
        """How trials stand now, and what their trainings reported since, in the order of the rows."""
        entries = [self._enter(one) for one in competitors]
        self._follow(entries, rows)

    def decisions(self) -> list[PruningDecision]:
        """Candidates that are to be pruned by the latest decision on one of their trials; each is told once."""
        found: dict[int, PruningDecision] = {}
        for entry in self._hopeless.values():
            one = entry.one
            # The further repeats of a search's winner, which reproduce it, compete with nobody.
            if one.candidate not in self._decided and one.repeat < self._shared():
                found.setdefault(one.candidate, self._decision(entry))
        self._hopeless.clear()
        return list(found.values())

    def decide(self, candidate: int) -> None:
        """Note that a candidate is pruned."""
        self._decided.add(candidate)

    def _enter(self, one: Competitor) -> Standing:
        if one.trial not in self._entries:
            self._repeats[one.candidate] += 1
        entry = self._entries.setdefault(one.trial, Standing(one))
        entry.one = one
        if one.spared or one.state is TrialState.PRUNED:
            self._decided.add(one.candidate)
        return entry

    def _follow(self, entries: Sequence[Standing], rows: Iterable[RecordedEvaluation]) -> None:
        by_training: defaultdict[int, list[Standing]] = defaultdict(list)
        for entry in entries:
            by_training[entry.one.training].append(entry)
        ends = [entry for entry in entries if entry.one.state is TrialState.FINISHED and not entry.over]
        ends.sort(key=lambda entry: entry.one.ended or _NEVER, reverse=True)
        for row in rows:
            while ends and (ends[-1].one.ended or _NEVER) < row.at:
                self._end(ends.pop())
            for entry in by_training[row.training]:
                self._evaluated(entry, row)
        while ends:
            self._end(ends.pop())

    def _evaluated(self, entry: Standing, row: RecordedEvaluation) -> None:
        competitor = entry.one
        if row.id <= entry.row or entry.over:  # the second: conductors' clocks differ, so that an end seems earlier
            return
        entry.row = row.id
        if row.step <= entry.step:
            return  # a resumed attempt passed it again
        if competitor.state is TrialState.PRUNED and (competitor.ended or _NEVER) < row.at:
            return  # it trained on until it was stopped, or for another sweep
        if competitor.state is TrialState.WAITING and competitor.trial in self._hopeless:
            return  # of an earlier sweep, which pruned it here
        entry.step, entry.number, entry.value = row.step, entry.number + 1, row.value
        self._pruner(competitor.repeat).report(competitor.candidate, entry.number, row.value)
        if row.step < competitor.total:  # else its result is about to come, and is not thrown away
            self._ask(entry)

    def _end(self, entry: Standing) -> None:
        entry.over = True
        if entry.number > entry.asked:
            self._ask(entry)
        if entry.one.score is not None:
            self._pruner(entry.one.repeat).finish(entry.one.candidate, entry.one.score)

    def _ask(self, entry: Standing) -> None:
        entry.asked = entry.number
        self._note(entry, self._pruner(entry.one.repeat).decision(entry.one.candidate))

    def _note(self, entry: Standing, why: str | None) -> None:
        self._hopeless.pop(entry.one.trial, None)
        if why is not None:
            entry.why = why
            self._hopeless[entry.one.trial] = entry

    def _shared(self) -> int:
        """How many repeats every candidate has."""
        return min(self._repeats.values(), default=0)

    def _pruner(self, repeat: int) -> Pruner:
        if repeat not in self._pruners:
            self._pruners[repeat] = self._make()
        return self._pruners[repeat]

    def _decision(self, entry: Standing) -> PruningDecision:
        one = entry.one
        said = f"after evaluation {entry.number}: {self._key} {entry.value:.4g}; {entry.why}"
        return PruningDecision(one.sweep, one.cell, one.candidate, one.trial, entry.number, entry.value, said)


class RepeatPruningSession(PruningSession):
    """Prunes by repeats: the whole cell is one competition, in which a finished repeat is an evaluation."""

    def __init__(self, key: str, make: Callable[[], Pruner]) -> None:
        super().__init__(key, make)
        self._scores: defaultdict[int, list[float]] = defaultdict(list)  # by candidate

    def _follow(self, entries: Sequence[Standing], rows: Iterable[RecordedEvaluation]) -> None:
        shared = self._shared()
        ended = [one for one in entries if one.one.score is not None and not one.over and one.one.repeat < shared]
        for entry in sorted(ended, key=lambda one: (one.one.ended or _NEVER, one.one.trial)):
            entry.over = True
            self._scored(entry, shared)

    def _scored(self, entry: Standing, shared: int) -> None:
        candidate, score = entry.one.candidate, entry.one.score or 0.0
        scores, pruner = self._scores[candidate], self._pruner(0)
        scores.append(score)
        pruner.report(candidate, entry.one.repeat + 1, score)
        entry.number, entry.value = len(scores), sum(scores) / len(scores)
        if len(scores) == shared:
            pruner.finish(candidate, entry.value)
        else:
            self._forget(candidate)  # what was said after fewer repeats
            self._note(entry, pruner.decision(candidate))

    def _forget(self, candidate: int) -> None:
        self._hopeless = {at: one for at, one in self._hopeless.items() if one.one.candidate != candidate}

    def _decision(self, entry: Standing) -> PruningDecision:
        one = entry.one
        said = f"after {entry.number} repeats: mean {self._key} {entry.value:.4g}; {entry.why}"
        return PruningDecision(one.sweep, one.cell, one.candidate, one.trial, entry.number, entry.value, said)
