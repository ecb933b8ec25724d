"""Trainings that are planned anew, over both kinds of database: all sweeps follow, and deletion finds what was left."""

from dataclasses import replace

from orchestrator.record.store import Store
from orchestrator.record.writes.trainings import Renewed, Tally
from orchestrator.views.events import Failed, Progressed, SweepSettled
from orchestrator.views.orders import Failure
from orchestrator.views.planned import PlannedTrial
from tests.record.sample import SLOT, claimed, lease, new_sweep, planned, progress, recipe, run_all, started, states
from workers.catalog import stamp


def test_trials_move_to_trainings_of_today(store: Store) -> None:
    fence = lease(store)
    one, two = (started(store, fence, name, losses=["triplet"]) for name in ("one", "two"))
    new = new_sweep("fresh")
    fresh = store.submissions.add_sweep(replace(new, spec={**new.spec, "fresh": True})).id
    store.writer(fence).sweeps.start(fresh, **planned(losses=["triplet"], seeds=[0]), slot=SLOT, fresh=True)
    order = claimed(store, fence)
    store.writer(fence).events.write(Progressed(order.attempt, 1, progress(10, checkpoint="last.pt")))
    store.writer(fence).events.write(Failed(order.attempt, Failure("infrastructure", "gone"), True))
    old = [stamp(recipe(seed=0).model_dump(mode="json"))]
    found = store.trainings.outdated(old)
    assert len(found) == 3
    plans = [recipe(seed=each.recipe["seed"], pins={"versions": {"loss": 2}}) for each in found]
    renewed = [
        Renewed(each, PlannedTrial(0, 0, 0, {}, plan, plan.fingerprint))
        for each, plan in zip(found, plans, strict=True)
    ]
    tallies: list[Tally] = []
    said = store.writer(fence).trainings.plan_anew(
        renewed, old, lambda tally: tallies.append(tally) or f"{tally.moved} moved"
    )
    assert said == {one: "2 moved", two: "2 moved", fresh: "1 moved"}
    assert sorted(tally.begun for tally in tallies) == [0, 1, 1]
    assert store.trainings.outdated(old) == []
    assert store.writer(fence).trainings.plan_anew(renewed, old, lambda _: "") == {}
    assert run_all(store, fence) == 3, "two that both sweeps share, and one of the fresh sweep"
    assert states(store, one) == states(store, two) == ["finished"] * 2
    (trial, _) = store.trials.page(one).items
    assert [each.training for each in store.trials.get(trial.id).replaced] == [order.training]
    for sweep in (one, two, fresh):
        store.writer(fence).events.write(SweepSettled(sweep))
    alone = store.sweeps.deletion(two)
    assert alone is not None
    assert order.training not in alone.trainings
    store.writer(fence).sweeps.delete(two)
    left = store.sweeps.deletion(one)
    assert left is not None
    assert order.training in left.trainings
    store.writer(fence).sweeps.delete(one)
