"""By which names engines are put through their conformance suite."""

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.run.files import engine, roster
from orchestrator.run.files.post import HERE, Box, room
from orchestrator.run.files.slot import FileSlot, state_of

ENGINES = ("inline", "ray_tune", "files", "tests.run.threads:engine")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_name" in metafunc.fixturenames:
        names = metafunc.config.getoption("--engine") or ENGINES
        if "bucket_url" in metafunc.fixturenames:  # slots that join by files refuse a bucket: tests/run/test_files.py
            names = [name for name in names if name != "files"]
        marks = {"ray_tune": [pytest.mark.ray]}
        metafunc.parametrize("engine_name", [pytest.param(name, marks=marks.get(name, [])) for name in names])


@pytest.fixture
def file_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileSlot]:
    """A slot with one CPU that has joined the storage of a test by files; in a thread; both sides hurry."""
    monkeypatch.setattr(roster, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(engine, "TURN_SECONDS", 0.01)
    there = room(tmp_path / "storage")
    box = Box(there / HERE / uuid.uuid4().hex)
    slot = FileSlot(box, there.parent, state_of({"CPU": 1.0, "memory": 2.0**30}, "", ""), idle=600, poll=0.01)
    thread = threading.Thread(target=slot.run, daemon=True)
    thread.start()
    yield slot
    slot.leave("the test is over")
    thread.join(60)
    assert not thread.is_alive()
