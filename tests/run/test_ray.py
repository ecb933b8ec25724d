"""What the engine on Ray does beyond the conformance suite: slots that die, stall, leak, are left and taken over."""

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from orchestrator.run import dispatch
from orchestrator.run.attempt import Workplace
from orchestrator.run.dispatch import Execution
from orchestrator.run.engine import Engine
from orchestrator.run.inline import Inline
from orchestrator.run.memory_growth import Allowance
from orchestrator.run.ray import pool
from orchestrator.run.ray.engine import Listening, RayTune
from orchestrator.run.ray.pool import HeldSlot
from orchestrator.run.slot_actor import FORM
from orchestrator.spec.slot import Slot
from orchestrator.views.errors import UnavailableError
from orchestrator.views.resources import Shape
from tests.run.broker import MemoryBroker, order
from tests.run.test_engine import broker_of


@pytest.mark.parametrize("kind", ["inline", pytest.param("ray_tune", marks=pytest.mark.ray)])
def test_a_training_that_leaks_costs_slots_and_no_training(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    allowance = Allowance(times=1.05, least=160 * 2**20, seconds=0)
    workplace = Workplace("tests.run.trainings:leaking", tmp_path / "storage", tmp_path, allowance=allowance)
    if kind == "inline":
        engine: Engine = Inline(workplace)
    else:
        request.getfixturevalue("own_ray")  # whose slots hold nothing yet
        engine = RayTune(workplace, None, tmp_path / "tune", limit=1, linger=0)
    orders = [order(seed=seed) for seed in range(11)]
    broker = broker_of(*orders)
    with caplog.at_level("INFO"):
        engine.run(broker)
    assert sorted(broker.ended) == sorted(each.training for each in orders)
    assert set(broker.results) == {each.training for each in orders}
    assert broker.failures == []
    if isinstance(engine, RayTune):
        assert engine._pool is not None
        trained = Counter(broker.holders.values())
        assert max(trained.values()) == 5, "three trainings of 64 MiB each after the second"
        assert engine._pool.replaced == 2
        assert caplog.text.count("GiB of memory after 5 trainings") == 2


@pytest.mark.ray
def test_a_slot_that_dies_is_replaced_and_training_resumes(local_ray: None, tmp_path: Path) -> None:
    engine = RayTune(
        Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path), None, tmp_path / "tune", linger=0
    )
    each, poison = order("dies", iterations=6), order("poison")
    broker = broker_of(each, poison)
    engine.run(broker)
    assert each.training in broker.results
    steps = [int(line) for line in (tmp_path / "storage" / each.training / "steps.txt").read_text().split()]
    assert steps == [1, 2, 3, 4, 5, 6]
    assert broker.ended.count(poison.training) == 1
    assert all(failure.kind == "infrastructure" for failure in broker.failures)


class Dumb:
    """A slot whose answers never arrive, as those that were still on a node that died."""

    def listen(self, attempt: str, seen: int, wait: float) -> None:
        raise LookupError("the answer is gone")


@pytest.mark.ray
def test_a_slot_whose_answer_is_lost_is_lost(local_ray: None) -> None:
    each, listening = order(), Listening()
    slot = HeldSlot("slot", Shape(1.0, 0.0, 0), "node", ray.remote(Dumb).remote())
    listening.follow(Execution(each, slot, 0, 0.0))
    (report,) = listening.reports(60)
    assert report.attempt == each.attempt
    assert "the answer is gone" in (report.lost or "")
    assert list(listening.reports(0)) == [], "nobody asks it again"


@pytest.mark.ray
def test_a_training_that_reports_nothing_is_stopped(local_ray: None, tmp_path: Path) -> None:
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path), None, tmp_path, linger=0)
    silent = replace(order(delay=600), slot=Slot(gpus=0, stall_minutes=0.05))
    good = order()
    broker = broker_of(silent, good)
    broker.retries = 0
    engine.run(broker)
    assert [(failure.kind, failure.message) for failure in broker.failures] == [
        ("stalled", "nothing was reported for 0.05 minutes (slot.stall_minutes)")
    ]
    assert set(broker.results) == {good.training}


@pytest.mark.ray
def test_a_database_that_goes_away_is_told_as_such_and_training_goes_on(local_ray: None, tmp_path: Path) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path)
    each = order("waits", iterations=200)

    def away(broker: MemoryBroker) -> None:
        if len(broker.messages.get(each.attempt, ())) > 3:
            raise UnavailableError("the database is away")

    broker = broker_of(each)
    broker.at_tick = away
    engine = RayTune(workplace, None, tmp_path / "tune", linger=0)
    with pytest.raises(UnavailableError, match="the database is away"):
        engine.run(broker)
    (tmp_path / "storage" / "go").touch()
    broker.at_tick = lambda broker: None
    broker.waiting.append(replace(each, holder=broker.holders[each.attempt], seen=len(broker.messages[each.attempt])))
    engine.run(broker)
    assert each.training in broker.results
    steps = [int(line) for line in (tmp_path / "storage" / each.training / "steps.txt").read_text().split()]
    assert steps == list(range(1, 201)), "no step was trained twice"


@pytest.mark.ray
def test_short_trainings_follow_one_another_beside_a_long_one(local_ray: None, tmp_path: Path) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path)
    long, short = order("waits", iterations=10), [order(iterations=10) for _ in range(11)]
    broker, hang = broker_of(long, *short), time.monotonic() + 300

    def release(broker: MemoryBroker) -> None:
        if len(broker.results) == len(short) or time.monotonic() > hang:
            (tmp_path / "storage" / "go").touch()

    broker.at_tick = release
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(broker)
    assert broker.ended[len(short) :] == [long.training], "neither slot waits for the other"
    assert sorted(Counter(broker.holders.values()).values()) == [1, len(short)]


@pytest.mark.ray
def test_an_order_whose_slot_no_node_can_hold_is_given_back(local_ray: None, tmp_path: Path) -> None:
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path), None, tmp_path, linger=0)
    huge, good = replace(order(), slot=Slot(cpus=512, gpus=0)), order()
    broker = broker_of(huge, good)
    engine.run(broker)
    assert broker.given_back == [huge.training]
    assert broker.failures == []
    assert set(broker.results) == {good.training}
    assert broker.starts.count(good.training) == 2, "told again once the slot's host is known"


@pytest.mark.ray
def test_what_is_cancelled_while_it_waits_for_its_slot_holds_up_nothing(local_ray: None, tmp_path: Path) -> None:
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path, tmp_path), None, tmp_path / "tune", linger=0)
    slow, small = order("waits", iterations=10), order()
    large = replace(order(), slot=Slot(cpus=2, gpus=0))
    broker = broker_of(slow, large, small)

    def cancel(broker: MemoryBroker) -> None:
        if slow.training in broker.last and not any(large is one for one in broker.waiting):
            broker.unwanted.add(large.training)
        if small.training in broker.results:
            broker.unwanted.add(slow.training)

    broker.at_tick = cancel
    engine.run(broker)
    assert list(broker.results) == [small.training]
    assert sorted(broker.ended) == sorted(one.training for one in (slow, large, small))


@pytest.mark.ray
def test_what_waits_for_its_slot_gives_way_to_a_higher_priority(local_ray: None, tmp_path: Path) -> None:
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path, tmp_path), None, tmp_path / "tune", linger=0)
    slow, urgent = order("waits", iterations=10), order()
    large = replace(order(), slot=Slot(cpus=2, gpus=0))
    broker = broker_of(slow, large)

    def hurry(broker: MemoryBroker) -> None:
        if slow.training in broker.last and not broker.waiting and not broker.overtaken:
            broker.overtaken.add(large.training)
            broker.waiting.append(urgent)
        if urgent.training in broker.results:
            (tmp_path / "go").touch()

    broker.at_tick = hurry
    engine.run(broker)
    assert broker.given_back == [large.training]
    assert broker.ended == [urgent.training, slow.training]


@pytest.mark.ray
def test_what_an_earlier_conductor_left_idle_is_known_while_nothing_runs(local_ray: None, tmp_path: Path) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path, tmp_path)
    broker = broker_of(order())
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(broker)
    engine = RayTune(workplace, None, tmp_path / "tune", linger=0)
    engine.rest(broker)
    assert engine._pool is not None
    assert len(engine._pool._idle()) >= 1, "so that it is ended in time"


@pytest.mark.ray
def test_a_slot_without_room_is_no_stall(local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path, tmp_path), None, tmp_path / "tune", linger=0)
    broker = broker_of(order(iterations=1, delay=60))  # which says nothing: a slot without room cannot
    broker.retries = 0
    monkeypatch.setattr(HeldSlot, "begun", False)
    monkeypatch.setattr(dispatch, "ROOM_SECONDS", 2.0)
    engine.run(broker)
    (failure,) = broker.failures
    assert (failure.kind, failure.begun) == ("infrastructure", False)
    assert "had no room" in failure.message


@pytest.mark.ray
def test_a_new_conductor_takes_over_full_slots_and_ends_what_nobody_knows(local_ray: None, tmp_path: Path) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path)
    known, forgotten = order("waits", iterations=150), order("waits", iterations=100_000)
    holders: dict[str, str] = {}

    def close(broker: MemoryBroker) -> None:
        broker.close = {known.training, forgotten.training} <= set(broker.last)

    first = broker_of(known, forgotten)
    first.at_tick, first.holders = close, holders
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(first)
    assert first.ended == []
    (tmp_path / "storage" / "go").touch()
    later = order()
    second = broker_of(replace(known, holder=holders[known.attempt], seen=len(first.messages[known.attempt])), later)
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(second)
    assert set(second.results) == {known.training, later.training}
    assert second.failures == []
    steps = [int(line) for line in (tmp_path / "storage" / known.training / "steps.txt").read_text().split()]
    assert steps == list(range(1, 151)), "no step was trained twice"


@pytest.mark.ray
def test_a_slot_that_speaks_in_another_form_is_stopped_and_its_training_goes_on(
    local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path)
    each = order("waits", iterations=30)

    def close(broker: MemoryBroker) -> None:
        broker.close = each.training in broker.last and broker.last[each.training].step >= 5

    first = broker_of(each)
    first.at_tick = close
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(first)
    assert first.ended == []
    monkeypatch.setattr(pool, "FORM", FORM + 1)

    def go(broker: MemoryBroker) -> None:  # and not before: else it may end before anybody has asked it to stop
        if broker.given_back:
            (tmp_path / "storage" / "go").touch()

    second = broker_of(
        replace(each, holder=first.holders[each.attempt], seen=len(first.messages[each.attempt]), resume=None)
    )
    second.last, second.at_tick = dict(first.last), go
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(second)
    assert (second.failures, second.given_back) == ([], [each.training]), "a stop that was asked for is no failure"
    assert each.training in second.results
    steps = [int(line) for line in (tmp_path / "storage" / each.training / "steps.txt").read_text().split()]
    assert sorted(set(steps)) == list(range(1, 31))
    assert len(steps) <= 31, "it went on from its last checkpoint"
