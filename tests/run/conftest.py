"""By which names engines are put through their conformance suite, and what tests of engines share."""

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.run import dispatch
from orchestrator.run.files import pool
from orchestrator.run.files.slot import JOINED_FOLDER, FileSlot, Mailbox, slots_folder, state_of
from orchestrator.views.runs import Order
from tests.conftest import ROOT

ENGINES = ("inline", "ray_tune", "files", "tests.run.threads:engine")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_name" in metafunc.fixturenames:
        names = metafunc.config.getoption("--engine") or ENGINES
        marks = {"ray_tune": [pytest.mark.ray]}
        metafunc.parametrize("engine_name", [pytest.param(name, marks=marks.get(name, [])) for name in names])


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine's run ends as soon as nothing trains and no order waits."""
    monkeypatch.setattr(dispatch, "LINGER_SECONDS", 0)


@pytest.fixture
def file_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileSlot]:
    """A slot with one CPU that has joined the storage of a test by files; in a thread; both sides hurry."""
    monkeypatch.setattr(pool, "REFRESH_SECONDS", 0.01)
    monkeypatch.setattr(dispatch, "TURN_SECONDS", 0.01)
    monkeypatch.setattr(dispatch, "LINGER_SECONDS", 2)  # a slot is free only after its next state
    there = slots_folder(tmp_path / "storage")
    box = Mailbox(there / JOINED_FOLDER / uuid.uuid4().hex)
    slot = FileSlot(box, there.parent, state_of({"CPU": 1.0, "memory": 2.0**30}, "", ""), idle=600, poll=0.01)
    thread = threading.Thread(target=slot.run, daemon=True)
    thread.start()
    yield slot
    slot.leave("the test is over")
    thread.join(60)
    assert not thread.is_alive()


def steps_of(folder: Path, each: Order) -> list[int]:
    """The steps that `trainings.quick` has taken, in order."""
    return [int(line) for line in (folder / "storage" / each.training / "steps.txt").read_text().split()]


def played(module: str, *arguments: str) -> dict[str, Any]:
    """Run a program that starts a cluster of its own, and return its last line of JSON; SIGTERM ends the cluster."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    environment.pop("RAY_ADDRESS", None)
    command = [sys.executable, "-m", module, *arguments]
    program = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        out, _ = program.communicate(timeout=900)
    finally:
        program.terminate()
        program.wait(timeout=120)
    assert program.returncode == 0
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found
