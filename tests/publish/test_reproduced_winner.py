"""A search's winner that is trained with further seeds stays the winner, whatever becomes of these."""

from orchestrator.publish.select import summaries
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.outcomes import SweepOutcomes, TrialOutcome
from orchestrator.views.planned import Candidate, Cell

KEY = "best/validation/map@r"


def run(candidate: int, repeat: int, value: float, state: TrialState = TrialState.FINISHED) -> TrialOutcome:
    values = {KEY: value} if state is TrialState.FINISHED else {}
    return TrialOutcome(10 * candidate + repeat, 0, candidate, repeat, {"seed": str(repeat)}, state, values=values)


def outcomes(*further: TrialOutcome) -> SweepOutcomes:
    spec = {"select": {"metric": "map@r", "split": "validation"}, "search": {"name": "gp", "trials": 2, "reproduce": 2}}
    found = (run(0, 0, 0.5), run(1, 0, 0.6), *further)
    candidates = (Candidate(0, 0, {"lr": "1"}), Candidate(0, 1, {"lr": "2"}))
    return SweepOutcomes(1, "s", "running", spec, (Cell(0, {}),), candidates, found)


def test_worse_reproductions_do_not_unseat_the_winner() -> None:
    (one,) = summaries(outcomes(run(1, 1, 0.1), run(1, 2, 0.2)), "higher")
    assert (one.candidate, one.status) == (1, "complete")
    assert one.score is not None
    assert (one.score.mean, one.metrics[KEY].n) == (0.6, 3)
    assert abs(one.metrics[KEY].mean - 0.3) < 1e-12


def test_the_winner_is_shown_while_it_is_reproduced() -> None:
    (one,) = summaries(outcomes(run(1, 1, 0.1), run(1, 2, 0.0, TrialState.RUNNING)), "higher")
    assert (one.candidate, one.status, one.metrics[KEY].n) == (1, "partial", 2)


def test_a_reproduction_that_fails_is_left_out() -> None:
    (one,) = summaries(outcomes(run(1, 1, 0.1), run(1, 2, 0.0, TrialState.FAILED)), "higher")
    assert (one.candidate, one.status, one.metrics[KEY].n) == (1, "complete", 2)
