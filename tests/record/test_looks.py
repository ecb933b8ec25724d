"""Looks and resolutions on both kinds of database: what an extension keeps, and what a round is written with."""

from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.record.store import Store
from orchestrator.record.writes.resolutions import NewResolution
from orchestrator.views.errors import ConflictError
from orchestrator.views.extension import Extension
from orchestrator.views.planned import PlannedTrial
from orchestrator.views.resolutions import CellSeeds, ResolutionBudget, ResolutionRound, ResolutionView
from tests.record.sample import lease, recipe, run_all, started


def grown(store: Store, fence: int, sweep: int, seed: int, arguments: Mapping[str, Any]) -> int:
    """Extend by a seed of the first cell, as the conductor does; gives the request."""
    asked = store.submissions.add_request("extend", sweep, None, "ann", arguments)
    carry_out(store, fence, sweep, asked, seed)
    return asked


def carry_out(store: Store, fence: int, sweep: int, asked: int, seed: int) -> None:
    made = recipe("triplet", seed)
    trial = PlannedTrial(0, 0, seed, {"seed": str(seed)}, made, made.fingerprint)
    store.writer(fence).sweeps.extend(sweep, Extension("text", {}, seed, [], [], [trial]), asked)
    store.writer(fence).requests.applied(asked, "1 trial added")


def test_an_extension_is_kept_as_a_look_with_what_had_finished(store: Store) -> None:
    fence = lease(store)
    sweep = started(store, fence)
    asked = grown(store, fence, sweep, 2, {"text": "wider", "spec": {}})
    run_all(store, fence)
    grown(store, fence, sweep, 3, {"text": "wider still", "spec": {}})
    assert [(one.position, one.finished) for one in store.requests.looks(sweep)] == [(4, 0), (5, 5)]
    assert [one.position for one in store.outcomes.of(sweep).trials] == list(range(6))
    store.submissions.add_request("extend", sweep, None, None, {"text": "", "spec": {}})
    assert len(store.requests.looks(sweep)) == 2, "one that waits gave nothing"
    assert store.requests.get(asked).outcome == "1 trial added"


def test_a_round_and_its_extension_are_written_together(store: Store) -> None:
    fence = lease(store)
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
