"""The engine on Ray beyond the conformance suite: its slots, its demand, and what Ray's own tools show."""

import json
import threading
import time
import tomllib
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray
from packaging.requirements import Requirement
from packaging.version import Version
from ray import tune
from ray.exceptions import ActorUnschedulableError, RayActorError

from orchestrator.run import dispatch as dispatching
from orchestrator.run.attempt import Allowance, Workplace
from orchestrator.run.dispatch import Dispatch, Execution, Report
from orchestrator.run.engine import Engine
from orchestrator.run.inline import Inline
from orchestrator.run.ray import pool as slots
from orchestrator.run.ray.engine import Listening, RayTune
from orchestrator.run.ray.pool import PooledSlot, SlotPool
from orchestrator.run.ray.tune import PREFIX, shown
from orchestrator.run.slot import PROTOCOL
from orchestrator.spec.spec import Slot
from orchestrator.views.errors import FencedError
from orchestrator.views.operations import Node, Shape, SlotReport
from orchestrator.views.runs import Order
from tests.conftest import ROOT
from tests.run.broker import MemoryBroker, order
from tests.run.conftest import played, steps_of
from tests.run.test_engine import broker_of


class Dumb:
    """A slot whose answers never arrive, like those on a node that died."""

    def listen(self, attempt: str, seen: int, wait: float) -> None:
        raise LookupError("the answer is gone")


SECONDS = 900.0
LARGE = Slot(cpus=3, gpus=0.25, memory_gb=2, resources={"a100": 1})
BUNDLE = {"CPU": 3.0, "GPU": 0.25, "memory": 2**31, "a100": 1.0}


def engine_in(folder: Path, train: str = "quick", **more: Any) -> RayTune:
    workplace = Workplace(f"tests.run.trainings:{train}", folder / "storage", folder)
    return RayTune(workplace, None, folder / "tune", **more)


def adopted(each: Order, broker: MemoryBroker) -> Order:
    """An order that a conductor left running, as the next conductor gets it."""
    return replace(each, holder=broker.holders[each.attempt], seen=len(broker.messages[each.attempt]))


def closing_at(step: int, *orders: Order) -> Callable[[MemoryBroker], None]:
    def close(broker: MemoryBroker) -> None:
        broker.close = all(one.training in broker.last and broker.last[one.training].step >= step for one in orders)

    return close


@pytest.mark.parametrize("kind", ["inline", pytest.param("ray_tune", marks=pytest.mark.ray)])
def test_a_training_that_leaks_costs_slots_and_no_training(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    allowance = Allowance(times=1.05, least=160 * 2**20, seconds=0)
    workplace = Workplace("tests.run.trainings:leaking", tmp_path / "storage", tmp_path, allowance=allowance)
    engine: Engine = Inline(workplace)
    if kind == "ray_tune":
        request.getfixturevalue("own_ray")  # whose slots hold nothing yet
        engine = RayTune(workplace, None, tmp_path / "tune", limit=1)
    orders = [order(seed=seed) for seed in range(11)]
    broker = broker_of(*orders)
    with caplog.at_level("INFO"):
        engine.run(broker)
    assert sorted(broker.ended) == sorted(broker.results) == sorted(each.training for each in orders)
    assert broker.failures == []
    if kind == "ray_tune":
        assert max(Counter(broker.holders.values()).values()) == 5, "three trainings of 64 MiB each after the second"
        assert caplog.text.count("GiB of memory after 5 trainings") == 2


@pytest.mark.ray
def test_a_slot_that_dies_is_replaced_and_training_resumes(local_ray: None, tmp_path: Path) -> None:
    each, poison = order("dies", iterations=6), order("poison")
    broker = broker_of(each, poison)
    engine_in(tmp_path).run(broker)
    assert each.training in broker.results
    assert steps_of(tmp_path, each) == [1, 2, 3, 4, 5, 6]
    assert broker.ended.count(poison.training) == 1
    assert all(failure.kind == "infrastructure" for failure in broker.failures)


@pytest.mark.ray
def test_a_training_that_reports_nothing_is_stopped(local_ray: None, tmp_path: Path) -> None:
    silent = replace(order(delay=600), slot=Slot(gpus=0, stall_minutes=0.05))
    good = order()
    broker = broker_of(silent, good)
    broker.retries = 0
    engine_in(tmp_path).run(broker)
    assert [(failure.kind, failure.message) for failure in broker.failures] == [
        ("stalled", "nothing was reported for 0.05 minutes (slot.stall_minutes)")
    ]
    assert set(broker.results) == {good.training}


@pytest.mark.ray
def test_short_trainings_follow_one_another_during_a_long_training(local_ray: None, tmp_path: Path) -> None:
    long, short = order("waits", iterations=10), [order(iterations=10) for _ in range(11)]
    broker, hang = broker_of(long, *short), time.monotonic() + 300

    def release(broker: MemoryBroker) -> None:
        if len(broker.results) == len(short) or time.monotonic() > hang:
            (tmp_path / "storage" / "go").touch()

    broker.at_tick = release
    engine_in(tmp_path).run(broker)
    assert broker.ended[len(short) :] == [long.training], "neither slot waits for the other"
    assert sorted(Counter(broker.holders.values()).values()) == [1, len(short)]


@pytest.mark.ray
def test_an_order_whose_slot_no_node_can_hold_is_given_back(local_ray: None, tmp_path: Path) -> None:
    huge, good = replace(order(), slot=Slot(cpus=512, gpus=0)), order()
    broker = broker_of(huge, good)
    engine_in(tmp_path).run(broker)
    assert broker.given_back == [huge.training]
    assert broker.failures == []
    assert set(broker.results) == {good.training}
    assert broker.starts.count(good.training) == 2, "told again once the slot's host is known"


@pytest.mark.ray
def test_a_slot_without_room_is_no_stall(local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_of(order(iterations=1, delay=60))  # which says nothing: a slot without room cannot
    broker.retries = 0
    monkeypatch.setattr(PooledSlot, "begun", False)
    monkeypatch.setattr(dispatching, "ROOM_SECONDS", 2.0)
    engine_in(tmp_path).run(broker)
    (failure,) = broker.failures
    assert (failure.kind, failure.begun) == ("infrastructure", False)
    assert "had no room" in failure.message


@pytest.mark.ray
def test_a_new_conductor_takes_over_full_slots_and_ends_what_nobody_knows(local_ray: None, tmp_path: Path) -> None:
    known, forgotten = order("waits", iterations=150), order("waits", iterations=100_000)
    first = broker_of(known, forgotten)
    first.at_tick = closing_at(1, known, forgotten)
    engine_in(tmp_path).run(first)
    assert first.ended == []
    (tmp_path / "storage" / "go").touch()
    later = order()
    second = broker_of(adopted(known, first), later)
    engine_in(tmp_path).run(second)
    assert set(second.results) == {known.training, later.training}
    assert second.failures == []
    assert steps_of(tmp_path, known) == list(range(1, 151)), "no step was trained twice"


@pytest.mark.ray
def test_a_slot_of_another_format_is_stopped(local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    each = order("waits", iterations=30)
    first = broker_of(each)
    first.at_tick = closing_at(5, each)
    engine_in(tmp_path).run(first)
    assert first.ended == []
    monkeypatch.setattr(slots, "PROTOCOL", PROTOCOL + 1)

    def go(broker: MemoryBroker) -> None:  # and not before: else it may end before the request to stop
        if broker.given_back:
            (tmp_path / "storage" / "go").touch()

    second = broker_of(adopted(each, first))
    second.last, second.at_tick = dict(first.last), go
    engine_in(tmp_path).run(second)
    assert (second.failures, second.given_back) == ([], [each.training]), "a stop that was asked for is no failure"
    assert each.training in second.results
    steps = steps_of(tmp_path, each)
    assert sorted(set(steps)) == list(range(1, 31))
    assert len(steps) <= 31, "it went on from its last checkpoint"


@pytest.mark.ray
def test_slots_report_what_they_take_and_train(own_ray: None, tmp_path: Path) -> None:
    engine, each, reports = engine_in(tmp_path), order("waits", iterations=6), list[SlotReport]()

    def look(broker: MemoryBroker) -> None:
        reports.extend(engine.slots())
        if reports and reports[-1].usage is not None:
            (tmp_path / "storage" / "go").touch()

    engine.run(MemoryBroker(deque([each]), at_tick=look))
    told = next(report for report in reports if report.usage is not None)
    assert (told.attempt, told.resources["CPU"]) == (each.attempt, 1.0)
    assert told.host
    assert told.usage is not None
    assert told.usage.memory_bytes > 0
    (idle,) = engine.slots()
    assert (idle.name, idle.attempt, idle.lag) == (told.name, None, None)
    engine.leave()


def asking(**slot: Any) -> Order:
    return replace(order(), slot=Slot.model_validate({"gpus": 0, **slot}))


def taken(pool: SlotPool, **slot: Any) -> PooledSlot:
    found = pool.take(asking(**slot))
    assert found is not None
    return found


def names(pool: SlotPool) -> list[str]:
    return [report.name for report in pool.reports({})]


def under(lease: int, installation: str = "test") -> MemoryBroker:
    """The broker of a conductor with this lease."""
    return MemoryBroker(deque(), name=installation, lease=lease)


@pytest.fixture
def pool(own_ray: None) -> SlotPool:
    """A pool without slots."""
    return SlotPool(under(1), 99)


@pytest.mark.ray
def test_idle_slots_are_taken_again_or_make_room_for_another_shape(pool: SlotPool) -> None:
    first, second = taken(pool), taken(pool)
    assert pool.full()
    assert pool.take(asking(cpus=2)) is None
    pool.release(first)
    assert not pool.full()
    assert pool.take(asking(cpus=2)) is None, "the other half is in use"
    assert pool.take(asking()) is first
    pool.release(first)
    pool.release(second)
    taken(pool, cpus=2)
    assert pool.training() == [Shape(2.0, 0.0, 0)]


@pytest.mark.ray
def test_an_order_is_only_taken_where_one_that_is_waited_for_fits(pool: SlotPool) -> None:
    taken(pool)
    pool.expect([Slot(cpus=2, gpus=0)])
    assert pool.full(), "what waits is too large for the rest"
    pool.expect([Slot(cpus=2, gpus=0), Slot(cpus=0.5, gpus=0)])
    assert not pool.full()
    pool.expect([Slot(cpus=512, gpus=0)])
    assert not pool.full(), "which is never given out, so what else waits decides"
    _, idle = taken(pool, cpus=0.5), taken(pool, cpus=0.5)
    pool.release(idle)
    assert not pool.full()
    assert not pool.possible(Slot(cpus=512, gpus=0))
    assert not pool.possible(Slot(cpus=1, gpus=0, resources={"a100": 1}))


@pytest.mark.ray
def test_a_limit_of_slots_holds_for_those_that_train(own_ray: None) -> None:
    pool = SlotPool(under(1), 1)
    first = taken(pool)
    assert pool.full()
    assert pool.take(asking(cpus=0.5)) is None
    pool.release(first)
    other = taken(pool, cpus=0.5)
    assert names(pool) == [other.name], "the idle one made room"


@pytest.mark.ray
def test_another_installation_on_the_cluster_leaves_them_alone(pool: SlotPool) -> None:
    mine = taken(pool)
    assert ray.get(mine.actor.describe.remote())["attempt"] is None
    other, again = SlotPool(under(1, "other"), 99), SlotPool(under(1), 99)
    other.reap()
    assert mine.name not in names(other)
    assert mine.name in names(again), "the next conductor of the same one finds them"


@pytest.mark.ray
def test_a_slot_begins_nothing_for_a_former_conductor(pool: SlotPool, tmp_path: Path) -> None:
    former = taken(pool)
    work, asked, later = Workplace("tests.run.trainings:quick", tmp_path, tmp_path), order(), SlotPool(under(2), 99)
    assert later.holding(former.name, asked.attempt) is None
    former.start(asked, work)  # it stood still between noting that and saying it
    assert not ray.get(former.actor.start.remote(asked, work, former.fence))
    said = ray.get(former.actor.describe.remote())
    assert (said["attempt"], said["fence"]) == (None, 2)
    assert later.exists(former.name)


@pytest.mark.ray
def test_slots_of_a_later_lease_are_left_to_it_unless_the_database_is_an_older_copy(pool: SlotPool) -> None:
    slot = taken(pool)
    SlotPool(under(7), 99)

    class Former(MemoryBroker):
        asked = 0

        def installation(self) -> str:
            self.asked += 1
            if self.asked > 1:
                raise FencedError("another conductor holds the lease")
            return "test"

    with pytest.raises(FencedError):
        SlotPool(Former(deque()), 99)
    assert ray.get(slot.actor.describe.remote())["fence"] == 7
    assert names(SlotPool(under(1), 99)) == []
    assert names(SlotPool(under(7), 99)) == [], "they would never begin what the older copy claims"


@pytest.mark.ray
def test_who_looks_for_an_attempt_asks_no_other_slot(pool: SlotPool) -> None:
    """One that is slow to answer was ended for it, and what it trained was lost."""
    one, slow = taken(pool), taken(pool)
    ray.get([one.answer, slow.answer])
    ray.kill(slow.actor)
    assert pool.holding(one.name, "an attempt") is None
    assert pool.holding("", "an attempt") is None
    assert names(pool) == [one.name, slow.name]
    assert pool.holding(slow.name, "an attempt") is None
    assert names(pool) == [one.name], "it is gone"


@pytest.mark.ray
def test_slots_go_with_their_node_or_with_a_lost_slot(pool: SlotPool, monkeypatch: pytest.MonkeyPatch) -> None:
    idle, used, other = taken(pool, cpus=0.5), taken(pool, cpus=0.5), taken(pool, cpus=0.5)
    pool.release(idle)
    pool.lost(other)
    assert names(pool) == [used.name], "whoever took the idle one would lose its attempt too"
    pool.release(used)
    monkeypatch.setattr(slots, "alive_nodes", list)
    monkeypatch.setattr(slots, "REFRESH_SECONDS", -1.0)
    assert pool.full()
    assert names(pool) == []


@pytest.mark.ray
@pytest.mark.parametrize("notices", ["dispatch", "adoption"])
def test_after_a_loss_nothing_is_claimed_until_ray_has_named_the_nodes(
    pool: SlotPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notices: str
) -> None:
    """A head that dies takes its slots along, and the loss of a slot is noticed first."""
    monkeypatch.setattr(slots, "REFRESH_SECONDS", SECONDS)
    first, second = asking(), asking()
    broker = MemoryBroker(deque([first]), retries=0)
    dispatch = Dispatch(broker, pool, Workplace("tests.run.trainings:quick", tmp_path, tmp_path))
    (execution,) = dispatch.begun()

    def dead() -> list[Node]:
        raise ConnectionError("the head does not answer")

    monkeypatch.setattr(slots, "alive_nodes", dead)
    broker.waiting.append(second)
    if notices == "dispatch":
        dispatch.take(Report(first.attempt, lost="its process died"))
    else:
        ray.kill(execution.slot.actor)
        assert pool.holding(execution.slot.name, first.attempt) is None
    with pytest.raises(ConnectionError):
        list(dispatch.begun())
    assert list(broker.waiting) == [second]


@pytest.mark.ray
def test_a_slot_that_nothing_uses_for_long_is_ended(pool: SlotPool) -> None:
    idle, used = taken(pool), taken(pool)
    pool.release(idle)
    pool.rest()
    assert idle.name in names(pool)
    pool.rest(0.0)
    assert names(pool) == [used.name]


@pytest.mark.ray
@pytest.mark.soak
def test_slots_of_every_shape_over_several_nodes(tmp_path: Path) -> None:
    said = played("tests.run.several_nodes", str(tmp_path))
    assert (said["results"], said["failures"], said["given back"]) == (19, [], 1)
    assert said["places"] == {
        "two": ["plain", "rich"],
        "half": ["rich"],
        "whole": ["rich"],
        "special": ["rich"],
        "auto": ["rich"],
        "on rich": ["rich"],
        "on plain": ["plain"],
        "nowhere": said["places"]["nowhere"],  # its training says what it lacks
    }


def asked() -> list[dict[str, float]]:
    """The resources requested of Ray."""
    from ray.autoscaler._private.constants import AUTOSCALER_RESOURCE_REQUEST_CHANNEL
    from ray.experimental.internal_kv import _internal_kv_get

    found: list[dict[str, float]] = json.loads(_internal_kv_get(AUTOSCALER_RESOURCE_REQUEST_CHANNEL) or b"[]")
    return found


@pytest.mark.ray
def test_an_engine_asks_for_no_more_than_its_limit_of_slots(local_ray: None, tmp_path: Path) -> None:
    engine = engine_in(tmp_path, limit=2)
    nodes = engine.nodes()
    assert nodes is not None
    assert [node.resources["CPU"] for node in nodes] == [2.0]
    engine.demand([LARGE] * 5)
    assert asked() == [BUNDLE] * 2
    engine.demand([])
    assert asked() == []


@pytest.mark.ray
@pytest.mark.soak
@pytest.mark.parametrize("autoscaler", ["v1", "v2"])
def test_an_autoscaler_starts_the_node_that_is_waited_for(autoscaler: str, tmp_path: Path) -> None:
    said = {"before": 0, "asked": [{"CPU": 1.0, "a100": 1.0}], "joined": True, "results": 1, "withdrawn": True}
    assert played("tests.run.autoscaled", str(tmp_path), autoscaler) == said


LABEL = "digits #3 · triplet / sec · lr=0.1 · seed=1"


@pytest.mark.ray
def test_a_trial_of_tune_is_named_and_has_its_recipe_and_its_metrics(local_ray: None, tmp_path: Path) -> None:
    secret = "hunter2-of-the-store"
    workplace = Workplace("tests.run.trainings:evaluating", tmp_path / secret, tmp_path / "data")
    named, nameless = replace(order(iterations=20), label=LABEL), order()
    named = replace(named, recipe={**named.recipe, "optimizer": {"name": "adam", "lr": 0.5}})
    broker = broker_of(named, nameless)
    RayTune(workplace, None, tmp_path / "tune").run(broker)
    (folder,) = (tmp_path / "tune").glob(f"{PREFIX}*")
    found = {str(one): one for one in tune.ExperimentAnalysis(str(folder)).trials}
    assert set(found) == {LABEL, nameless.training}
    trial = found[LABEL]
    assert trial.config["recipe.loss.name"] == "ok"
    assert trial.config["recipe.iterations"] == 20
    assert trial.status == "TERMINATED"
    result = broker.results[named.training]
    assert [one.kind for one in broker.failures] == ["recipe"], "the other has no learning rate"
    assert found[nameless.training].last_result["outcome"] == "failed"
    assert trial.last_result["outcome"] == result.outcome
    assert {key: trial.last_result[key] for key in result.metrics} == result.metrics
    (place,) = folder.glob("digits_3_triplet_sec_lr=0.1_seed=1-*")
    lines = [json.loads(line) for line in (place / "result.json").read_text().splitlines()]
    assert lines[-1]["evaluations"] >= 2
    assert json.loads((place / "params.json").read_text())["trial"] == LABEL
    assert (place / "progress.csv").read_text().startswith(("step,", "evaluations,"))
    assert [file for file in folder.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()] == []
    assert list(place.glob("events.out.tfevents.*"))


def test_nothing_of_a_recipe_is_evaluated(tmp_path: Path) -> None:
    evil = {"eval": f"open({str(tmp_path / 'done')!r}, 'w')"}
    each = order()
    each = replace(each, recipe={**each.recipe, "loss": {"name": "ok", "margin": evil, "grid_search": [1, evil]}})
    config = shown(each)
    assert config["recipe.loss.margin.eval"] == evil["eval"]
    assert all(isinstance(value, str | int | float | bool | None) for value in config.values())


@pytest.mark.ray
def test_a_tune_that_fails_costs_no_training(local_ray: None, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its folder cannot be made, as on a full disk."""
    (tmp_path / "tune").write_text("no folder")
    broker = broker_of(*(order() for _ in range(3)))
    engine_in(tmp_path).run(broker)
    assert (len(broker.results), broker.failures) == (3, [])
    assert "Ray Tune does not show what trains" in caplog.text
    assert not any(thread.name == "tune" for thread in threading.enumerate())


@pytest.mark.ray
def test_short_trainings_share_a_few_processes_of_tune_and_each_is_shown(local_ray: None, tmp_path: Path) -> None:
    orders = [order(iterations=2) for _ in range(20)]
    earlier = [tmp_path / "tune" / f"{PREFIX}2026010{day}T000000-aa" for day in range(1, 6)]
    for folder in earlier:
        folder.mkdir(parents=True)
    engine_in(tmp_path).run(broker_of(*orders))
    *kept, folder = sorted((tmp_path / "tune").glob(f"{PREFIX}*"))
    assert kept == earlier[-2:], "older folders are removed"
    ended = [trial.last_result for trial in tune.ExperimentAnalysis(str(folder)).trials]
    assert [result.get("outcome") for result in ended] == ["ok"] * len(orders)
    assert len({result["pid"] for result in ended}) <= 3


def test_only_a_ray_with_tokens_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (needed,) = (one for one in map(Requirement, project["optional-dependencies"]["server"]) if one.name == "ray")
    (lowest,) = (Version(bound.version) for bound in needed.specifier if bound.operator == ">=")
    assert lowest.release >= (2, 52), "the first release that supports RAY_AUTH_MODE=token"
    assert f"{lowest.major + 1}.0.0" not in needed.specifier


@pytest.mark.ray
def test_a_slot_whose_answer_is_lost_is_lost(local_ray: None) -> None:
    each, listening = order(), Listening()
    slot = PooledSlot("slot", Shape(1.0, 0.0, 0), "node", ray.remote(Dumb).remote())
    listening.follow(Execution(each, slot, 0, 0.0))
    (report,) = listening.reports(60)
    assert report.attempt == each.attempt
    assert "the answer is gone" in (report.lost or "")
    assert list(listening.reports(0)) == [], "nobody asks it again"


@pytest.mark.ray
def test_a_training_that_waits_for_its_slot_gives_way_to_a_higher_priority(local_ray: None, tmp_path: Path) -> None:
    slow, urgent = order("waits", iterations=10), order()
    large = replace(order(), slot=Slot(cpus=2, gpus=0))
    broker = broker_of(slow, large)

    def hurry(broker: MemoryBroker) -> None:
        if slow.training in broker.last and not broker.waiting and not broker.overtaken:
            broker.overtaken.add(large.training)
            broker.waiting.append(urgent)
        if urgent.training in broker.results:
            (tmp_path / "storage" / "go").touch()

    broker.at_tick = hurry
    engine_in(tmp_path).run(broker)
    assert broker.given_back == [large.training]
    assert broker.ended == [urgent.training, slow.training]


@pytest.mark.ray
def test_a_training_cancelled_while_it_waits_for_its_slot_blocks_nothing(local_ray: None, tmp_path: Path) -> None:
    slow, small = order("waits", iterations=10), order()
    large = replace(order(), slot=Slot(cpus=2, gpus=0))
    broker = broker_of(slow, large, small)

    def cancel(broker: MemoryBroker) -> None:
        if slow.training in broker.last and not any(waiting is large for waiting in broker.waiting):
            broker.unwanted.add(large.training)
        if small.training in broker.results:
            broker.unwanted.add(slow.training)

    broker.at_tick = cancel
    engine_in(tmp_path).run(broker)
    assert list(broker.results) == [small.training]
    assert sorted(broker.ended) == sorted(each.training for each in (slow, large, small))


@pytest.mark.ray
def test_a_new_conductor_finds_the_idle_slots_of_the_last(local_ray: None, tmp_path: Path) -> None:
    broker = broker_of(order())
    engine_in(tmp_path).run(broker)
    engine = engine_in(tmp_path)
    assert engine.slots() == []
    engine.rest(broker)
    assert engine.slots() != [], "so that it is ended in time"


@pytest.mark.ray
def test_a_slot_on_a_dead_node_never_began(pool: SlotPool, monkeypatch: pytest.MonkeyPatch) -> None:
    used = taken(pool)
    ray.get(used.answer)
    monkeypatch.setattr(pool, "_nodes", [Node("a1" * 28, "gone", {"CPU": 1.0})])
    monkeypatch.setattr(slots, "REFRESH_SECONDS", SECONDS)
    gone = taken(pool)
    assert gone.node == "a1" * 6
    with pytest.raises((ActorUnschedulableError, RayActorError)):
        ray.get(gone.answer)
    monkeypatch.setattr(slots, "_LATE_SECONDS", -1.0)
    assert [(one.begun, one.late) for one in (used, gone)] == [(True, False), (False, False)]
