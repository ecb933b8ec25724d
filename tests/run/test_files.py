"""Slots that join by files: whom they obey, when either side gives the other up, and what damaged files do."""

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from orchestrator.run.attempt import Workplace, execute
from orchestrator.run.dispatch import Dispatch, Execution
from orchestrator.run.engine import settle_from_spool
from orchestrator.run.files import pool as rosters
from orchestrator.run.files import slot as slots
from orchestrator.run.files.engine import DemandFile, FileSlots, Listening
from orchestrator.run.files.pool import FilePool, JoinedSlot, Ownership, SlotRegistry
from orchestrator.run.files.slot import (
    JOINED_FOLDER,
    STATE,
    FileSlot,
    Instruction,
    Mailbox,
    State,
    allocation,
    mailboxes,
)
from orchestrator.run.slurm import STALE_SECONDS, DemandReader
from orchestrator.spec.spec import Slot
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.operations import Shape
from orchestrator.views.runs import Failure
from tests.run.broker import MemoryBroker, order

OFFER = {"CPU": 2.0, "memory": 2.0**30}


class Clock:
    """Seconds that pass as a test says."""

    def __init__(self) -> None:
        self.now, self.asked = 1000.0, 0

    def __call__(self) -> float:
        self.asked += 1
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The monotonic clock of both sides."""
    made = Clock()
    for module in ("files.engine", "files.pool", "files.slot", "slurm"):
        stand_in = SimpleNamespace(monotonic=made, time=time.time, sleep=time.sleep)
        monkeypatch.setattr(f"orchestrator.run.{module}.time", stand_in)
    return made


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(rosters, "REFRESH_SECONDS", 1e-9)
    monkeypatch.setattr("orchestrator.run.dispatch.LINGER_SECONDS", 0.3)
    return slots.slots_folder(tmp_path / "storage")


@pytest.fixture
def join(there: Path) -> Iterator[Callable[..., FileSlot]]:
    """Has a slot join, in a thread that ends with the test."""
    joined: list[tuple[FileSlot, threading.Thread]] = []

    def joining(name: str = "slot", *, idle: float = 600, edition: str = "") -> FileSlot:
        box, state = Mailbox(there / JOINED_FOLDER / name), slots.state_of(OFFER, edition, "")
        slot = FileSlot(box, there.parent, state, idle=idle, poll=0.01)
        thread = threading.Thread(target=slot.run, daemon=True)
        thread.start()
        joined.append((slot, thread))
        until(lambda: mailboxes(there))
        return slot

    yield joining
    for slot, thread in joined:
        slot.leave("the test is over")
        thread.join(60)
        assert not thread.is_alive()


def until(true: Callable[[], object]) -> None:
    hang = time.monotonic() + 60
    while not true():
        assert time.monotonic() < hang, "waited in vain"
        time.sleep(0.01)


def work_at(there: Path) -> Workplace:
    return Workplace("tests.run.trainings:quick", there.parent, there)


def greeted(there: Path, fence: int, edition: str = "") -> SlotRegistry:
    """The slots once they have answered a conductor of this lease."""
    registry = SlotRegistry(there, Ownership("ours", fence, edition))
    until(registry.complete)
    return registry


def test_a_slot_obeys_no_conductor_that_lost_its_lease(join: Callable[..., FileSlot], there: Path) -> None:
    join()
    (former,) = greeted(there, 4)
    registry = greeted(there, 5)
    (slot,) = registry
    former.start(order(), work_at(there))
    wanted, work = order(), work_at(there)
    taken = FilePool(registry, 9).take(wanted)
    assert taken is slot
    slot.start(wanted, work)
    former.stop(wanted.attempt)  # which writes over what stands there
    until(lambda: registry.refresh() or (slot.acknowledged and slot.state.attempt))
    assert slot.state.attempt == wanted.attempt
    assert former.begun is False


def test_what_trains_though_no_order_stands_for_it_is_stopped(join: Callable[..., FileSlot], there: Path) -> None:
    join()
    left = order("waits", iterations=9)
    (former,) = greeted(there, 1)
    former.start(left, work_at(there))
    until(lambda: Mailbox(there / JOINED_FOLDER / "slot").state().busy)
    registry = greeted(there, 2)
    pool = FilePool(registry, 9)
    assert pool.unclaimed()
    assert pool.take(order()) is None, "it is not free"
    pool.reap()
    until(lambda: registry.refresh() or not pool.full())
    assert not pool.unclaimed()


def test_a_slot_that_tells_nothing_is_lost_and_one_that_nobody_listened_to_is_not(there: Path, clock: Clock) -> None:
    box = Mailbox(there / JOINED_FOLDER / "slot")
    box.make(State(beat=1, resources=OFFER))
    slot = JoinedSlot(box, Instruction(fence=1))
    slot.refresh()
    clock.now += slots.SILENT_SECONDS - 1
    slot.refresh()
    assert [slot.gone] == [None]
    clock.now += 2
    slot.refresh()
    assert slot.gone == "it has not written for 60 s"
    registry = SlotRegistry(there, Ownership("ours", 1, ""))
    registry.refresh()
    clock.now += 10 * slots.SILENT_SECONDS  # nothing ran meanwhile
    registry.refresh()
    assert [one.gone for one in registry] == [None]
    for _ in range(30):
        clock.now += 3
        registry.refresh()
    assert mailboxes(there) == [], "it was listened to, and said nothing"


def test_a_slot_without_its_storage_gives_up_before_it_is_given_up(
    join: Callable[..., FileSlot], there: Path, clock: Clock
) -> None:
    slot = join()
    until(lambda: clock.asked > 20)
    assert Mailbox(there / JOINED_FOLDER / "slot").state().beat == 1, "nothing has changed since it joined"
    (there / JOINED_FOLDER / "slot" / "order.json").write_text("damaged")
    time.sleep(0.05)
    assert slot.why is None

    def gave_up() -> bool:  # when it sees the damage is its own affair
        clock.now += slots.SILENT_SECONDS / 2 + 1
        return bool(slot.why)

    until(gave_up)
    assert "does not answer" in str(slot.why)


def test_a_slot_that_was_removed_ends_and_an_idle_slot_leaves(join: Callable[..., FileSlot], there: Path) -> None:
    struck = join("struck")
    Mailbox(there / JOINED_FOLDER / "struck").remove()
    until(lambda: struck.why == "the conductor has removed it")
    idle = join("idle", idle=0.05)
    until(lambda: idle.why)
    assert "nothing to train" in idle.why


def test_a_slot_of_other_code_trains_nothing_and_ends(join: Callable[..., FileSlot], there: Path) -> None:
    slot = join(edition="older")
    registry = greeted(there, 1, "newer")
    assert FilePool(registry, 9).take(order()) is None
    until(lambda: registry.refresh() or slot.why)
    assert slot.why == "the conductor ended it"


def test_an_order_that_a_slot_returns_waits_again(join: Callable[..., FileSlot], there: Path, tmp_path: Path) -> None:
    slot, each = join(), order("waits", iterations=9)
    engine = FileSlots(Workplace("tests.run.trainings:quick", there.parent, tmp_path), None)

    def leave(broker: MemoryBroker) -> None:
        if each.training in broker.last and broker.last[each.training].step == 5:
            slot.leave("its time is up")

    broker = MemoryBroker(deque([each]))
    broker.at_tick = leave
    until(lambda: engine.rest(broker) or engine.nodes())
    engine.run(broker)
    assert (broker.given_back, broker.failures, broker.ended) == ([each.training], [], [])
    until(lambda: (engine.rest(broker), not mailboxes(there))[1])  # a slot that has left is forgotten at a next look


@pytest.mark.parametrize(
    ("fence", "installation", "said"), [(3, "theirs", "another installation"), (2, "ours", "an older copy")]
)
def test_slots_of_others_are_left_alone(there: Path, fence: int, installation: str, said: str) -> None:
    Ownership("ours", 3, "").claim(there)
    with pytest.raises(MetricsweepError, match=said):
        SlotRegistry(there, Ownership(installation, fence, ""))


def test_the_demand_counts_what_an_offer_holds_and_grows_old(there: Path, clock: Clock) -> None:
    tells, hears = DemandFile(there), DemandReader(there)
    assert hears.slots(OFFER) is None, "no demand was written"
    small, large = Shape(1, 0, 0), Shape(1, 1, 0)
    tells.write([small], [small, large, Shape(1, 0, 2**40)])
    assert hears.slots(OFFER) == 2
    assert hears.slots({**OFFER, "GPU": 1.0}) == 3
    clock.now += STALE_SECONDS + 1
    assert hears.slots(OFFER) is None, "its conductor is gone"
    tells.write([], [])
    assert hears.slots(OFFER) == 0


def test_a_slot_offers_what_its_job_was_given() -> None:
    environment = {
        "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3", "SLURM_JOB_ID": "15", "SLURM_CPUS_PER_TASK": "4",
        "SLURM_CPUS_ON_NODE": "8", "SLURM_GPUS_ON_NODE": "1", "SLURM_MEM_PER_CPU": "512", "SLURM_RESTART_COUNT": "2",
    }  # fmt: skip
    assert allocation(environment) == ("12_3r2", {"CPU": 4.0, "GPU": 1.0, "memory": 2.0**31})
    assert allocation({**environment, "CUDA_VISIBLE_DEVICES": "0,3"})[1]["GPU"] == 2.0
    assert allocation({**environment, "SLURM_MEM_PER_NODE": "1024"})[1]["memory"] == 2.0**30
    job, machine = allocation({})
    assert (job, machine["memory"]) == ("", psutil.virtual_memory().total)


def test_an_order_goes_to_the_smallest_slot_that_holds_it_and_whose_host_has_its_data(there: Path) -> None:
    for name, cpus, gpus, host in (("a", 8, 0, "one"), ("b", 2, 0, "two"), ("c", 2, 1, "one"), ("d", 2, 0, "one")):
        offer = {"CPU": cpus, "GPU": gpus, "memory": 2.0**30}
        Mailbox(there / JOINED_FOLDER / name).make(State(beat=1, fence=1, host=host, resources=offer))
    Mailbox(there / JOINED_FOLDER / "e").make(
        State(beat=1, fence=1, resources={**OFFER, "CPU": 1.0}, replace_reason="it has grown")
    )
    registry = SlotRegistry(there, Ownership("ours", 1, ""))
    pool = FilePool(registry, 3)
    assert pool.take(replace(order(), lacking=("d",))).name == "b", "the smaller one has grown, and trains nothing more"
    assert pool.take(replace(order(), slot=Slot(gpus=1))).name == "c"
    assert pool.take(replace(order(), slot=Slot(cpus=4, gpus=0))).name == "a"
    assert pool.full(), "three is the limit"
    assert pool.take(order()) is None


def test_what_was_given_back_while_nobody_conducted_is_no_failure(tmp_path: Path) -> None:
    left, work = order(iterations=9), Workplace("tests.run.trainings:quick", tmp_path, tmp_path)
    execute(left, work, (tmp_path / left.training / "steps.txt").exists, lambda message: None)
    broker = MemoryBroker(deque())
    settle_from_spool(broker, left, work, 0, Failure("infrastructure", "its slot is gone"))
    assert (broker.given_back, broker.failures) == ([left.training], [])
    assert broker.waiting[0].resume == f"{left.training}/1/last.pt"


def test_what_a_former_conductor_began_is_followed_where_it_trains(join: Callable[..., FileSlot], there: Path) -> None:
    join("first")
    join("second")
    until(lambda: len(mailboxes(there)) == 2)
    left, work = order("waits", iterations=9), work_at(there)
    former = greeted(there, 1)
    former.get("first").start(left, work)
    until(lambda: Mailbox(there / JOINED_FOLDER / "first").state().busy)
    # The conductor died between noting the slot and sending the order to it, or before it noted a slot.
    never = [replace(order(), holder=holder) for holder in ("second", "")]
    broker = MemoryBroker(deque([replace(left, holder="first"), *never]))
    dispatch = Dispatch(broker, FilePool(greeted(there, 2), 9), work)
    (execution,) = dispatch.begun()
    assert (execution.slot.name, broker.failures) == ("first", [])
    assert broker.given_back == [one.training for one in never]
    assert Mailbox(there / JOINED_FOLDER / "second").state().attempt is None, "two slots would write one spool"
    execution.slot.stop(left.attempt)


HOSTILE = [
    *(b"", b"null", b"[]", b"7", b"{}", b"[" * 100_000, b"\xff\xfe", b'{"form": 1, "beat": "many"}'),
    b'{"form": 2, "resources": "many"}',
    *(b'{"form": 1, "resources": [1]}', b'{"form": 1, "resources": {"CPU": NaN}}'),
    b'{"form": 1, "resources": {"CPU": 1e999}}',
    *(b'{"form": 1, "beat": 1, "phase": "gone"}', b'{"form": 1, "message_count": {}, "message_ages": "long"}'),
    b'{"beat": [[], 1], "training": [], "waiting": [{"CPU": "all"}]}',
]  # fmt: skip
"""What stands in no file of ours."""


def test_a_damaged_file_is_silence_and_not_the_end_of_who_reads_it(there: Path, clock: Clock) -> None:
    for number, content in enumerate(HOSTILE):
        folder = slots.slots_folder(there.parent / str(number) / "storage")
        box = Mailbox(folder / JOINED_FOLDER / "slot")
        box.make(State(beat=1, resources=OFFER))
        registry = SlotRegistry(folder, Ownership("ours", 1, ""))
        registry.refresh()
        (slot,) = registry
        for name in (STATE, slots.ORDER):
            (box.folder / name).write_bytes(content)
        (folder / slots.DEMAND).write_bytes(content)
        registry.reports({})
        clock.now += 1
        registry.refresh()
        assert DemandReader(folder).slots(OFFER) is None, content
        other = content.startswith(b"{") and b'"form": 1' not in content
        gone = "it is of another release" if other else None
        assert (slot.state.resources, slot.gone) == (OFFER, gone), content
        if slot.gone is None:
            assert box.instruction().fence == 1, f"what is damaged is written anew: {content!r}"
        (folder / slots.OWNER).write_bytes(content)
        with pytest.raises(MetricsweepError, match=r"installation.json is damaged: .*remove the file"):
            SlotRegistry(folder, Ownership("ours", 1, ""))


def test_a_slot_whose_instruction_cannot_be_read_leaves(join: Callable[..., FileSlot], there: Path) -> None:
    slot = join()
    Mailbox(there / JOINED_FOLDER / "slot").instruct(
        Instruction(fence=1, number=1, do="train", order={"attempt": 7}, workplace={})
    )
    until(lambda: slot.why)
    assert "cannot be read" in str(slot.why)


def test_the_host_of_an_attempt_is_reported_once(there: Path) -> None:
    each, box = order(), Mailbox(there / JOINED_FOLDER / "slot")
    box.make(State(beat=1, fence=1, host="hall", resources=OFFER, attempt=each.attempt, busy=True))
    slot, listening = JoinedSlot(box, Instruction(fence=1)), Listening(there.parent)
    slot.refresh()
    listening.follow(Execution(each, slot, 0, 0.0))
    assert [[report.host for report in listening.reports(0)] for _ in range(2)] == [["hall"], []]


def test_what_was_never_put_in_its_place_is_removed(there: Path) -> None:
    old, new = there / JOINED_FOLDER / ".dead", there / ".demand.json.7"
    old.mkdir()
    (old / STATE).write_text("{}")
    new.write_text("{}")
    os.utime(old, (1, time.time() - slots.LEFT_SECONDS - 1))
    Mailbox(there / JOINED_FOLDER / "slot").make(State())
    slots.tidy(there)
    assert (old.exists(), new.exists(), len(mailboxes(there))) == (False, True, 1)
    assert json.loads(new.read_text()) == {}


def test_a_slot_whose_removal_failed_does_not_join_again(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Mailbox(there / JOINED_FOLDER / "slot").make(State(beat=1, fence=1, acknowledged=3, resources=OFFER))
    registry = SlotRegistry(there, Ownership("ours", 1, ""))
    registry.refresh()
    (slot,) = registry
    with monkeypatch.context() as away:
        away.setattr(Mailbox, "remove", lambda self: None)
        registry.give_up(slot)
        registry.refresh()
    assert list(registry) == []
    registry.refresh()
    assert mailboxes(there) == []
