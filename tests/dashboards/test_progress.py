"""A sweep's bar, the kinds of its trials, what is left, and which candidates are out."""

from itertools import pairwise

from dashboards import progress
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.sweeps import Counts, GridCandidate, GridTrial, StepCount
from tests.dashboards import specimens


def test_a_bar_is_full_without_gaps_and_has_a_place_for_every_kind() -> None:
    assert set(progress.KINDS) == {*TrialState, "diverged"}
    pieces = progress.segments(specimens.summary())
    assert [(one.kind, one.count) for one in pieces] == [
        ("finished", 400), ("diverged", 100), ("failed", 100), ("cancelled", 100), ("running", 40), ("waiting", 460),
    ]  # fmt: skip
    for one, following in pairwise(pieces):
        assert abs(one.start + one.width - following.start) < 0.01
    assert abs(pieces[-1].start + pieces[-1].width - 100) < 0.01
    assert progress.segments(specimens.summary(total=0, counts=Counts(), steps=StepCount())) == []


def test_the_time_left_is_told_with_its_uncertainty() -> None:
    assert specimens.summary().left == "about 4 min 20 s left (3 min 20 s to 5 min 40 s)"
    assert specimens.summary(eta_low_seconds=260.0, eta_high_seconds=260.2).left == "about 4 min 20 s left"
    assert specimens.summary(eta_seconds=None).left == ""


def test_a_candidate_is_out_once_a_repeat_ended_otherwise_than_ok() -> None:
    def candidate(*trials: tuple[TrialState, bool]) -> GridCandidate:
        made = [GridTrial(trial=1, repeat=0, state=state, diverged=diverged) for state, diverged in trials]
        return GridCandidate(labels={}, trials=made)

    assert progress.eligible(candidate((TrialState.FINISHED, False), (TrialState.RUNNING, False)))
    assert not progress.eligible(candidate((TrialState.FINISHED, True)))
    assert not progress.eligible(candidate((TrialState.FINISHED, False), (TrialState.FAILED, False)))
