"""What a slot's process takes, what slots say of themselves, and how long what they said waits to be recorded."""

from collections import deque
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from pathlib import Path

import psutil
import pytest

from orchestrator.run.attempt import Workplace
from orchestrator.run.message import Message
from orchestrator.run.ray.engine import RayTune
from orchestrator.run.ray.pool import _lag
from orchestrator.run.slot_actor import SlotActor
from orchestrator.run.usage import Meter
from orchestrator.views.cluster import SlotReport
from tests.run.broker import MemoryBroker, order


def test_a_process_says_what_it_takes() -> None:
    meter = Meter(share=0)
    before = meter.usage()
    with mmap(-1, 64 * 2**20, flags=MAP_PRIVATE | MAP_ANONYMOUS) as ballast:  # new pages, not freed ones
        ballast.write(b"x" * len(ballast))
        after = meter.usage()
        assert after.memory_bytes - before.memory_bytes > len(ballast) / 2
    assert after.machine_memory_bytes == psutil.virtual_memory().total
    assert 0 < after.machine_memory_free_bytes < after.machine_memory_bytes
    assert after.cpus >= 0


def test_the_memory_is_not_measured_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = iter(range(1, 10))
    monkeypatch.setattr("orchestrator.run.usage.own_memory", lambda: next(measured))
    meter, always = Meter(share=1e12), Meter(share=0)
    assert [meter.usage().memory_bytes for _ in range(3)] == [1, 1, 1]
    assert [always.usage().memory_bytes for _ in range(3)] == [2, 3, 4]


def test_without_a_gpu_nothing_is_said_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert Meter().usage().gpus is None


@pytest.mark.gpu
def test_a_gpu_is_told_as_the_driver_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    held = torch.zeros(2**28, device="cuda")
    (gpu,) = Meter().usage().gpus or []
    assert gpu.memory_bytes > gpu.memory_used_bytes > held.numel() * 4
    assert gpu.name
    assert gpu.busy is None or 0 <= gpu.busy <= 1


def test_a_slot_says_how_long_ago_it_said_what(tmp_path: Path) -> None:
    actor, each = SlotActor(leave=lambda code: None), order(iterations=3)
    assert actor.start(each, Workplace("tests.run.trainings:quick", tmp_path, tmp_path), 1)
    seen = 0
    while not Message.of(actor.poll(each.attempt, seen, 30)[-1]).final:
        seen += 1
    state = actor.describe()
    assert state["said"] == len(state["ages"]) == len(actor.poll(each.attempt, 0, 0))
    assert state["ages"] == sorted(state["ages"], reverse=True)
    assert state["usage"]["memory_bytes"] > 0


@pytest.mark.parametrize(
    ("recorded", "lag"), [(None, None), (205, None), (204, 1.5), (200, 5.5), (105, 100.5), (3, 100.5)]
)
def test_the_lag_is_that_of_the_oldest_message_that_is_not_recorded(recorded: int | None, lag: float | None) -> None:
    """Of 205 messages, one a second, the last a second before it was asked, which was half a second ago."""
    told = {"attempt": "a", "said": 205, "ages": [float(age) for age in range(100, 0, -1)]}
    assert _lag(told, {} if recorded is None else {"a": recorded}, 0.5) == lag


@pytest.mark.ray
def test_slots_are_told_with_what_they_train(own_ray: None, tmp_path: Path) -> None:
    """The training waits until its slot has said what it takes."""
    engine = RayTune(Workplace("tests.run.trainings:quick", tmp_path, tmp_path), None, tmp_path / "tune", linger=0)
    each, reports = order("waits", iterations=6), list[SlotReport]()

    def look(broker: MemoryBroker) -> None:
        reports.extend(engine.slots())
        if reports and reports[-1].usage is not None:
            (tmp_path / "go").touch()

    engine.run(MemoryBroker(deque([each]), at_tick=look))
    told = next(report for report in reports if report.usage is not None)
    assert (told.attempt, told.resources["CPU"]) == (each.attempt, 1.0)
    assert told.host
    assert told.usage is not None
    assert told.usage.memory_bytes > 0
    (idle,) = engine.slots()
    assert (idle.name, idle.attempt, idle.lag) == (told.name, None, None)
    engine.leave()
