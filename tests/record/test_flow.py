"""From a submitted sweep to a settled one, how long trainings took, and trainings that are planned anew."""

import math
from dataclasses import replace

import pytest

from orchestrator.record.renewal import Renewed, Tally
from orchestrator.record.store import Store, Writer
from orchestrator.record.sweeps import PlanRows
from orchestrator.views import runs
from tests.record import sample
from tests.record.conftest import ON_BOTH
from tests.record.sample import SLOT, claimed, fail, run, run_all, started, states
from workers.catalog import stamp


def summary(cell: int) -> runs.CellSummary:
    score = runs.Statistic(0.5, 0.01, 2)
    return runs.CellSummary(cell, "complete", 0, {"loss.margin": "0.2"}, sample.KEY, score, {sample.KEY: score}, 1)


@ON_BOTH
def test_a_sweep_runs_from_queued_to_finished(store: Store, fence: int, writer: Writer) -> None:
    added = store.submissions.add_sweep(sample.new_sweep())
    assert [one.id for one in store.sweeps.queued()] == [added.id]
    assert store.sweeps.get(added.id).state == "queued"
    writer.sweeps.start(added.id, PlanRows(**sample.planned()), slot=SLOT, fresh=False)
    assert store.sweeps.queued() == []
    assert states(store, added.id) == ["waiting"] * 4
    assert writer.sweeps.unsettled() == []
    assert store.sweeps.cells_to_settle() == []

    first = claimed(store, fence)
    assert (first.number, first.label) == (1, f"sample #{added.id} · triplet · margin=0.2 · seed=0")
    assert first.recipe["loss"] == {"name": "triplet", "margin": 0.2}
    assert first.slot == SLOT
    assert store.claims.needed_of([first.attempt])
    second = claimed(store, fence)
    assert store.claims.needed_of([first.attempt, second.attempt, "none"]) == {first.attempt, second.attempt}
    run(store, fence, first, score=0.7)
    assert not store.claims.needed_of([first.attempt])
    assert store.claims.needed_of([first.attempt, second.attempt]) == {second.attempt}
    assert store.claims.needed_of([]) == set()
    assert states(store, added.id) == ["finished", "running", "waiting", "waiting"]
    run(store, fence, second, score=0.9)
    assert store.sweeps.cells_to_settle() == [(added.id, 0)]
    assert run_all(store, fence) == 2

    assert store.sweeps.cells_to_settle() == [(added.id, 0), (added.id, 1)]
    for sweep, cell in store.sweeps.cells_to_settle():
        writer.events.write(runs.CellSettled(sweep, summary(cell)))
    assert store.sweeps.cells_to_settle() == []
    assert writer.sweeps.unsettled() == [added.id]
    assert store.sweeps.active()
    writer.events.write(runs.SweepSettled(added.id))
    assert not store.sweeps.active()
    assert writer.sweeps.unsettled() == []
    view = store.sweeps.get(added.id)
    assert view.state == "finished"
    assert view.ended is not None
    assert view.counts.finished == 4
    assert view.counts.total == view.total == 4
    grid = store.sweeps.grid(added.id)
    assert [cell.labels for cell in grid] == [{"loss": "triplet"}, {"loss": "semihard"}]
    assert grid[0].candidates[0].score == pytest.approx(0.8)
    assert grid[0].candidates[0].selected


@ON_BOTH
def test_the_best_cell_is_among_those_with_the_labels_of_the_first(store: Store, fence: int, writer: Writer) -> None:
    sweep = store.submissions.add_sweep(sample.new_sweep()).id
    writer.sweeps.start(sweep, PlanRows(**sample.planned()), slot=SLOT, fresh=False)
    run_all(store, fence)
    assert store.sweeps.settled([sweep]) == {}
    assert store.sweeps.best(sweep, sample.KEY, (), higher=True) is None
    stamps = []
    for cell, score in enumerate((runs.Statistic(0.5, 0.01, 2), runs.Statistic(0.25, None, 1))):
        writer.events.write(runs.CellSettled(sweep, replace(summary(cell), metrics={sample.KEY: score})))
        stamps.append(store.sweeps.settled([sweep])[sweep])
    assert stamps[0] != stamps[1]
    assert store.sweeps.best(sweep, sample.KEY, (), higher=True) == (
        0, {"loss": "triplet"}, runs.Statistic(0.5, 0.01, 2),
    )  # fmt: skip
    lowest = 1, {"loss": "semihard"}, runs.Statistic(0.25, None, 1)
    assert store.sweeps.best(sweep, sample.KEY, ["dataset"], higher=False) == lowest
    alike = store.sweeps.best(sweep, sample.KEY, ["loss"], higher=False)
    assert alike is not None
    assert alike[0] == 0
    assert store.sweeps.best(sweep, "best/test/none", (), higher=True) is None


def test_equal_recipes_of_one_sweep_share_a_training(store: Store, fence: int, writer: Writer) -> None:
    sweep = store.submissions.add_sweep(sample.new_sweep()).id
    plan = sample.planned(losses=["triplet", "semihard"], seeds=[0])
    twin = plan["trials"][0]
    plan["trials"][1] = type(twin)(1, 0, 0, {"seed": "0"}, twin.recipe, twin.fingerprint)
    writer.sweeps.start(sweep, PlanRows(**plan), slot=SLOT, fresh=False)
    assert run_all(store, fence) == 1
    assert states(store, sweep) == ["finished", "finished"]
    assert [trial.reused for trial in store.trials.page(sweep).items] == [False, False]


@ON_BOTH
def test_a_lost_attempt_is_followed_by_one_that_resumes(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    first = claimed(store, fence)
    assert first.resume is None
    writer.events.write(runs.Started(first.attempt, "slot-0", "host-a"))
    writer.events.write(
        runs.Progressed(first.attempt, 1, sample.progress(10, checkpoint="last.pt", metrics={"train/loss": 2.0}))
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


@ON_BOTH
def test_orphans_are_what_an_earlier_conductor_left(store: Store, fence: int, writer: Writer) -> None:
    started(store, fence)
    order = claimed(store, fence)
    writer.events.write(runs.Started(order.attempt, "slot-1", "host-a"))
    writer.events.write(runs.Progressed(order.attempt, 4, sample.progress(10)))
    unstarted = claimed(store, fence)
    writer.lease.release()
    sample.lease(store, "conductor-2")
    left = store.claims.orphans()
    assert [one.attempt for one in left] == [order.attempt, unstarted.attempt]
    assert (left[0].holder, left[0].seen, left[0].recipe, left[0].slot) == ("slot-1", 4, order.recipe, SLOT)
    assert (left[1].holder, left[1].seen) == ("", 0)


def test_retry_unsettles_the_cells_it_touches(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence, seeds=[0])
    fail(store, fence, claimed(store, fence))
    run_all(store, fence)
    for one, cell in store.sweeps.cells_to_settle():
        writer.events.write(runs.CellSettled(one, summary(cell)))
    writer.events.write(runs.SweepSettled(sweep))
    assert writer.trials.retry(sweep).trials == 1
    assert store.sweeps.cells_to_settle() == []
    writer.events.write(runs.CellSettled(sweep, summary(0)))  # too late: the cell runs again
    assert not store.sweeps.grid(sweep)[0].candidates[0].selected
    run_all(store, fence)
    assert store.sweeps.cells_to_settle() == [(sweep, 0)]


@ON_BOTH
def test_every_event_may_be_applied_twice(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence, seeds=[0])
    order, other = claimed(store, fence), claimed(store, fence)
    first_step = sample.progress(10, metrics={"train/loss": 1.0}, log="step 10\n")
    for _ in range(2):
        writer.events.write(runs.Progressed(order.attempt, 1, first_step))
    for _ in range(2):
        run(store, fence, order, score=0.7)
    fail(store, fence, order)
    writer.events.write(runs.AttemptStopped(order.attempt))
    for _ in range(2):
        fail(store, fence, other, requeue=True, kind="infrastructure")
    for _ in range(2):
        writer.events.write(runs.SweepSettled(sweep))
    assert states(store, sweep) == ["finished", "waiting"]
    first = store.trials.page(sweep).items[0]
    assert store.logs.of(first.id, 0).text == "step 10\n"
    assert [curve.points for curve in store.curves.of(first.id) if curve.key == "validation/map@r"] == [[(20, 0.7)]]
    assert store.sweeps.get(sweep).state == "running"


def test_a_diverged_training_is_an_outcome(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence, losses=["triplet"], seeds=[0])
    run(store, fence, claimed(store, fence), score=math.nan, outcome="diverged")
    view = store.sweeps.get(sweep)
    assert (view.counts.finished, view.counts.diverged) == (1, 1)
    assert [problem.message for problem in view.problems] == ["diverged: the loss became NaN"]
    outcome = store.trial_results.of(sweep).trials[0]
    assert outcome.diverged
    assert math.isnan(outcome.values[sample.KEY])
    assert store.trials.get(outcome.trial).metrics[sample.KEY] is None
    assert sample.result().metrics
    writer.events.write(runs.SweepSettled(sweep))
    assert store.sweeps.get(sweep).state == "finished"


@ON_BOTH
def test_trials_move_to_trainings_of_today(store: Store, fence: int, writer: Writer) -> None:
    one, two = (started(store, fence, name, losses=["triplet"]) for name in ("one", "two"))
    new = sample.new_sweep("fresh")
    fresh = store.submissions.add_sweep(replace(new, spec={**new.spec, "fresh": True})).id
    writer.sweeps.start(fresh, PlanRows(**sample.planned(losses=["triplet"], seeds=[0])), slot=SLOT, fresh=True)
    order = claimed(store, fence)
    writer.events.write(runs.Progressed(order.attempt, 1, sample.progress(10, checkpoint="last.pt")))
    writer.events.write(runs.Failed(order.attempt, runs.Failure("infrastructure", "gone"), True))
    old = [stamp(sample.recipe(seed=0).model_dump(mode="json"))]
    found = store.trainings.outdated(old)
    assert len(found) == 3
    plans = [sample.recipe(seed=each.recipe["seed"], pins={"versions": {"loss": 2}}) for each in found]
    renewed = [
        Renewed(each, runs.PlannedTrial(0, 0, 0, {}, plan, plan.fingerprint))
        for each, plan in zip(found, plans, strict=True)
    ]
    tallies: list[Tally] = []
    said = writer.trainings.renew(renewed, old, lambda tally: tallies.append(tally) or f"{tally.moved} moved")
    assert said == {one: "2 moved", two: "2 moved", fresh: "1 moved"}
    assert sorted(tally.begun for tally in tallies) == [0, 1, 1]
    assert store.trainings.outdated(old) == []
    assert writer.trainings.renew(renewed, old, lambda _: "") == {}
    assert run_all(store, fence) == 3, "two that both sweeps share, and one of the fresh sweep"
    assert states(store, one) == states(store, two) == ["finished"] * 2
    (trial, _) = store.trials.page(one).items
    assert [each.training for each in store.trials.get(trial.id).replaced] == [order.training]
    for sweep in (one, two, fresh):
        writer.events.write(runs.SweepSettled(sweep))
    alone = store.sweeps.deletion(two)
    assert alone is not None
    assert order.training not in alone.trainings
    writer.sweeps.delete(two)
    left = store.sweeps.deletion(one)
    assert left is not None
    assert order.training in left.trainings
    writer.sweeps.delete(one)
