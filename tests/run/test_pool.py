"""The slot pool: where slots lie, what is replaced by what, and what has to wait."""

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.exceptions import ActorUnschedulableError, RayActorError

from orchestrator.run.attempt import Workplace
from orchestrator.run.dispatch import Dispatch, Report
from orchestrator.run.ray import pool as slots
from orchestrator.run.ray.pool import SlotPool
from orchestrator.spec.slot import Slot
from orchestrator.views.errors import FencedError
from orchestrator.views.nodes import Node
from orchestrator.views.orders import Order
from orchestrator.views.resources import Shape
from tests.conftest import ROOT
from tests.run.broker import MemoryBroker, order

SECONDS = 900.0


@ray.remote(num_cpus=1)
class Stranger:
    """Holds a CPU that the pool knows nothing of."""

    def holds(self) -> bool:
        return True


def asking(**slot: Any) -> Order:
    return replace(order(), slot=Slot.model_validate({"gpus": 0, **slot}))


@pytest.fixture
def pool(local_ray: None) -> Iterator[SlotPool]:
    """A pool without slots; what it makes ends with the test."""
    made = SlotPool(under(1), None)
    clear(made)
    yield made
    clear(made)


def under(lease: int, installation: str = "test") -> MemoryBroker:
    """The broker of a conductor with this lease."""
    return MemoryBroker(deque(), name=installation, lease=lease)


def clear(pool: SlotPool) -> None:
    for slot in list(pool._slots.values()):
        pool.drop(slot)


def test_a_name_tells_the_shape_and_the_node() -> None:
    shape = Shape(0.5, 0.3333, 2**31, (("accelerator_type:A100", 0.5), ("a100", 1.0)))
    plain = Shape(2.0, 0.5, 1024)
    for one in (shape, plain):
        name = slots.name_of(one, Node("0123456789abcdef", "lab", {}))
        assert slots.read_name(name) == (one, "0123456789ab")


@pytest.mark.ray
def test_idle_slots_are_taken_again_or_make_room_for_another_shape(pool: SlotPool) -> None:
    first, second = pool.take(asking()), pool.take(asking())
    assert first is not None
    assert second is not None
    assert pool.full()
    assert pool.take(asking(cpus=2)) is None
    pool.release(first)
    assert not pool.full()
    assert pool.take(asking(cpus=2)) is None, "the other half is in use"
    assert pool.take(asking()) is first
    pool.release(first)
    pool.release(second)
    large = pool.take(asking(cpus=2))
    assert large is not None
    assert pool.training() == [Shape(2.0, 0.0, 0)]


@pytest.mark.ray
def test_an_order_is_only_taken_where_one_that_is_waited_for_fits(pool: SlotPool) -> None:
    pool.take(asking())
    pool.expect([Slot(cpus=2, gpus=0)])
    assert pool.full(), "what waits is too large for the rest"
    pool.expect([Slot(cpus=2, gpus=0), Slot(cpus=0.5, gpus=0)])
    assert not pool.full()
    pool.expect([Slot(cpus=512, gpus=0)])
    assert not pool.full(), "which is never given out, so what else waits decides"
    assert not pool.possible(Slot(cpus=512, gpus=0))
    assert not pool.possible(Slot(cpus=1, gpus=0, resources={"a100": 1}))


@pytest.mark.ray
def test_a_limit_of_slots_holds_for_those_that_train(local_ray: None) -> None:
    pool = SlotPool(under(1), 1)
    clear(pool)
    first = pool.take(asking())
    assert first is not None
    assert pool.full()
    assert pool.take(asking(cpus=0.5)) is None
    pool.release(first)
    other = pool.take(asking(cpus=0.5))
    assert other is not None
    assert len(pool._slots) == 1
    clear(pool)


@pytest.mark.ray
def test_another_installation_on_the_cluster_leaves_them_alone(pool: SlotPool) -> None:
    mine = pool.take(asking())
    assert mine is not None
    assert ray.get(mine.actor.describe.remote())["attempt"] is None
    other, again = SlotPool(under(1, "other"), None), SlotPool(under(1), None)
    other.reap()
    assert mine.name not in other._slots
    assert mine.name in again._slots, "the next conductor of the same one finds them"


@pytest.mark.ray
def test_a_slot_begins_nothing_for_whoever_held_the_lease_before(pool: SlotPool, tmp_path: Path) -> None:
    former = pool.take(asking())
    assert former is not None
    work, asked, later = Workplace("tests.run.trainings:quick", tmp_path, tmp_path), order(), SlotPool(under(2), None)
    assert later.holding(former.name, asked.attempt) is None
    former.start(asked, work)  # it stood still between noting that and saying it
    assert not ray.get(former.actor.start.remote(asked, work, former.fence))
    assert ray.get(former.actor.describe.remote())["attempt"] is None
    assert later.there(former.name)
    assert later._slots[former.name].fence == 2


@pytest.mark.ray
def test_slots_of_a_later_lease_are_left_to_it_unless_the_database_is_an_older_copy(pool: SlotPool) -> None:
    assert pool.take(asking()) is not None
    later = SlotPool(under(7), None)

    class Former(MemoryBroker):
        asked = 0

        def installation(self) -> str:
            self.asked += 1
            if self.asked > 1:
                raise FencedError("another conductor holds the lease")
            return "test"

    with pytest.raises(FencedError):
        SlotPool(Former(deque()), None)
    assert ray.get(*(slot.actor.describe.remote() for slot in later._slots.values()))["fence"] == 7
    assert SlotPool(under(1), None)._slots == {}
    assert SlotPool(under(7), None)._slots == {}, "they would never begin what the older copy claims"


@pytest.mark.ray
def test_who_looks_for_an_attempt_asks_no_other_slot(pool: SlotPool) -> None:
    """One that is slow to answer was ended for it, and what it trained was lost."""
    one, slow = pool.take(asking()), pool.take(asking())
    assert one is not None
    assert slow is not None
    pool.drop(replace(slow))
    pool._slots[slow.name] = slow
    assert pool.holding(one.name, "an attempt") is None
    assert pool.holding("", "an attempt") is None
    assert [*pool._slots] == [one.name, slow.name]
    assert pool.holding(slow.name, "an attempt") is None
    assert [*pool._slots] == [one.name], "it is gone"


@pytest.mark.ray
def test_who_leaves_takes_idle_slots_along(pool: SlotPool) -> None:
    training, idle = pool.take(asking()), pool.take(asking())
    assert training is not None
    assert idle is not None
    pool.release(idle)
    pool.rest(0.0)
    assert list(pool._slots) == [training.name]


@pytest.mark.ray
def test_nothing_overtakes_a_slot_that_waits_for_room(pool: SlotPool, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = Stranger.remote()  # type: ignore[attr-defined]
    assert ray.get(stranger.holds.remote())
    idle = pool.take(asking(cpus=0.5))
    assert idle is not None
    assert ray.get(idle.actor.describe.remote())["attempt"] is None
    pool.release(idle)
    waits = pool.take(asking())
    assert waits is not None, "by what the pool knows there is room"
    monkeypatch.setattr(slots, "LATE_SECONDS", -1.0)
    assert pool.full()
    assert pool.take(asking(cpus=0.5)) is None
    assert idle.name not in pool._slots, "it may be what is in the way"
    ray.kill(stranger)
    ray.get(waits.answer)
    assert not pool.full()
    assert pool.take(asking(cpus=0.5)) is not None


@pytest.mark.ray
def test_a_slot_goes_with_its_node_and_those_beside_one_that_was_lost(
    pool: SlotPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle, used, other = pool.take(asking(cpus=0.5)), pool.take(asking(cpus=0.5)), pool.take(asking(cpus=0.5))
    assert idle is not None
    assert used is not None
    assert other is not None
    pool.release(idle)
    pool.lost(other)
    assert list(pool._slots) == [used.name], "whoever took the idle one would lose its attempt too"
    pool.release(used)
    monkeypatch.setattr(slots, "alive_nodes", list)
    monkeypatch.setattr(slots, "LOOK_SECONDS", -1.0)
    assert pool.full()
    assert not pool._slots


@pytest.mark.ray
@pytest.mark.parametrize("notices", ["dispatch", "adoption"])
def test_after_a_loss_nothing_is_claimed_until_ray_has_named_the_nodes(
    pool: SlotPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notices: str
) -> None:
    """A head that dies takes its slots along, and the loss of a slot is noticed first."""
    monkeypatch.setattr(slots, "LOOK_SECONDS", SECONDS)
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
        dispatch.begun()
    assert list(broker.waiting) == [second]


@pytest.mark.ray
def test_a_slot_whose_node_is_dead_never_began(pool: SlotPool, monkeypatch: pytest.MonkeyPatch) -> None:
    used = pool.take(asking())
    assert used is not None
    ray.get(used.answer)
    assert used.begun
    monkeypatch.setattr(pool, "_nodes", [Node("a1" * 28, "gone", {"CPU": 1.0})])
    monkeypatch.setattr(slots, "LOOK_SECONDS", SECONDS)
    gone = pool.take(asking())
    assert gone is not None
    assert gone.node == "a1" * 6
    with pytest.raises((ActorUnschedulableError, RayActorError)):
        ray.get(gone.answer)
    assert not gone.begun
    assert not gone.late


@pytest.mark.ray
def test_a_slot_that_nothing_uses_for_long_is_ended(pool: SlotPool) -> None:
    idle, used = pool.take(asking()), pool.take(asking())
    assert idle is not None
    assert used is not None
    pool.release(idle)
    pool.rest()
    assert idle.name in pool._slots
    pool.rest(0.0)
    assert list(pool._slots) == [used.name]


@pytest.mark.ray
def test_slots_of_every_shape_over_several_nodes(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    environment.pop("RAY_ADDRESS", None)
    command = [sys.executable, "-m", "tests.run.several_nodes", str(tmp_path)]
    played = subprocess.run(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True
    )
    said = json.loads(played.stdout.splitlines()[-1])
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
