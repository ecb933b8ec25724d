"""From a submitted sweep to a settled one, over both databases."""

import math

import pytest

from orchestrator.record.store import Store
from orchestrator.views.errors import ConflictError
from orchestrator.views.events import AttemptStopped, CellSettled, Progressed, Started, SweepSettled
from orchestrator.views.outcomes import CellSummary, Statistic
from tests.record.sample import (
    KEY,
    SLOT,
    claimed,
    fail,
    lease,
    new_sweep,
    planned,
    progress,
    result,
    run,
    run_all,
    started,
    states,
)


def summary(cell: int) -> CellSummary:
    score = Statistic(0.5, 0.01, 2)
    return CellSummary(cell, "complete", 0, {"loss.margin": "0.2"}, KEY, score, {KEY: score}, 1)


def test_a_sweep_runs_from_queued_to_finished(store: Store) -> None:
    fence = lease(store)
    added = store.submissions.add_sweep(new_sweep())
    assert [one.id for one in store.sweeps.queued()] == [added.id]
    assert store.sweeps.get(added.id).state == "queued"
    store.writer(fence).sweeps.start(added.id, **planned(), slot=SLOT, fresh=False)
    assert store.sweeps.queued() == []
    assert states(store, added.id) == ["waiting"] * 4
    assert store.writer(fence).sweeps.unsettled() == []
    assert store.sweeps.cells_to_settle() == []

    first = claimed(store, fence)
    assert first.number == 1
    assert first.recipe["loss"] == {"name": "triplet", "margin": 0.2}
    assert first.slot == SLOT
    assert store.claims.wanted(first.attempt)
    second = claimed(store, fence)
    assert store.claims.wanted_of([first.attempt, second.attempt, "none"]) == {first.attempt, second.attempt}
    run(store, fence, first, score=0.7)
    assert not store.claims.wanted(first.attempt)
    assert store.claims.wanted_of([first.attempt, second.attempt]) == {second.attempt}
    assert store.claims.wanted_of([]) == set()
    assert states(store, added.id) == ["finished", "running", "waiting", "waiting"]
    run(store, fence, second, score=0.9)
    assert store.sweeps.cells_to_settle() == [(added.id, 0)]
    assert run_all(store, fence) == 2

    assert store.sweeps.cells_to_settle() == [(added.id, 0), (added.id, 1)]
    for sweep, cell in store.sweeps.cells_to_settle():
        store.writer(fence).events.write(CellSettled(sweep, summary(cell)))
    assert store.sweeps.cells_to_settle() == []
    assert store.writer(fence).sweeps.unsettled() == [added.id]
    assert store.sweeps.active()
    store.writer(fence).events.write(SweepSettled(added.id))
    assert not store.sweeps.active()
    assert store.writer(fence).sweeps.unsettled() == []
    view = store.sweeps.get(added.id)
    assert view.state == "finished"
    assert view.ended is not None
    assert view.counts.finished == 4
    assert view.counts.total == view.total == 4
    grid = store.sweeps.grid(added.id)
    assert [cell.labels for cell in grid] == [{"loss": "triplet"}, {"loss": "semihard"}]
    assert grid[0].candidates[0].score == pytest.approx(0.8)
    assert grid[0].candidates[0].selected


def test_orders_come_in_the_order_of_sweeps_and_of_their_plans(store: Store) -> None:
    fence = lease(store)
    started(store, fence, losses=["semihard"], seeds=[3, 1])
    started(store, fence, losses=["triplet"], seeds=[0])
    orders = [claimed(store, fence) for _ in range(3)]
    assert [(order.recipe["loss"]["name"], order.recipe["seed"]) for order in orders] == [
        ("semihard", 3), ("semihard", 1), ("triplet", 0),
    ]  # fmt: skip
    assert store.writer(fence).claims.next() is None


def test_equal_recipes_of_one_sweep_share_a_training(store: Store) -> None:
    fence = lease(store)
    sweep = store.submissions.add_sweep(new_sweep()).id
    plan = planned(losses=["triplet", "semihard"], seeds=[0])
    twin = plan["trials"][0]
    plan["trials"][1] = type(twin)(1, 0, 0, {"seed": "0"}, twin.recipe, twin.fingerprint)
    store.writer(fence).sweeps.start(sweep, **plan, slot=SLOT, fresh=False)
    assert run_all(store, fence) == 1
    assert states(store, sweep) == ["finished", "finished"]
    assert [trial.reused for trial in store.trials.page(sweep).items] == [False, False]


def test_a_running_training_is_shared_by_two_sweeps(store: Store) -> None:
    fence = lease(store)
    one = started(store, fence, losses=["triplet"], seeds=[0])
    order = claimed(store, fence)
    two = started(store, fence, losses=["triplet"], seeds=[0])
    assert states(store, two) == ["running"]
    assert store.writer(fence).claims.next() is None
    run(store, fence, order)
    assert states(store, one) == states(store, two) == ["finished"]


def test_a_finished_training_is_reused_unless_the_sweep_asks_for_fresh_ones(store: Store) -> None:
    fence = lease(store)
    one = started(store, fence)
    assert run_all(store, fence) == 4
    fingerprints = [trial.fingerprint for trial in planned()["trials"]]
    assert store.trainings.known([*fingerprints, "unknown"], 1) == set(fingerprints)

    two = started(store, fence)
    assert states(store, two) == ["finished"] * 4
    assert store.sweeps.get(two).counts.reused == 4
    assert store.writer(fence).sweeps.unsettled() == [one, two]
    view = store.trials.get(store.trials.page(two).items[0].id)
    assert view.reused_from == store.trials.page(one).items[0].id
    assert view.metrics[KEY] == pytest.approx(0.5)

    three = started(store, fence, fresh=True)
    assert states(store, three) == ["waiting"] * 4
    assert run_all(store, fence) == 4
    assert store.sweeps.get(three).counts.reused == 0
    four = started(store, fence, fresh=True)
    assert states(store, four) == ["waiting"] * 4


def test_a_finished_generation_is_reused_while_a_fresh_one_runs(store: Store) -> None:
    fence = lease(store)
    started(store, fence, seeds=[0])
    run_all(store, fence)
    started(store, fence, seeds=[0], fresh=True)
    claimed(store, fence)
    assert states(store, started(store, fence, seeds=[0])) == ["finished"] * 2


def test_a_failed_training_waits_again_for_another_sweep(store: Store) -> None:
    fence = lease(store)
    one = started(store, fence, losses=["triplet"], seeds=[0])
    fail(store, fence, claimed(store, fence))
    assert states(store, one) == ["failed"]
    two = started(store, fence, losses=["triplet"], seeds=[0])
    order = claimed(store, fence)
    assert order.number == 2
    run(store, fence, order)
    assert states(store, one) == ["failed"]
    assert states(store, two) == ["finished"]
    store.writer(fence).events.write(SweepSettled(one))
    assert store.sweeps.get(one).state == "failed"
    # A retry takes the result that came meanwhile.
    assert store.writer(fence).trials.retry(one).trials == 1
    assert states(store, one) == ["finished"]
    assert store.sweeps.get(one).state == "running"
    store.writer(fence).events.write(SweepSettled(one))
    assert store.sweeps.get(one).state == "finished"


def test_a_lost_attempt_is_followed_by_one_that_resumes(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    first = claimed(store, fence)
    assert first.resume is None
    store.writer(fence).events.write(Started(first.attempt, "slot-0", "host-a"))
    store.writer(fence).events.write(
        Progressed(first.attempt, 1, progress(10, checkpoint="last.pt", metrics={"train/loss": 2.0}))
    )
    fail(store, fence, first, requeue=True, kind="infrastructure")
    assert states(store, sweep) == ["waiting"]
    second = claimed(store, fence)
    assert second.resume == f"{first.training}/1/last.pt"
    fail(store, fence, second, requeue=True, kind="stalled")
    third = claimed(store, fence)
    assert (third.number, third.resume) == (3, f"{first.training}/1/last.pt")
    run(store, fence, third)
    view = store.trials.get(store.trials.page(sweep).items[0].id)
    assert [attempt.state for attempt in view.attempts] == ["lost", "lost", "finished"]
    assert view.attempts[1].resumed_from == second.resume
    assert view.attempts[0].reason == "ValueError: no such class"


def test_orphans_are_what_an_earlier_conductor_left(store: Store) -> None:
    fence = lease(store)
    started(store, fence)
    order = claimed(store, fence)
    store.writer(fence).events.write(Started(order.attempt, "slot-1", "host-a"))
    store.writer(fence).events.write(Progressed(order.attempt, 4, progress(10)))
    unstarted = claimed(store, fence)
    store.writer(fence).lease.release()
    lease(store, "conductor-2")
    left = store.claims.orphans()
    assert [one.attempt for one in left] == [order.attempt, unstarted.attempt]
    assert (left[0].holder, left[0].seen, left[0].recipe, left[0].slot) == ("slot-1", 4, order.recipe, SLOT)
    assert (left[1].holder, left[1].seen) == ("", 0)


def test_cancel_ends_waiting_trials_and_stops_running_ones(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence)
    order = claimed(store, fence)
    assert store.writer(fence).trials.cancel(sweep).trials == 4
    assert states(store, sweep) == ["cancelled"] * 4
    assert store.sweeps.get(sweep).state == "cancelled"
    assert not store.claims.wanted(order.attempt)
    store.writer(fence).events.write(AttemptStopped(order.attempt))
    assert store.writer(fence).claims.next() is None
    assert store.writer(fence).trials.cancel(sweep).trials == 0
    assert store.writer(fence).trials.retry(sweep).trials == 4
    assert states(store, sweep) == ["waiting"] * 4
    assert claimed(store, fence).number == 2
    assert store.sweeps.get(sweep).state == "running"
    assert store.sweeps.get(sweep).ended is None


def test_a_queued_sweep_is_cancelled_straight_and_an_ended_one_not_at_all(store: Store) -> None:
    fence = lease(store)
    queued = store.submissions.add_sweep(new_sweep()).id
    assert store.writer(fence).trials.cancel(queued).trials == 0
    assert store.sweeps.get(queued).state == "cancelled"
    with pytest.raises(ConflictError):
        store.writer(fence).sweeps.start(queued, **planned(), slot=SLOT, fresh=False)
    ended = started(store, fence)
    run_all(store, fence)
    store.writer(fence).trials.cancel(ended)
    assert store.sweeps.get(ended).state == "running"  # all its trials had ended: it is settled as usual
    store.writer(fence).events.write(SweepSettled(ended))
    store.writer(fence).trials.cancel(ended)
    assert store.sweeps.get(ended).state == "finished"


def test_a_sweep_that_ended_before_its_trials_were_written_is_queued_again(store: Store) -> None:
    fence = lease(store)
    sweep = store.submissions.add_sweep(new_sweep()).id
    store.writer(fence).sweeps.fail(sweep, "no such data set")
    assert (store.sweeps.get(sweep).state, store.sweeps.get(sweep).error) == ("failed", "no such data set")
    store.writer(fence).trials.retry(sweep)
    assert (store.sweeps.get(sweep).state, store.sweeps.get(sweep).error) == ("queued", None)


def test_a_cancelled_trial_leaves_the_shared_training_to_the_other(store: Store) -> None:
    fence = lease(store)
    one = started(store, fence, losses=["triplet"], seeds=[0])
    two = started(store, fence, losses=["triplet"], seeds=[0])
    order = claimed(store, fence)
    assert states(store, two) == ["running"]
    store.writer(fence).trials.cancel(one)
    assert store.claims.wanted(order.attempt)
    run(store, fence, order)
    assert states(store, one) == ["cancelled"]
    assert states(store, two) == ["finished"]


def test_one_trial_is_cancelled_and_retried(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence)
    second = store.trials.page(sweep).items[1].id
    assert store.writer(fence).trials.cancel(sweep, second).trials == 1
    assert states(store, sweep) == ["waiting", "cancelled", "waiting", "waiting"]
    assert run_all(store, fence) == 3
    assert store.writer(fence).sweeps.unsettled() == [sweep]
    store.writer(fence).events.write(SweepSettled(sweep))
    assert store.sweeps.get(sweep).state == "cancelled"
    assert store.writer(fence).trials.retry(sweep, second).trials == 1
    assert run_all(store, fence) == 1
    store.writer(fence).events.write(SweepSettled(sweep))
    assert store.sweeps.get(sweep).state == "finished"


def test_a_stopped_attempt_whose_trial_was_retried_meanwhile_waits(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    order = claimed(store, fence)
    store.writer(fence).trials.cancel(sweep)
    store.writer(fence).trials.retry(sweep)
    assert states(store, sweep) == ["running"]
    assert store.claims.wanted(order.attempt)
    store.writer(fence).events.write(AttemptStopped(order.attempt))
    assert states(store, sweep) == ["waiting"]
    assert claimed(store, fence).number == 2


def test_a_result_that_came_after_the_cancel_is_taken_by_the_retry(store: Store) -> None:
    fence = lease(store)
    one = started(store, fence, losses=["triplet"], seeds=[0])
    order = claimed(store, fence)
    store.writer(fence).trials.cancel(one)
    run(store, fence, order)
    assert states(store, one) == ["cancelled"]
    two = started(store, fence, losses=["triplet"], seeds=[0])
    assert states(store, two) == ["finished"]
    assert store.trials.get(store.trials.page(two).items[0].id).reused_from is None  # no trial took it before
    store.writer(fence).trials.retry(one)
    (trial,) = store.trials.page(one).items
    assert (trial.state, trial.reused) == ("finished", False)


def test_retry_unsettles_the_cells_it_touches(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence, seeds=[0])
    fail(store, fence, claimed(store, fence))
    run_all(store, fence)
    for one, cell in store.sweeps.cells_to_settle():
        store.writer(fence).events.write(CellSettled(one, summary(cell)))
    store.writer(fence).events.write(SweepSettled(sweep))
    assert store.writer(fence).trials.retry(sweep).trials == 1
    assert store.sweeps.cells_to_settle() == []
    store.writer(fence).events.write(CellSettled(sweep, summary(0)))  # too late: the cell runs again
    assert not store.sweeps.grid(sweep)[0].candidates[0].selected
    run_all(store, fence)
    assert store.sweeps.cells_to_settle() == [(sweep, 0)]


def test_every_event_may_be_applied_twice(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence, seeds=[0])
    order, other = claimed(store, fence), claimed(store, fence)
    for _ in range(2):
        run(store, fence, order, score=0.7)
    fail(store, fence, order)
    store.writer(fence).events.write(AttemptStopped(order.attempt))
    for _ in range(2):
        fail(store, fence, other, requeue=True, kind="infrastructure")
    for _ in range(2):
        store.writer(fence).events.write(SweepSettled(sweep))
    assert states(store, sweep) == ["finished", "waiting"]
    first = store.trials.page(sweep).items[0]
    assert store.logs.of(first.id, 0).text == "step 10\n"
    assert [curve.points for curve in store.curves.of(first.id) if curve.key == "validation/map@r"] == [[(20, 0.7)]]
    assert store.sweeps.get(sweep).state == "running"


def test_a_diverged_training_is_an_outcome(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    run(store, fence, claimed(store, fence), score=math.nan, outcome="diverged")
    view = store.sweeps.get(sweep)
    assert (view.counts.finished, view.counts.diverged) == (1, 1)
    assert [problem.message for problem in view.problems] == ["diverged: the loss became NaN"]
    outcome = store.outcomes.of(sweep).trials[0]
    assert outcome.diverged
    assert math.isnan(outcome.values[KEY])
    assert store.trials.get(outcome.trial).metrics[KEY] is None
    assert result().metrics
    store.writer(fence).events.write(SweepSettled(sweep))
    assert store.sweeps.get(sweep).state == "finished"


def test_an_order_says_what_a_person_calls_it(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence)
    order = claimed(store, fence)
    assert order.label == f"sample #{sweep} · triplet · margin=0.2 · seed=0"
    assert [one.label for one in store.claims.orphans()] == [order.label]
