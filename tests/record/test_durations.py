"""How long trainings of a shape took, as the database has it."""

from typing import Any

import pytest

from orchestrator.cost.estimate import Duration, shape
from orchestrator.record.reads import trainings
from orchestrator.record.store import Store
from orchestrator.views.events import Finished, Started
from orchestrator.views.planned import Candidate, Cell, PlannedTrial
from tests.record.sample import SLOT, claimed, lease, new_sweep, recipe, result


def trained(store: Store, fence: int, seconds: float, outcome: str = "ok", device: Any = "cpu", **changes: Any) -> None:
    """One sweep of one training that took so long."""
    made = recipe(**changes)
    sweep = store.submissions.add_sweep(new_sweep(total=1)).id
    trial = PlannedTrial(0, 0, 0, {}, made, made.fingerprint)
    store.writer(fence).sweeps.start(sweep, [Cell(0, {})], [Candidate(0, 0, {})], [trial], slot=SLOT, fresh=True)
    attempt = claimed(store, fence).attempt
    store.writer(fence).events.write(Started(attempt, "slot-0", "host-a"))
    where = {} if device is None else {"device": device, "device_name": f"the {device}"}
    store.writer(fence).events.write(Finished(attempt, result(outcome=outcome, seconds=seconds, provenance=where)))


def test_the_latest_of_each_shape(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainings, "MOST_MEASURED", 2)
    fence = lease(store)
    for seconds, seed in ((1.0, 0), (2.0, 1), (3.0, 2)):
        trained(store, fence, seconds, seed=seed, loss="semihard")
    trained(store, fence, 9.0, device="cuda", evaluate_every=20)
    trained(store, fence, 8.0, iterations=None, epochs=4, validation={"name": "cross_validation", "folds": 3})
    trained(store, fence, 5.0, outcome="diverged")
    trained(store, fence, 6.0, device=None)
    trained(store, fence, 7.0, dataset="mnist")
    folds = recipe(iterations=None, epochs=4, validation={"name": "cross_validation", "folds": 3})
    whole, rare, never = (shape(recipe(**changes)) for changes in ({}, {"evaluate_every": 20}, {"evaluate_every": 30}))
    found = store.trainings.durations([whole, rare, never, shape(folds)])
    assert found == {
        whole: [Duration(3.0, 100, "cpu", "the cpu")],
        rare: [Duration(9.0, 100, "cuda", "the cuda")],
        shape(folds): [Duration(8.0, 12, "cpu", "the cpu")],
    }
    assert store.trainings.durations([]) == {}
    monkeypatch.setattr(trainings, "MOST_MEASURED", 20)
    assert [one.seconds for one in store.trainings.durations([whole])[whole]] == [3.0, 2.0, 1.0]
