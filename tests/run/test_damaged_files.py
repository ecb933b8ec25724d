"""What stands in the folder of slots and was written by nobody of ours: damaged, huge, half removed, left behind."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

from orchestrator.run.dispatch import Execution
from orchestrator.run.files import roster as rosters
from orchestrator.run.files.demand import Demanded
from orchestrator.run.files.held import JoinedSlot
from orchestrator.run.files.listening import MOST_BYTES, Listening
from orchestrator.run.files.post import (
    DEMAND,
    HERE,
    LEFT_SECONDS,
    ORDER,
    OWNER,
    STATE,
    Box,
    Instruction,
    State,
    boxes,
    room,
    tidy,
)
from orchestrator.run.files.roster import Allegiance, Roster
from orchestrator.run.files.slot import FileSlot, state_of
from orchestrator.run.message import Message
from orchestrator.run.spool import FILE, attempt_folder
from orchestrator.views.errors import MetricsweepError
from tests.run.broker import order
from tests.run.test_files import OFFER, Clock, until


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(rosters, "LOOK_SECONDS", 1e-9)
    return room(tmp_path / "storage")


HOSTILE = [
    *(b"", b"null", b"[]", b"7", b"{}", b"[" * 100_000, b"\xff\xfe", b'{"form": 1, "beat": "many"}'),
    *(b'{"form": 1, "resources": [1]}', b'{"form": 1, "resources": {"CPU": NaN}}'),
    b'{"form": 1, "resources": {"CPU": 1e999}}',
    *(b'{"form": 1, "beat": 1, "phase": "gone"}', b'{"form": 1, "said": {}, "ages": "long"}'),
    b'{"beat": [[], 1], "training": [], "waiting": [{"CPU": "all"}]}',
]  # fmt: skip
"""What stands in no file of ours."""


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_a_damaged_file_is_silence_and_not_the_end_of_who_reads_it(there: Path, content: bytes) -> None:
    clock, box = Clock(), Box(there / HERE / "slot")
    box.make(State(beat=1, resources=OFFER))
    roster = Roster(there, Allegiance("ours", 1, ""), clock)
    roster.refresh()
    (slot,) = roster
    for name in (STATE, ORDER):
        (box.folder / name).write_bytes(content)
    (there / DEMAND).write_bytes(content)
    roster.look({})
    clock.now += 1
    roster.refresh()
    assert Demanded(there, clock).slots(OFFER) is None
    assert slot.state.resources == OFFER or slot.gone == "it is of another release"
    if slot.gone is None:
        assert box.instruction().fence == 1, "what is damaged is written anew"


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_a_note_of_the_owner_that_is_damaged_is_told_with_its_file(there: Path, content: bytes) -> None:
    (there / OWNER).write_bytes(content)
    with pytest.raises(MetricsweepError, match=r"installation.json is damaged: .*remove it"):
        Roster(there, Allegiance("ours", 1, ""))


def test_a_file_that_is_huge_is_not_read_whole(there: Path) -> None:
    box = Box(there / HERE / "slot")
    box.make(State())
    with (box.folder / STATE).open("r+b") as file:
        file.truncate(2**40)
    with pytest.raises(OSError, match="larger than 16 MiB"):
        box.state()


def test_a_usage_that_cannot_be_read_costs_a_page_its_number_and_no_slot(there: Path) -> None:
    Box(there / HERE / "slot").make(State(beat=1, resources=OFFER, usage={"memory": "much"}, ages=[1.0]))
    (report,) = Roster(there, Allegiance("ours", 1, "")).look({})
    assert report.usage is None


def test_a_slot_that_is_told_what_it_cannot_read_leaves(there: Path) -> None:
    slot = FileSlot(Box(there / HERE / "slot"), there.parent, state_of(OFFER, "", ""), idle=600, poll=0.01)
    thread = threading.Thread(target=slot.run, daemon=True)
    thread.start()
    until(lambda: boxes(there))
    Box(there / HERE / "slot").instruct(Instruction(fence=1, number=1, do="train", order={"attempt": 7}, workplace={}))
    thread.join(60)
    assert "cannot be read" in str(slot.why)


def test_a_slot_that_could_not_be_struck_off_at_once_does_not_join_again(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Box(there / HERE / "slot").make(State(beat=1, fence=1, taken=3, resources=OFFER))
    roster = Roster(there, Allegiance("ours", 1, ""))
    roster.refresh()
    (slot,) = roster
    with monkeypatch.context() as away:
        away.setattr(Box, "remove", lambda self: None)
        roster.give_up(slot)
        roster.refresh()
    assert list(roster) == [], "it would never answer, and keep the engine from resting"
    roster.refresh()
    assert boxes(there) == []


def test_a_line_longer_than_a_look_is_heard_whole(there: Path) -> None:
    long = order()
    box = Box(there / HERE / "slot")
    box.make(State(beat=1, fence=1, resources=OFFER, attempt=long.attempt, busy=True))
    slot = JoinedSlot(box, Instruction(fence=1))
    slot.look()
    spool = there.parent / attempt_folder(long) / FILE
    spool.parent.mkdir(parents=True)
    line = Message.made(1, "progress", {"log": "x" * (2 * MOST_BYTES + 7)}).line
    spool.write_bytes(line + Message.made(2, "progress", {}).line)
    listening = Listening(there.parent)
    listening.follow(Execution(long, slot, 0, 0.0))
    assert next(one for report in (*listening.reports(), *listening.reports()) for one in report.said) == line


def test_what_was_never_put_in_its_place_is_removed(there: Path) -> None:
    old, new = there / HERE / ".dead", there / ".demand.json.7"
    old.mkdir()
    (old / STATE).write_text("{}")
    new.write_text("{}")
    os.utime(old, (1, time.time() - LEFT_SECONDS - 1))
    Box(there / HERE / "slot").make(State())
    tidy(there)
    assert (old.exists(), new.exists(), len(boxes(there))) == (False, True, 1)
    assert json.loads(new.read_text()) == {}
