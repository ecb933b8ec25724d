"""Tune's loop keeps its own pace while trials come and go, and waits longer while they train."""

from collections import deque
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.run.attempt import Workplace
from orchestrator.run.ray import tune_pace
from orchestrator.run.ray.engine import RayTune
from orchestrator.run.ray.tune_pace import QUIET_SECONDS, STIRRED_SECONDS, TunePace
from tests.run.broker import MemoryBroker, order


def test_it_waits_longer_once_no_trial_was_added_or_ended_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waited = 0.0, list[float | None]()

    def following(*, timeout: float | None) -> None:
        waited.append(timeout)

    monkeypatch.setattr("time.monotonic", lambda: now)
    controller = SimpleNamespace(_actor_manager=SimpleNamespace(next=following))
    pace = TunePace()
    pace.stir(controller)
    for passed in (0.0, STIRRED_SECONDS, STIRRED_SECONDS + 0.1):
        now = passed
        controller._actor_manager.next(timeout=0.1)
    assert waited == [0.1, 0.1, QUIET_SECONDS]
    pace.stir(controller)
    controller._actor_manager.next(timeout=0.1)
    now += STIRRED_SECONDS + 0.1
    controller._actor_manager.next(timeout=None)
    assert waited[3:] == [0.1, None]


def test_a_tune_that_is_built_otherwise_goes_on_as_it_likes() -> None:
    TunePace().stir(SimpleNamespace())


@pytest.mark.ray
def test_the_loop_of_this_ray_takes_the_pace(local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.air.execution._internal.actor_manager import RayActorManager

    waited, following = list[float | None](), RayActorManager.next

    def heard(manager: RayActorManager, timeout: float | None = None) -> bool:
        waited.append(timeout)
        return following(manager, timeout)

    monkeypatch.setattr(RayActorManager, "next", heard)
    monkeypatch.setattr(tune_pace, "STIRRED_SECONDS", 0.0)
    broker = MemoryBroker(deque([order(iterations=1)]))
    RayTune(
        Workplace("tests.run.trainings:quick", tmp_path / "storage", tmp_path), None, tmp_path / "tune", linger=0
    ).run(broker)
    assert len(broker.results) == 1
    assert QUIET_SECONDS in waited
