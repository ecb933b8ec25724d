"""A sweep's bar, the kinds of its trials, and what its buttons are offered for."""

from itertools import pairwise

from dashboards import progress
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.sweeps import Counts, GridCandidate, GridTrial
from tests.dashboards import specimens


def test_a_bar_has_a_place_for_every_kind() -> None:
    assert set(progress.KINDS) == {*TrialState, "diverged"}


def test_a_bar_is_full_and_without_gaps() -> None:
    pieces = progress.segments(specimens.summary())
    assert [(one.kind, one.count) for one in pieces] == [
        ("finished", 4), ("diverged", 1), ("failed", 1), ("cancelled", 1), ("running", 1), ("waiting", 4),
    ]  # fmt: skip
    for one, following in pairwise(pieces):
        assert abs(one.start + one.width - following.start) < 0.01
    assert abs(pieces[-1].start + pieces[-1].width - 100) < 0.01


def test_an_empty_sweep_has_an_empty_bar() -> None:
    assert progress.segments(specimens.summary(total=0, counts=Counts())) == []
    assert progress.percent(specimens.summary(total=0, counts=Counts())) == 0


def test_a_sweep_is_at_100_only_when_all_its_trials_ended() -> None:
    assert progress.percent(specimens.summary(total=1_000, counts=Counts(finished=999, waiting=1))) == 99
    assert progress.percent(specimens.summary(total=1_000, counts=Counts(finished=999, failed=1))) == 100
    assert progress.percent(specimens.summary(total=4, counts=Counts(finished=1, cancelled=3))) == 25


def test_a_candidate_is_out_once_a_repeat_ended_otherwise_than_ok() -> None:
    def candidate(*trials: tuple[TrialState, bool]) -> GridCandidate:
        made = [GridTrial(trial=1, repeat=0, state=state, diverged=diverged) for state, diverged in trials]
        return GridCandidate(labels={}, trials=made)

    assert progress.eligible(candidate((TrialState.FINISHED, False), (TrialState.RUNNING, False)))
    assert not progress.eligible(candidate((TrialState.FINISHED, True)))
    assert not progress.eligible(candidate((TrialState.FINISHED, False), (TrialState.FAILED, False)))
