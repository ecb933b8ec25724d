"""The slot actor without Ray: whatever ends its thread is told."""

import threading
from pathlib import Path

import pytest

from orchestrator.run import slot_actor
from orchestrator.run.attempt import Workplace
from orchestrator.run.slot_actor import SlotActor
from tests.run.desk import order


@pytest.mark.parametrize("error", [ValueError("no bucket"), SystemExit(3), BaseException("odd")])
def test_no_thread_dies_silently(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: BaseException) -> None:
    def execute(*given: object) -> None:
        raise error

    monkeypatch.setattr(slot_actor, "execute", execute)
    actor, each = SlotActor(), order()
    assert actor.start(each, Workplace("tests.run.trainings:quick", tmp_path, tmp_path))
    (last,) = actor.poll(each.attempt, 0, 10)
    assert (last["seq"], last["kind"]) == (1, "failed")
    assert (last["body"]["kind"], last["body"]["message"]) == ("infrastructure", f"{type(error).__name__}: {error}")
    assert actor.describe()["busy"] is False


def test_a_slot_that_nobody_asks_ends_itself(tmp_path: Path) -> None:
    left, go = threading.Event(), tmp_path / "go"
    actor = SlotActor(0.2, lambda code: left.set())
    each = order("waits", iterations=6)
    assert actor.start(each, Workplace("tests.run.trainings:quick", tmp_path, tmp_path))
    assert not left.wait(0.6), "it trains"
    go.touch()
    assert left.wait(10)


def test_a_slot_that_is_asked_stays() -> None:
    left = threading.Event()
    actor = SlotActor(0.5, lambda code: left.set())
    for _ in range(8):
        actor.describe()
        assert not left.wait(0.1)
    assert left.wait(10)
