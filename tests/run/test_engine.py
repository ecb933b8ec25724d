"""The conformance suite: what every engine does with orders."""

import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Engine
from orchestrator.run.inline import Inline
from orchestrator.run.memory_growth import Allowance
from orchestrator.run.ray import dispatch
from orchestrator.run.ray.engine import RayTune
from orchestrator.run.ray.slot_handle import HeldSlot
from orchestrator.views.errors import UnavailableError
from orchestrator.views.trial import Inspected, Order, Slot
from tests.run.desk import MemoryDesk, order
from workers.catalog import Need
from workers.contract import Part

LOOKING = "tests.run.trainings:looking"


@pytest.fixture(params=["inline", pytest.param("ray_tune", marks=pytest.mark.ray)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path / "data", inspect=LOOKING)
    if request.param == "inline":
        yield Inline(workplace)
    else:
        request.getfixturevalue("local_ray")
        yield RayTune(workplace, None, tmp_path / "tune", linger=0)


def desk_of(*orders: Order) -> MemoryDesk:
    return MemoryDesk(deque(orders))


def test_every_order_ends_exactly_once(engine: Engine) -> None:
    orders = [order(seed=seed) for seed in range(7)]
    desk = desk_of(*orders)
    engine.run(desk)
    assert sorted(desk.ended) == sorted(each.training for each in orders)
    assert {desk.results[each.training].metrics["best/test/map@r"] for each in orders} == {s / 100 for s in range(7)}


def test_messages_arrive_in_order_without_gaps(engine: Engine) -> None:
    each = order(iterations=20)
    desk = desk_of(each)
    engine.run(desk)
    assert desk.messages[each.attempt] == list(range(1, 21))


def test_an_error_of_the_recipe_is_told_and_the_rest_goes_on(engine: Engine) -> None:
    bad, good = order("raises"), order()
    desk = desk_of(bad, good)
    engine.run(desk)
    (failure,) = desk.failures
    assert (failure.kind, failure.message) == ("recipe", "ValueError: alpha must be positive")
    assert "trainings.py" in failure.trace
    assert good.training in desk.results


def heard(engine: Engine, wanted: int) -> list[Inspected]:
    found: list[Inspected] = []
    until = time.monotonic() + 120
    while len(found) < wanted and time.monotonic() < until:
        found += engine.inspected()
        time.sleep(0.02)
    return found


def test_a_machine_says_what_its_data_root_has(engine: Engine, tmp_path: Path) -> None:
    (machine,) = engine.machines()
    cub, sop = (Need(dataset=Part(name=name)) for name in ("cub200", "sop"))
    (tmp_path / "data" / "sop").mkdir(parents=True)
    engine.inspect(machine, [cub, sop])
    found = heard(engine, 2)
    assert {one.node for one in found} == {machine.uid}
    assert {str(one.need): one.finding.state for one in found} == {"cub200": "missing", "sop": "ok"}
    assert engine.inspected() == []
    (tmp_path / "data" / "blind").touch()
    engine.inspect(machine, [cub])
    (blind,) = heard(engine, 1)
    assert (blind.finding.state, "PermissionError" in blind.finding.said) == ("unknown", True)


def test_missing_data_are_told_as_such(engine: Engine, tmp_path: Path) -> None:
    lacking, damaged = order("lacks"), order("damages")
    desk = desk_of(lacking, damaged)
    engine.run(desk)
    assert {failure.kind: failure.message for failure in desk.failures} == {
        "missing": "DataMissingError: cub200 is missing",
        "damaged": "DataDamagedError: cub200 has 3 images, expected 4",
    }


def test_divergence_is_a_result(engine: Engine) -> None:
    each = order("diverges")
    desk = desk_of(each)
    engine.run(desk)
    assert desk.results[each.training].outcome == "diverged"


def test_an_unwanted_order_is_stopped_while_it_trains(engine: Engine) -> None:
    slow, other = order(iterations=2000, delay=0.02), order()

    def cancel(desk: MemoryDesk) -> None:
        if slow.training in desk.last:
            desk.unwanted.add(slow.training)

    desk = desk_of(slow, other)
    desk.at_tick = cancel
    engine.run(desk)
    assert sorted(desk.ended) == sorted([slow.training, other.training])
    assert slow.training not in desk.results


def test_orders_that_come_while_it_runs_are_taken(engine: Engine) -> None:
    first, late = order(iterations=30, delay=0.02), order()

    def add(desk: MemoryDesk) -> None:
        if first.training in desk.last and late is not None and late.training not in desk.ended:
            desk.at_tick = lambda desk: None
            desk.waiting.append(late)

    desk = desk_of(first)
    desk.at_tick = add
    engine.run(desk)
    assert set(desk.results) == {first.training, late.training}


def test_a_closing_desk_ends_the_run_and_the_next_run_goes_on(engine: Engine, tmp_path: Path) -> None:
    each = order("waits", iterations=60)

    def close(desk: MemoryDesk) -> None:
        if each.training in desk.last and desk.last[each.training].step >= 3:
            desk.close = True

    desk = desk_of(each)
    desk.at_tick = close
    engine.run(desk)
    assert desk.ended == []
    (tmp_path / "storage" / "go").touch()
    desk.close, desk.at_tick = False, lambda desk: None
    desk.waiting.append(replace(each, holder=desk.holders[each.attempt], seen=len(desk.messages[each.attempt])))
    engine.run(desk)
    assert each.training in desk.results
    steps = [int(line) for line in (tmp_path / "storage" / each.training / "steps.txt").read_text().split()]
    assert steps == list(range(1, 61)), "no step was trained twice"


@pytest.mark.parametrize("kind", ["inline", pytest.param("ray_tune", marks=pytest.mark.ray)])
def test_a_training_that_leaks_costs_slots_and_no_training(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    allowance = Allowance(times=1.05, least=160 * 2**20)
    workplace = Workplace("tests.run.trainings:leaking", tmp_path / "storage", tmp_path, allowance=allowance)
    if kind == "inline":
        engine: Engine = Inline(workplace)
    else:
        request.getfixturevalue("own_ray")  # whose slots hold nothing yet
        engine = RayTune(workplace, None, tmp_path / "tune", limit=1, linger=0)
    orders = [order(seed=seed) for seed in range(11)]
    desk = desk_of(*orders)
    with caplog.at_level("INFO"):
        engine.run(desk)
    assert sorted(desk.ended) == sorted(each.training for each in orders)
    assert set(desk.results) == {each.training for each in orders}
    assert desk.failures == []
    if isinstance(engine, RayTune):
        assert engine._pool is not None
        trained = Counter(desk.holders.values())
        assert max(trained.values()) == 5, "three trainings of 64 MiB each after the second"
        assert engine._pool.replaced == 2
        assert caplog.text.count("GiB of memory after 5 trainings") == 2


@pytest.mark.ray
def test_a_slot_that_dies_is_replaced_and_training_resumes(local_ray: None, tmp_path: Path) -> None:
    engine = RayTune(
        Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path), None, tmp_path / "tune", linger=0
    )
    each, poison = order("dies", iterations=6), order("poison")
    desk = desk_of(each, poison)
    engine.run(desk)
    assert each.training in desk.results
    steps = [int(line) for line in (tmp_path / "storage" / each.training / "steps.txt").read_text().split()]
    assert steps == [1, 2, 3, 4, 5, 6]
    assert desk.ended.count(poison.training) == 1
    assert all(failure.kind == "infrastructure" for failure in desk.failures)


@pytest.mark.ray
def test_a_training_that_reports_nothing_is_stopped(local_ray: None, tmp_path: Path) -> None:
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path), None, tmp_path, linger=0)
    silent = replace(order(delay=600), slot=Slot(gpus=0, stall_minutes=0.05))
    good = order()
    desk = desk_of(silent, good)
    desk.retries = 0
    engine.run(desk)
    assert [(failure.kind, failure.message) for failure in desk.failures] == [
        ("stalled", "nothing was reported for 0.05 minutes (slot.stall_minutes)")
    ]
    assert set(desk.results) == {good.training}


@pytest.mark.ray
def test_a_database_that_goes_away_is_told_as_such_and_training_goes_on(local_ray: None, tmp_path: Path) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path)
    each = order("waits", iterations=200)

    def away(desk: MemoryDesk) -> None:
        if len(desk.messages.get(each.attempt, ())) > 3:
            raise UnavailableError("the database is away")

    desk = desk_of(each)
    desk.at_tick = away
    engine = RayTune(workplace, None, tmp_path / "tune", linger=0)
    with pytest.raises(UnavailableError, match="the database is away"):
        engine.run(desk)
    (tmp_path / "storage" / "go").touch()
    desk.at_tick = lambda desk: None
    desk.waiting.append(replace(each, holder=desk.holders[each.attempt], seen=len(desk.messages[each.attempt])))
    engine.run(desk)
    assert each.training in desk.results
    steps = [int(line) for line in (tmp_path / "storage" / each.training / "steps.txt").read_text().split()]
    assert steps == list(range(1, 201)), "no step was trained twice"


@pytest.mark.ray
def test_short_trainings_use_both_slots(local_ray: None, tmp_path: Path) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path)
    desk = desk_of(*[order(iterations=10, delay=0.02) for _ in range(12)])
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(desk)
    shares = Counter(desk.holders.values())
    assert len(desk.results) == 12
    assert len(shares) == 2
    assert min(shares.values()) >= 3, "neither slot waits for the other"


@pytest.mark.ray
def test_an_order_whose_slot_no_node_can_hold_is_given_back(local_ray: None, tmp_path: Path) -> None:
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path), None, tmp_path, linger=0)
    huge, good = replace(order(), slot=Slot(cpus=512, gpus=0)), order()
    desk = desk_of(huge, good)
    engine.run(desk)
    assert desk.given_back == [huge.training]
    assert desk.failures == []
    assert set(desk.results) == {good.training}
    assert desk.starts.count(good.training) == 2, "told again once the slot's host is known"


@pytest.mark.ray
def test_what_is_cancelled_while_it_waits_for_its_slot_holds_up_nothing(local_ray: None, tmp_path: Path) -> None:
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path, tmp_path), None, tmp_path / "tune", linger=0)
    slow, small = order(iterations=2000, delay=0.02), order()
    large = replace(order(), slot=Slot(cpus=2, gpus=0))
    desk = desk_of(slow, large, small)

    def cancel(desk: MemoryDesk) -> None:
        if slow.training in desk.last and not any(large is one for one in desk.waiting):
            desk.unwanted.add(large.training)
        if small.training in desk.results:
            desk.unwanted.add(slow.training)

    desk.at_tick = cancel
    engine.run(desk)
    assert list(desk.results) == [small.training]
    assert sorted(desk.ended) == sorted(one.training for one in (slow, large, small))


@pytest.mark.ray
def test_what_waits_for_its_slot_gives_way_to_a_higher_priority(local_ray: None, tmp_path: Path) -> None:
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path, tmp_path), None, tmp_path / "tune", linger=0)
    slow, urgent = order(iterations=400, delay=0.02), order()
    large = replace(order(), slot=Slot(cpus=2, gpus=0))
    desk = desk_of(slow, large)

    def hurry(desk: MemoryDesk) -> None:
        if slow.training in desk.last and not desk.waiting and not desk.overtaken:
            desk.overtaken.add(large.training)
            desk.waiting.append(urgent)

    desk.at_tick = hurry
    engine.run(desk)
    assert desk.given_back == [large.training]
    assert desk.ended == [urgent.training, slow.training]


@pytest.mark.ray
def test_what_an_earlier_conductor_left_idle_is_known_while_nothing_runs(local_ray: None, tmp_path: Path) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path, tmp_path)
    desk = desk_of(order())
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(desk)
    engine = RayTune(workplace, None, tmp_path / "tune", linger=0)
    engine.rest(desk)
    assert engine._pool is not None
    assert len(engine._pool._idle()) >= 1, "so that it is ended in time"


@pytest.mark.ray
def test_a_slot_without_room_is_no_stall(local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path, tmp_path), None, tmp_path / "tune", linger=0)
    desk = desk_of(order(iterations=1, delay=60))  # which says nothing: a slot without room cannot
    desk.retries = 0
    monkeypatch.setattr(HeldSlot, "begun", False)
    monkeypatch.setattr(dispatch, "ROOM_SECONDS", 2.0)
    engine.run(desk)
    (failure,) = desk.failures
    assert (failure.kind, failure.begun) == ("infrastructure", False)
    assert "had no room" in failure.message


@pytest.mark.ray
def test_a_new_conductor_takes_over_full_slots_and_ends_what_nobody_knows(local_ray: None, tmp_path: Path) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path)
    known, forgotten = order("waits", iterations=150), order("waits", iterations=100_000)
    holders: dict[str, str] = {}

    def close(desk: MemoryDesk) -> None:
        desk.close = {known.training, forgotten.training} <= set(desk.last)

    first = desk_of(known, forgotten)
    first.at_tick, first.holders = close, holders
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(first)
    assert first.ended == []
    (tmp_path / "storage" / "go").touch()
    later = order()
    second = desk_of(replace(known, holder=holders[known.attempt], seen=len(first.messages[known.attempt])), later)
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(second)
    assert set(second.results) == {known.training, later.training}
    assert second.failures == []
    steps = [int(line) for line in (tmp_path / "storage" / known.training / "steps.txt").read_text().split()]
    assert steps == list(range(1, 151)), "no step was trained twice"
