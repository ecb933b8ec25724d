"""A node that ends: its slots give back what they train, from a checkpoint on, and nobody gives them more."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from orchestrator.run.attempt import Workplace
from orchestrator.run.slot import REASON, VARIABLE, Departure, SlotActor
from orchestrator.run.spool import Message
from tests.run.broker import order
from tests.run.conftest import played
from tests.run.test_slot_actor import until_true


@pytest.fixture
def departure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Departure:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    found = Departure.named_by(os.environ)
    assert found is not None
    found.prepare()
    return found


def heard(actor: SlotActor, attempt: str) -> list[Message]:
    """Everything that an attempt says, to its end."""
    messages: list[Message] = []
    while not messages or not messages[-1].final:
        messages += [Message.of(line) for line in actor.poll(attempt, len(messages), 30)]
    return messages


def test_what_trains_is_given_back_and_nothing_more_is_begun(departure: Departure, tmp_path: Path) -> None:
    actor, place = SlotActor(leave=lambda code: None), Workplace("tests.run.trainings:quick", tmp_path, tmp_path)
    first = order("waits", iterations=9)
    assert actor.start(first, place, 1)
    until_true((tmp_path / first.training / "steps.txt").exists)
    assert not departure.quiet()
    departure.tell()
    said = heard(actor, first.attempt)
    assert [message.kind for message in said[-2:]] == ["progress", "stopped"]
    assert said[-2].body["checkpoint"] == "last.pt"
    until_true(departure.quiet)
    assert actor.describe()["worn"] == REASON
    late = order(iterations=9)
    assert actor.start(late, place, 1)
    assert [message.kind for message in heard(actor, late.attempt)] == ["stopped"]
    assert not (tmp_path / late.training).exists(), "its data were not even opened"
    until_true(departure.quiet)  # a slot says its last word before it lets go


def test_a_node_that_is_told_of_nothing_trains_on(departure: Departure, tmp_path: Path) -> None:
    actor, each = SlotActor(leave=lambda code: None), order(iterations=3)
    assert actor.start(each, Workplace("tests.run.trainings:quick", tmp_path, tmp_path), 1)
    assert heard(actor, each.attempt)[-1].kind == "finished"
    assert actor.describe()["worn"] is None
    assert Departure.named_by({}) is None


def test_a_process_that_is_killed_keeps_nobody_waiting(departure: Departure, tmp_path: Path) -> None:
    code = f"""if True:
        import sys
        from pathlib import Path
        from orchestrator.run.slot import Departure
        with Departure(Path({str(tmp_path)!r})).training():
            print("trains", flush=True)
            sys.stdin.read()"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"trains\n"
        with departure.training():
            assert not departure.quiet()
        assert not departure.quiet(), "another one still trains"
        process.kill()
    assert departure.quiet()


@pytest.mark.ray
@pytest.mark.soak
def test_a_node_of_ray_that_is_told_to_end_costs_no_step(tmp_path: Path) -> None:
    said = played("tests.run.departing_node", str(tmp_path))
    assert "nothing trains any more" in said.pop("log")
    assert said == {"exit": 0, "results": 2, "failures": [], "given back": [1, 1], "whole": [True, True]}


NODE = """
import sys
from pathlib import Path
from orchestrator.run.ray.__main__ import RayNode
RayNode(["sleep", "600"], Path(sys.argv[1]), 1.0).run()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells a process of its parent's death")
def test_the_ray_of_a_node_that_is_killed_ends_too(tmp_path: Path) -> None:
    """Else it would keep its port, and `serve` could not start another one."""
    node = psutil.Process(subprocess.Popen([sys.executable, "-c", NODE, str(tmp_path)]).pid)
    until_true(lambda: bool(node.children()))
    (ray,) = node.children()
    until_true(lambda: ray.name() == "sleep")
    node.kill()
    until_true(lambda: not ray.is_running() or ray.status() == psutil.STATUS_ZOMBIE)
    node.wait()
