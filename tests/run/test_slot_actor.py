"""The slot actor without Ray: each end of its thread is reported, what it uses, and what it gives back at an end."""

import gc
import os
import shutil
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from pathlib import Path

import psutil
import pytest

from orchestrator.run import slot
from orchestrator.run.attempt import GIB, Allowance, Workplace
from orchestrator.run.slot import REASON, VARIABLE, Meter, Preemption, SlotActor, lag
from orchestrator.run.spool import Message
from orchestrator.spec.spec import Slot
from orchestrator.views.runs import Order
from tests.run.broker import order
from tests.run.conftest import played
from tests.run.test_files import until


def _slot() -> SlotActor:
    """A slot that leaves these tests running, which after half an hour would be left alone."""
    return SlotActor(leave=lambda code: None)


@pytest.mark.parametrize("error", [ValueError("no bucket"), SystemExit(3), BaseException("odd")])
def test_no_thread_dies_silently(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: BaseException) -> None:
    def execute(*given: object) -> None:
        raise error

    monkeypatch.setattr(slot, "execute", execute)
    actor, each = _slot(), order()
    assert actor.start(each, Workplace("tests.run.trainings:quick", tmp_path, tmp_path), 1)
    (line,) = actor.poll(each.attempt, 0, 10)
    last = Message.of(line)
    assert (last.seq, last.kind) == (1, "failed")
    assert (last.body["kind"], last.body["message"]) == ("infrastructure", f"{type(error).__name__}: {error}")
    assert actor.describe()["busy"] is False


class Clock:
    """The time that a slot has, which passes only as the test says; `looked` counts how often the slot woke up."""

    def __init__(self) -> None:
        self.now, self.looked = 0.0, 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        time.sleep(0.005)
        self.looked += 1

    def passes(self, seconds: float) -> None:
        """So much time, after which the slot has looked whether it is alone."""
        self.now += seconds
        enough = self.looked + 2
        until(lambda: self.looked >= enough)


def test_a_slot_that_nobody_asks_ends_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot, "time", clock := Clock())
    left, go = threading.Event(), tmp_path / "go"
    actor = SlotActor(10.0, lambda code: left.set())
    each = order("waits", iterations=6)
    assert actor.start(each, Workplace("tests.run.trainings:quick", tmp_path, tmp_path), 1)
    clock.passes(30.0)
    assert not left.is_set(), "it trains"
    go.touch()
    until(lambda: not actor.describe()["busy"])
    for _ in range(3):
        actor.describe()
        clock.passes(9.0)
        assert not left.is_set(), "it is asked"
    clock.now += 2.0
    assert left.wait(60)


def trained(actor: SlotActor, each: Order, workplace: Workplace) -> None:
    assert actor.start(each, workplace, 1)
    seen = 0
    while actor.describe()["busy"]:
        seen += len(actor.poll(each.attempt, seen, 1))


def test_a_slot_has_the_same_thread_and_no_more_of_anything_after_many_trainings(tmp_path: Path) -> None:
    actor, workplace = _slot(), Workplace(f"{__name__}:tangled", tmp_path, tmp_path)
    _THREADS.clear()
    _TANGLES.clear()

    def counted() -> tuple[int, ...]:
        return threading.active_count(), *(len([*Path("/proc/self", what).iterdir()]) for what in ("task", "fd"))

    trained(actor, order(), workplace)
    before = counted()
    for seed in range(25):
        trained(actor, order(seed=seed), workplace)
    assert counted() == before
    assert len(set(_THREADS)) == 1, "each new one would have another pool of memory, which the C library keeps"
    assert len(_TANGLES) == 26
    assert not any(tangle() for tangle in _TANGLES), "what only refers to itself would wait for Python's own collection"


_THREADS: list[int] = []
_TANGLES: "list[weakref.ref[Tangle]]" = []


class Tangle:
    """Refers to itself, as a network and its optimizer do to one another."""

    def __init__(self) -> None:
        self.itself = self


def tangled(recipe: object, place: object, report: object, resume: object = None) -> object:
    """A training function that leaves a cycle of references and fails."""
    gc.disable()  # else the collection might come by itself
    _THREADS.append(threading.get_native_id())
    tangle = Tangle()
    _TANGLES.append(weakref.ref(tangle))
    raise ValueError("it fails")


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    yield
    gc.enable()


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., SlotActor]:
    """Returns a function that trains in a slot: by default `trainings.quick`, with a look at its memory each time."""

    def train(actor: SlotActor, each: Order | None = None, by: str = "quick", **allowed: float) -> SlotActor:
        allowance = Allowance(**{"seconds": 0, **allowed})  # type: ignore[arg-type]
        workplace = Workplace(f"tests.run.trainings:{by}", tmp_path, tmp_path, allowance=allowance)
        trained(actor, each or order(), workplace)
        return actor

    return train


def test_a_slot_above_its_declared_memory_reports_it_and_a_new_slot_does_not(train: Callable[..., SlotActor]) -> None:
    small, tiny = _slot(), replace(order(), slot=Slot(gpus=0, memory_gb=0.001))
    for _ in range(2):
        train(small, tiny, "leaking")
    assert small.describe()["replace_reason"] is None, "a new one would hold more than a megabyte too"
    fits = train(_slot(), by="leaking")
    just = replace(order(), slot=Slot(gpus=0, memory_gb=(fits.describe()["held"]["memory"] + 2**24) / GIB))
    for _ in range(16):  # what others freed in this process is filled first
        if train(fits, just, "leaking").describe()["replace_reason"]:
            break
    assert "its slot asked for" in str(fits.describe()["replace_reason"])


def test_a_slot_that_leaks_memory_is_replaced(train: Callable[..., SlotActor], monkeypatch: pytest.MonkeyPatch) -> None:
    def release() -> dict[str, int]:
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr("tests.run.trainings.release", release, raising=False)
    assert "device-side assert" in train(_slot()).describe()["replace_reason"]


def test_a_gpus_memory_counts_as_the_process(train: Callable[..., SlotActor], monkeypatch: pytest.MonkeyPatch) -> None:
    reserved = iter([GIB, GIB, 3 * GIB])
    monkeypatch.setattr("tests.run.trainings.release", lambda: {"memory on GPU 0": next(reserved)}, raising=False)
    actor = _slot()
    assert [train(actor).describe()["replace_reason"] for _ in range(3)] == [
        None,
        None,
        "it holds 3.00 GiB of memory on GPU 0 after 3 trainings, 1.00 GiB after its second",
    ]


def test_a_process_says_what_it_takes() -> None:
    meter = Meter(share=0)
    before = meter.usage()
    with mmap(-1, 64 * 2**20, flags=MAP_PRIVATE | MAP_ANONYMOUS) as ballast:  # new pages, not freed pages
        ballast.write(b"x" * len(ballast))
        after = meter.usage()
        assert after.memory_bytes - before.memory_bytes > len(ballast) / 2
    assert after.machine_memory_bytes == psutil.virtual_memory().total
    assert 0 < after.machine_memory_free_bytes < after.machine_memory_bytes
    assert after.cpus >= 0


def test_a_training_reports_the_usage_of_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot, "time", Clock())
    actor, each = _slot(), order(iterations=4)
    assert actor.start(each, Workplace("tests.run.trainings:dawdling", tmp_path, tmp_path), 1)
    while not Message.of(actor.poll(each.attempt, 0, 30)[-1]).final:
        pass
    reported = [Message.of(line).body.get("metrics", {}) for line in actor.poll(each.attempt, 0, 0)]
    (points,) = [points for points in reported if "system/cpu" in points]  # at most once a second
    assert 0 < points["system/memory"] < psutil.virtual_memory().total / 2**30


def test_without_a_gpu_no_gpu_usage_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert Meter().usage().gpus is None


@pytest.mark.gpu
def test_gpu_usage_is_reported_as_the_driver_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    held = torch.zeros(2**28, device="cuda")
    (gpu,) = Meter().usage().gpus or []
    assert gpu.memory_bytes > gpu.memory_used_bytes > held.numel() * 4
    assert gpu.name
    assert gpu.busy is None or 0 <= gpu.busy <= 1


def test_a_slot_reports_the_age_of_its_messages(tmp_path: Path) -> None:
    actor, each = SlotActor(leave=lambda code: None), order(iterations=3)
    assert actor.start(each, Workplace("tests.run.trainings:quick", tmp_path, tmp_path), 1)
    seen = 0
    while not Message.of(actor.poll(each.attempt, seen, 30)[-1]).final:
        seen += 1
    state = actor.describe()
    assert state["message_count"] == len(state["message_ages"]) == len(actor.poll(each.attempt, 0, 0))
    assert state["message_ages"] == sorted(state["message_ages"], reverse=True)
    assert state["usage"]["memory_bytes"] > 0


def test_the_lag_is_that_of_the_oldest_message_that_is_not_recorded() -> None:
    """Of 205 messages, one a second, the last a second ago."""
    ages = [float(age) for age in range(100, 0, -1)]
    lags = {None: None, 205: None, 204: 1.0, 200: 5.0, 105: 100.0, 3: 100.0}
    assert {seen: lag(205, ages, seen) for seen in lags} == lags


def test_who_follows_an_attempt_hears_at_once_that_it_has_ended(tmp_path: Path) -> None:
    actor, workplace = _slot(), Workplace("tests.run.trainings:quick", tmp_path, tmp_path)
    first, second = order("waits", iterations=6), order()
    assert actor.start(first, workplace, 1)
    with ThreadPoolExecutor(1) as reader:
        answer = reader.submit(actor.follow, first.attempt, 0, 600.0)
        until(lambda: actor.describe()["message_count"] == 5)
        assert not answer.done(), "it trains"
        (tmp_path / "go").touch()
        assert Message.of(answer.result(60)[-1]).kind == "finished"
    assert actor.start(second, workplace, 1)
    (last,) = actor.follow(first.attempt, 0, 600.0)
    assert Message.of(last).kind == "finished"
    assert actor.follow(first.attempt, Message.of(last).seq, 600.0) == [], "it was read to its end"


def test_a_slot_refuses_a_conductor_that_lost_its_lease(tmp_path: Path) -> None:
    actor, workplace = _slot(), Workplace("tests.run.trainings:quick", tmp_path, tmp_path)
    assert actor.greet(2)["fence"] == 2
    assert not actor.start(order(), workplace, 1)
    assert actor.describe()["attempt"] is None
    assert actor.greet(1)["fence"] == 2
    wanted = order()
    assert actor.start(wanted, workplace, 3)
    assert (actor.describe()["attempt"], actor.describe()["fence"]) == (wanted.attempt, 3)
    until(lambda: not actor.describe()["busy"])


@pytest.fixture
def preemption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Preemption:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    found = Preemption.named_by(os.environ)
    assert found is not None
    found.prepare()
    return found


def heard(actor: SlotActor, attempt: str) -> list[Message]:
    """Everything that an attempt says, to its end."""
    messages: list[Message] = []
    while not messages or not messages[-1].final:
        messages += [Message.of(line) for line in actor.poll(attempt, len(messages), 30)]
    return messages


def test_what_trains_is_given_back_and_nothing_more_is_begun(preemption: Preemption, tmp_path: Path) -> None:
    actor, place = SlotActor(leave=lambda code: None), Workplace("tests.run.trainings:quick", tmp_path, tmp_path)
    first = order("waits", iterations=9)
    assert actor.start(first, place, 1)
    until((tmp_path / first.training / "steps.txt").exists)
    assert not preemption.is_idle()
    preemption.announce()
    said = heard(actor, first.attempt)
    assert [message.kind for message in said[-2:]] == ["progress", "stopped"]
    assert said[-2].body["checkpoint"] == "last.pt"
    until(preemption.is_idle)
    assert actor.describe()["replace_reason"] == REASON
    late = order(iterations=9)
    assert actor.start(late, place, 1)
    assert [message.kind for message in heard(actor, late.attempt)] == ["stopped"]
    assert not (tmp_path / late.training).exists(), "its data were not even opened"
    until(preemption.is_idle)  # a slot says its last word before it lets go


def test_a_node_without_a_preemption_notice_trains_on(preemption: Preemption, tmp_path: Path) -> None:
    actor, each = SlotActor(leave=lambda code: None), order(iterations=3)
    assert actor.start(each, Workplace("tests.run.trainings:quick", tmp_path, tmp_path), 1)
    assert heard(actor, each.attempt)[-1].kind == "finished"
    assert actor.describe()["replace_reason"] is None
    assert Preemption.named_by({}) is None


def test_a_process_that_is_killed_keeps_nobody_waiting(preemption: Preemption, tmp_path: Path) -> None:
    code = f"""if True:
        import sys
        from pathlib import Path
        from orchestrator.run.slot import Preemption
        with Preemption(Path({str(tmp_path)!r})).training():
            print("trains", flush=True)
            sys.stdin.read()"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"trains\n"
        with preemption.training():
            assert not preemption.is_idle()
        assert not preemption.is_idle(), "another one still trains"
        process.kill()
    assert preemption.is_idle()


@pytest.mark.ray
@pytest.mark.soak
def test_a_drained_node_of_ray_costs_no_step(tmp_path: Path) -> None:
    said = played("tests.run.departing_node", str(tmp_path))
    assert "nothing trains any more" in said.pop("log")
    assert said == {"exit": 0, "results": 2, "failures": [], "given back": [1, 1], "whole": [True, True]}


NODE = """
import sys
from pathlib import Path
from orchestrator.run.ray.__main__ import RayNode
sys.exit(RayNode(sys.argv[2:], Path(sys.argv[1]), 1.0).run())
"""


def test_a_node_exits_as_its_ray_does(tmp_path: Path) -> None:
    failing = ["sh", "-c", "sleep 0.2; exit 3"]
    assert subprocess.call([sys.executable, "-c", NODE, str(tmp_path), *failing], timeout=60) == 3


def test_a_node_does_not_outlive_its_raylet(tmp_path: Path) -> None:
    """A raylet whose agent was killed ends with 0, and `ray start --block` stays."""
    (tmp_path / "raylet").symlink_to(shutil.which("sleep") or "sleep")
    staying = ["sh", "-c", f"{tmp_path}/raylet 3; sleep 600"]
    assert subprocess.call([sys.executable, "-c", NODE, str(tmp_path), *staying], timeout=60) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells a process of its parent's death")
def test_the_ray_of_a_node_that_is_killed_ends_too(tmp_path: Path) -> None:
    """Else it would keep its port, and `serve` could not start another one."""
    node = psutil.Process(subprocess.Popen([sys.executable, "-c", NODE, str(tmp_path), "sleep", "600"]).pid)
    until(lambda: bool(node.children()))
    (ray,) = node.children()
    until(lambda: ray.name() == "sleep")
    node.kill()
    until(lambda: not ray.is_running() or ray.status() == psutil.STATUS_ZOMBIE)
    node.wait()
