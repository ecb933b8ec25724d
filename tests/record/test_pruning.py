"""Early stopping in the database, on SQLite and on Postgres: what may be pruned, and what that leaves behind."""

from typing import Any

from orchestrator.record.store import Store, Writer
from orchestrator.record.sweeps import PlanRows
from orchestrator.record.transitions import PruningDecision
from orchestrator.views.runs import AttemptStopped, Candidate, Cell, Finished, PlannedTrial, Progressed
from orchestrator.views.states import TrialState
from tests.record.conftest import ON_BOTH
from tests.record.sample import SLOT, claimed, fail, new_sweep, progress, recipe, result, run, states


def two_candidates(store: Store, fence: int, **more: Any) -> int:
    """A sweep of one cell with two candidates of two repeats; returns its id."""
    sweep = store.submissions.add_sweep(new_sweep()).id
    made = [(one, repeat, recipe(seed=repeat, embedding=8 * (one + 1))) for one in range(2) for repeat in range(2)]
    planned = [
        PlannedTrial(0, one, repeat, {"seed": str(repeat)}, whole, whole.fingerprint) for one, repeat, whole in made
    ]
    candidates = [Candidate(0, one, {"embedding": str(one)}) for one in range(2)]
    store.writer(fence).sweeps.start(sweep, PlanRows([Cell(0, {})], candidates, planned), slot=SLOT, fresh=False)
    return sweep


def verdict(sweep: int, candidate: int, trial: int, value: float = 0.25) -> PruningDecision:
    return PruningDecision(sweep, 0, candidate, trial, 2, value, "after evaluation 2: validation/map@r 0.25; too low")


@ON_BOTH
def test_pruning_ends_what_is_active_and_says_why(store: Store, fence: int, writer: Writer) -> None:
    sweep = two_candidates(store, fence)
    first, second = store.trials.page(sweep).items[:2]
    order = claimed(store, fence)
    writer.events.write(Progressed(order.attempt, 1, progress(10, metrics={"validation/map@r": 0.3})))
    assert store.pruning.cells_under_way(sweep) == [0]
    assert writer.pruning.prune(verdict(sweep, 0, first.id)) == 2
    assert states(store, sweep) == ["pruned", "pruned", "waiting", "waiting"]
    assert store.trials.get(first.id).reason == "pruned after evaluation 2: validation/map@r 0.25; too low"
    assert (
        store.trials.get(second.id).reason
        == f"pruned with trial {first.id}, after evaluation 2: validation/map@r 0.25; too low"
    )
    assert not store.claims.needed_of([order.attempt])
    writer.events.write(AttemptStopped(order.attempt))
    assert writer.pruning.prune(verdict(sweep, 0, first.id)) == 0, "a second time in vain"
    competitors = store.pruning.competitors(sweep, 0)
    assert [one.state for one in competitors[:2]] == [TrialState.PRUNED] * 2
    assert [one.recipe is not None for one in competitors] == [True, True, False, False]
    (evaluation,) = store.pruning.evaluations([one.training for one in competitors], "validation/map@r")
    assert (evaluation.step, evaluation.value, evaluation.training) == (10, 0.3, competitors[0].training)
    assert [one.trial for one in store.pruning.competitors_of(order.attempt)] == [first.id]
    assert [one.trial for one in store.pruning.appended(sweep, 1)] == [one.trial for one in competitors[2:]]
    assert store.trials.last_position(sweep) == 3


def test_the_last_candidate_that_can_be_selected_is_left(store: Store, fence: int, writer: Writer) -> None:
    sweep = two_candidates(store, fence)
    trials = store.trials.page(sweep).items
    assert writer.pruning.prune(verdict(sweep, 1, trials[2].id)) == 2
    assert writer.pruning.prune(verdict(sweep, 0, trials[0].id)) is None
    assert states(store, sweep) == ["waiting", "waiting", "pruned", "pruned"]


def test_a_candidate_without_a_score_is_no_rival(store: Store, fence: int, writer: Writer) -> None:
    sweep = two_candidates(store, fence)
    for _ in range(2):
        writer.events.write(Finished(claimed(store, fence).attempt, result(metrics={"last/test/map@r": 0.5})))
    assert writer.pruning.prune(verdict(sweep, 1, store.trials.page(sweep).items[2].id)) is None
    assert states(store, sweep) == ["finished", "finished", "waiting", "waiting"]


def test_a_run_being_sent_is_sent_again_once_pruned(store: Store, fence: int, writer: Writer) -> None:
    sweep = two_candidates(store, fence)
    order = claimed(store, fence)
    fail(store, fence, order, requeue=True, kind="machine")
    (told,) = [one for one in store.outbox.due(100) if one.kind == "trial"]
    assert writer.pruning.prune(verdict(sweep, 0, told.entity)) == 2
    writer.outbox.sent(told, "run-1", 0)
    assert [one.entity for one in store.outbox.due(100) if one.kind == "trial"] == [told.entity]


def test_pruning_does_not_stop_a_training_that_another_sweep_wants(store: Store, fence: int, writer: Writer) -> None:
    first, second = two_candidates(store, fence), two_candidates(store, fence)
    order = claimed(store, fence)
    writer.pruning.prune(verdict(first, 0, store.trials.page(first).items[0].id))
    assert store.claims.needed_of([order.attempt])
    run(store, fence, order)
    assert (states(store, first)[0], states(store, second)[0]) == ("pruned", "finished")
