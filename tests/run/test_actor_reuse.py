"""Relays keep their processes: Tune by itself starts one for nearly every trial."""

from collections import deque
from pathlib import Path

import pytest
import ray

from orchestrator.run.attempt import Workplace
from orchestrator.run.ray.actor_reuse import relay_bundle
from orchestrator.run.ray.engine import RayTune
from tests.run.broker import MemoryBroker, order


def relays() -> int:
    """How many actors of relays this Ray has ever made."""
    known = ray._private.state.actors().values()
    return sum("Relay" in str(one["ActorClassName"]) or "Trainable" in str(one["ActorClassName"]) for one in known)


@pytest.mark.ray
def test_thirty_trainings_on_two_slots_are_followed_by_a_handful_of_processes(local_ray: None, tmp_path: Path) -> None:
    workplace = Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path / "data")
    before = relays()
    broker = MemoryBroker(deque(order(iterations=1) for _ in range(30)))
    RayTune(workplace, None, tmp_path / "tune", linger=0).run(broker)
    assert len(broker.results) == 30
    assert 0 < relays() - before <= 6


def test_the_relays_of_one_slot_ask_for_the_same_and_those_of_another_for_something_else() -> None:
    first, again, other = (relay_bundle({"slot": name}) for name in ("slot:1:0:0:aa", "slot:1:0:0:aa", "slot:1:0:0:bb"))
    assert first == again != other
