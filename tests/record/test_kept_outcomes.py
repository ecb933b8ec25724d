"""What is kept of large sweeps gives at every moment what reading all of it gives, whatever happened in between."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.reads import kept_outcomes, recent, trial_outcomes
from orchestrator.record.store import Store
from orchestrator.record.writes.trainings import Renewed
from orchestrator.views.callers import Caller, calling
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.events import Finished
from orchestrator.views.extension import Extension, MeasuredTrial
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.planned import PlannedTrial
from tests.record.sample import SLOT, claimed, fail, lease, new_sweep, planned, recipe, run, run_all, started
from tests.record.test_invariants import LOSSES, History
from workers.catalog import stamp
from workers.contract import Recipe, Result

STEPS = 80
SPEC = {**new_sweep().spec, "select": {}}


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "LARGE", 1)


class Life(History):
    """A random life in which sweeps also grow, go, are evaluated further and are planned anew."""

    def __init__(self, store: Store, seed: int) -> None:
        super().__init__(store, seed)
        self.version = 1
        self.steps += [self.extend, self.extend, self.measure, self.measure, self.finish, self.delete, self.renew]

    def extend(self) -> None:
        """One more seed of a cell that is there."""
        if self.sweeps:
            sweep = self.random.choice(self.sweeps)
            last = self.store.outcomes.of(sweep).trials[-1]
            made = recipe("triplet", 100 + last.trial)
            trial = PlannedTrial(last.cell, 0, last.repeat + 1, {"seed": str(100 + last.trial)}, made, made.fingerprint)
            self.writer.sweeps.extend(sweep, Extension("text", SPEC, last.position + 2, [], [], [trial]))

    def measure(self) -> None:
        """A further metric of a trial, whatever has become of it."""
        if not self.sweeps:
            return
        sweep = self.random.choice(self.sweeps)
        trials = self.store.outcomes.of(sweep).trials
        one = self.random.choice(trials)
        its = Recipe.model_validate({**self.store.trials.get(one.trial).recipe, "metrics": ["nmi_sec"]})
        plan = PlannedTrial(one.cell, one.candidate, one.repeat, one.repeat_labels, its, its.fingerprint)
        asked = MeasuredTrial(one.trial, plan)
        self.writer.sweeps.extend(sweep, Extension("text", SPEC, len(trials), [], [], [], [asked]))

    def delete(self) -> None:
        if len(self.sweeps) > 1 and self.random.random() < 0.3:
            sweep = self.random.choice(self.sweeps)
            try:
                self.writer.sweeps.delete(sweep)
            except ConflictError:
                return
            self.sweeps.remove(sweep)

    def renew(self) -> None:
        """The loss of those that wait or run has another version now."""
        old = [stamp(recipe(pins={"versions": {"loss": self.version}}).model_dump(mode="json"))]
        self.version += 1
        found = self.store.trainings.outdated(old)
        plans = [Recipe.model_validate({**one.recipe, "pins": {"versions": {"loss": self.version}}}) for one in found]
        trials = [PlannedTrial(0, 0, 0, {}, plan, plan.fingerprint) for plan in plans]
        renewed = [Renewed(one, trial) for one, trial in zip(found, trials, strict=True)]
        self.writer.trainings.plan_anew(renewed, old, lambda tally: "")


def check(stores: Sequence[Store], sweeps: Sequence[int]) -> None:
    for store in stores:
        for sweep in sweeps:
            assert repr(store.outcomes.lately(sweep)) == repr(store.outcomes.of(sweep))  # a NaN equals no other


@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_reading_all_gives(
    store: Store, another: Callable[[], Store], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_outcomes, "MANY", 2)  # of both ways to read again
    life, seldom = Life(store, seed), another()
    for at in range(STEPS):
        life.random.choice(life.steps)()
        check([store, *([seldom] if at % 7 == 0 else [])], life.sweeps)
    check([store, seldom], life.sweeps)


def test_evaluations_of_finished_trials_come_and_fail(store: Store) -> None:
    """Nothing but the state of the evaluation changes: the trial has finished all the while."""
    fence = lease(store)
    sweep = started(store, fence, losses=["triplet"], seeds=[0, 1])
    run(store, fence, claimed(store, fence))
    waiting = claimed(store, fence)
    first = store.outcomes.lately(sweep).trials[0]
    wider = recipe(metrics=["nmi_sec"])
    asked = MeasuredTrial(first.trial, PlannedTrial(0, 0, 0, {"seed": "0"}, wider, wider.fingerprint))
    store.writer(fence).sweeps.extend(sweep, Extension("text", SPEC, 2, [], [], [], [asked]))
    assert store.outcomes.lately(sweep).trials[0].coming == ("nmi_sec",)
    coming = store.sweeps.change(sweep)
    fail(store, fence, claimed(store, fence))
    assert store.outcomes.lately(sweep).trials[0].coming == ()
    assert store.sweeps.change(sweep) != coming, "a page that says that it is being evaluated is old now"
    store.writer(fence).trials.retry(sweep)
    assert store.outcomes.lately(sweep).trials[0].coming == ("nmi_sec",)
    told = Result(outcome="ok", metrics={"best/test/nmi_sec": 0.25}, steps=0, seconds=0.1)
    store.writer(fence).events.write(Finished(claimed(store, fence).attempt, told))
    assert store.outcomes.lately(sweep).trials[0].values["best/test/nmi_sec"] == 0.25
    run(store, fence, waiting)
    check([store], [sweep])


def _read_again(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int | None]]:
    """What is read of trials from now on: how many, and of which cell."""
    read: list[tuple[int, int | None]] = []

    def noting(reading: Callable[..., Any], cell: int | None) -> Callable[..., Any]:
        def noted(*given: Any) -> Any:
            found = list(reading(*given))
            read.append((len(found), given[2] if cell is None else None))
            return iter(found)

        return noted

    for name, cell in (("of_sweep", 0), ("of_candidates", None)):
        monkeypatch.setattr(trial_outcomes, name, noting(getattr(trial_outcomes, name), cell))
    return read


def test_only_what_changed_is_read_again(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fence = lease(sqlite_store)
    sweep = started(sqlite_store, fence, losses=LOSSES, seeds=[0, 1, 2])
    sqlite_store.outcomes.lately(sweep)
    read = _read_again(monkeypatch)
    sqlite_store.outcomes.lately(sweep)
    assert read == []
    order = claimed(sqlite_store, fence)
    sqlite_store.outcomes.lately(sweep)
    assert read == [(3, 0)], "one begins: its candidate, of the first cell"
    run(sqlite_store, fence, order)
    found = sqlite_store.outcomes.lately(sweep)
    assert read == [(3, 0), (3, 0)]
    assert [one.state for one in found.trials[:2]] == [TrialState.FINISHED, TrialState.WAITING]
    assert [one.position for one in found.trials] == list(range(9))


def test_of_a_sweep_that_ended_nothing_is_kept(sqlite_store: Store) -> None:
    fence = lease(sqlite_store)
    sweep = started(sqlite_store, fence)
    sqlite_store.outcomes.lately(sweep)
    assert list(sqlite_store.outcomes._kept._kept) == [sweep]
    run_all(sqlite_store, fence)
    Life.settle(_settling(sqlite_store, fence))
    assert {one.state for one in sqlite_store.outcomes.lately(sweep).trials} == {TrialState.FINISHED}
    assert sqlite_store.outcomes.lately(sweep).state == "finished"
    assert not sqlite_store.outcomes._kept._kept


def _settling(store: Store, fence: int) -> Life:
    life = Life.__new__(Life)
    life.store, life.writer = store, store.writer(fence)
    return life


def test_so_many_trials_are_kept_and_no_more(sqlite_store: Store) -> None:
    fence = lease(sqlite_store)
    sweeps = [started(sqlite_store, fence, str(one), seeds=[one], losses=LOSSES) for one in range(3)]
    large = started(sqlite_store, fence, "large", seeds=[*range(3)], losses=LOSSES)
    kept = sqlite_store.outcomes._kept = kept_outcomes.KeptOutcomes(most=8)
    for sweep in (*sweeps, sweeps[1]):
        check([sqlite_store], [sweep])
    assert list(kept._kept) == [sweeps[2], sweeps[1]], "three of each, those that were asked for last"
    check([sqlite_store], [large])
    assert list(kept._kept) == [sweeps[2], sweeps[1]], "nine are too many"


def test_another_sweep_of_the_same_number_is_another(sqlite_store: Store) -> None:
    """A database that is put back while the service runs has other sweeps under numbers that were given before."""
    fence = lease(sqlite_store)
    sweep = started(sqlite_store, fence)
    sqlite_store.outcomes.lately(sweep)
    with sqlite_store.database.writing() as connection:
        connection.execute(sa.update(schema.sweep).values(uid="another"))
        connection.execute(sa.update(schema.trial).values(repeat_labels={"seed": "7"}))
    assert {one.repeat_labels["seed"] for one in sqlite_store.outcomes.lately(sweep).trials} == {"7"}


def test_who_may_not_see_a_sweep_gets_nothing_that_is_kept(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence)
    assert store.outcomes.lately(sweep).trials
    with calling(Caller(user=9, name="eve", seen=frozenset({2}))), pytest.raises(NotFoundError):
        store.outcomes.lately(sweep)
    with calling(Caller(user=8, name="ann", seen=frozenset({1}))):
        assert repr(store.outcomes.lately(sweep)) == repr(store.outcomes.of(sweep))


def test_candidates_of_a_search_come_one_by_one(sqlite_store: Store) -> None:
    fence = lease(sqlite_store)
    plan = planned(losses=["triplet"], seeds=[0])
    sweep = sqlite_store.submissions.add_sweep(new_sweep()).id
    sqlite_store.writer(fence).sweeps.start(sweep, **plan, slot=SLOT, fresh=False)
    counts = [len(sqlite_store.outcomes.lately(sweep).candidates)]
    for index in (1, 2):
        made = recipe("triplet", index)
        trial = PlannedTrial(0, index, 0, {"seed": "0"}, made, made.fingerprint)
        one = plan["candidates"][0].__class__(0, index, {"loss.margin": f"0.{index}"})
        sqlite_store.writer(fence).sweeps.extend(sweep, Extension("text", SPEC, 1 + index, [], [one], [trial]))
        check([sqlite_store], [sweep])
        counts.append(len(sqlite_store.outcomes.lately(sweep).candidates))
    assert [after - before for before, after in pairwise(counts)] == [1, 1]
