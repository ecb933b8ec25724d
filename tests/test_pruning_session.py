"""The session of a cell, told directly: what clocks that differ and decisions that were outlived do to it."""

from datetime import UTC, datetime, timedelta

from orchestrator.conduct.pruning_session import PruningSession, RepeatPruningSession
from orchestrator.record.reads.pruning import Competitor, RecordedEvaluation
from orchestrator.run.optuna.pruners import OptunaPruner
from orchestrator.views.lifecycle import TrialState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Scripted:
    """A pruner that finds candidate 1 hopeless at its first evaluation only."""

    def __init__(self) -> None:
        self.reported: list[tuple[int, int]] = []

    def report(self, candidate: int, number: int, value: float) -> None:
        self.reported.append((candidate, number))

    def decision(self, candidate: int) -> str | None:
        return "too low" if candidate == 1 and self.reported.count((1, 2)) == 0 else None

    def finish(self, candidate: int, score: float) -> None:
        """Nothing follows from it."""


def competitor(candidate: int, repeat: int = 0, score: float | None = None, minutes: int = 0) -> Competitor:
    state, ended = (TrialState.RUNNING, None) if score is None else (TrialState.FINISHED, NOON)
    number = 10 * candidate + repeat + 1
    ended = ended and ended + timedelta(minutes=minutes)
    return Competitor(number, 1, 0, candidate, repeat, number, state, ended, False, 9, score)


def test_an_end_that_a_slow_clock_put_before_its_last_evaluation_changes_nothing_else() -> None:
    session = PruningSession("map@r", lambda: OptunaPruner("median", {"startup": 1, "warmup": 0}, higher=True))
    trials = [competitor(0, score=0.9), competitor(1)]
    later = NOON + timedelta(minutes=1)
    rows = [RecordedEvaluation(1, 1, 3, 0.8, NOON - timedelta(minutes=1)), RecordedEvaluation(2, 11, 3, 0.1, later)]
    session.take(trials, [*rows, RecordedEvaluation(3, 1, 9, 0.9, later)])
    assert [one.candidate for one in session.decisions()] == [1]


def test_a_decision_by_fewer_repeats_does_not_outlive_a_better_one() -> None:
    session = RepeatPruningSession("map@r", Scripted)
    trials = [competitor(1, repeat, 0.5 + repeat, repeat) for repeat in range(2)]
    session.take([*trials, competitor(1, 2)], [])
    assert session.decisions() == [], "as it would have been told, had it been entered while they came"
