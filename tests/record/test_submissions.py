"""What clients append: sweeps, requests, extensions, resolutions."""

import threading
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.requests import MOST_WAITING_OF
from orchestrator.record.resolutions import NewResolution
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.evidence import CellSeeds, ResolutionBudget, ResolutionRound, ResolutionView
from orchestrator.views.runs import Extension, PlannedTrial
from orchestrator.views.sweeps import Submitted
from tests.record.conftest import ON_BOTH
from tests.record.sample import new_sweep, recipe, run_all, started


@ON_BOTH
def test_concurrent_duplicates_become_one_sweep(store: Store, another: Callable[[], Store]) -> None:
    shared = another()
    answers: list[Submitted] = []
    gate = threading.Barrier(8)

    def submit(own: Store) -> None:
        gate.wait()
        answers.append(own.submissions.add_sweep(new_sweep(key="k")))

    threads = [threading.Thread(target=submit, args=(store if n % 2 else shared,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len({answer.id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1
    assert len(store.sweeps.page().items) == 1


def test_a_request_names_a_sweep_and_a_trial_of_it(store: Store, fence: int) -> None:
    mine, other = started(store, fence), started(store, fence)
    trial = store.trials.page(other).items[0].id
    with pytest.raises(NotFoundError, match="no sweep 99"):
        store.submissions.add_request("cancel", 99, None, None)
    with pytest.raises(NotFoundError, match=f"no trial {trial} in sweep {mine}"):
        store.submissions.add_request("cancel", mine, trial, None)
    assert store.requests.pending() == []


@ON_BOTH
def test_what_waits_for_a_sweep_has_a_limit(store: Store, fence: int, writer: Writer) -> None:
    one, two = started(store, fence), started(store, fence)
    asked = [store.submissions.add_request("extend", one, None, None, {"text": "x", "spec": {}}) for _ in range(4)]
    assert len(asked) == MOST_WAITING_OF["extend"]
    with pytest.raises(ConflictError, match=f"4 requests of the kind 'extend' wait for sweep {one} already"):
        store.submissions.add_request("extend", one, None, None, {"text": "x", "spec": {}})
    store.submissions.add_request("extend", two, None, None, {"text": "x", "spec": {}})
    store.submissions.add_request("cancel", one, None, None)
    writer.requests.applied(asked[0], "0 trials added")
    store.submissions.add_request("extend", one, None, None, {"text": "x", "spec": {}})


def test_an_extension_that_was_carried_out_keeps_no_spec(store: Store, fence: int, writer: Writer) -> None:
    sweep = started(store, fence)
    wider = store.submissions.add_request("extend", sweep, None, None, {"text": "x" * 1_000, "spec": {}})
    part = store.submissions.add_request("cancel", sweep, None, None, {"cell": 1})
    for one in (wider, part):
        writer.requests.applied(one, "0 trials")
    assert store.requests.get(part).cell == 1
    assert store.requests.looks(sweep) == ()
    with store.database.reading() as connection:
        kept = sa.select(schema.request.c.arguments).where(schema.request.c.id == wider)
        assert connection.execute(kept).scalar_one() is None


def carry_out(store: Store, fence: int, sweep: int, asked: int, seed: int) -> None:
    made = recipe("triplet", seed)
    trial = PlannedTrial(0, 0, seed, {"seed": str(seed)}, made, made.fingerprint)
    store.writer(fence).sweeps.extend(sweep, Extension("text", {}, seed, [], [], [trial]), asked)
    store.writer(fence).requests.applied(asked, "1 trial added")


@ON_BOTH
def test_a_round_and_its_extension_are_written_together(store: Store, fence: int) -> None:
    sweep = started(store, fence)
    run_all(store, fence)
    budget = ResolutionBudget(seeds=2)
    writer = store.writer(fence).resolutions
    new = NewResolution(sweep, store.submissions.add_request("resolve", sweep, None, "ann"), "main", budget, "ann")
    writer.begin(new)
    writer.begin(new)  # after a crash
    (going,) = store.resolutions.going(sweep)
    with pytest.raises(ConflictError, match="goes on"):
        writer.begin(NewResolution(sweep, 99, "main", budget, None))
    coming = ResolutionRound(
        number=1, cells=[CellSeeds(cell=0, labels={"loss": "triplet"}, seeds=[2])], trials=1, hours=None, open=1
    )
    report = going.report.model_copy(update={"rounds": [coming], "trials": 1})
    asked = writer.grow(going, report, {"text": "wider", "spec": {}})
    (waiting,) = [one for one in store.requests.pending() if one.kind == "extend"]
    assert (waiting.id, waiting.arguments["text"], waiting.actor) == (asked, "wider", "ann")
    (going,) = store.resolutions.going()
    assert (going.position, going.report.rounds[0].request, going.budget) == (4, asked, budget)
    assert not store.resolutions.at_rest(sweep)
    carry_out(store, fence, sweep, asked, 2)
    assert store.requests.looks(sweep)[0].position == 4
    writer.end(going, "1 of 1 comparison decided", going.report)
    with pytest.raises(ConflictError, match="has ended"):
        writer.grow(going, report, {})
    found = store.resolutions.latest(sweep)
    assert isinstance(found, ResolutionView)
    assert (found.state, found.said, found.trials) == ("ended", "1 of 1 comparison decided", 1)
