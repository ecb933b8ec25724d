"""A checkpoint that is damaged while its worker is away, with what the workers really train.

A module of its own, since only one installation may use a Ray at a time.
"""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.conftest import Note
from tests.faults.disturbing import HELD, begin, whole
from tests.faults.evidence import holders, rows
from tests.faults.installation import Installation, RayCluster
from tests.faults.sweeps import on_digits

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.soak]

REAL = "tests.faults.trainings:real"


def test_a_checkpoint_is_cut_off(empty: Callable[..., Installation], ray_head: RayCluster, note: Note) -> None:
    installation = empty(ray_head, train=REAL)
    installation.start_api()
    installation.start_conductor()
    body = on_digits(600)
    sweep = begin(installation, body, hold=HELD)

    def checkpoints() -> list[Path]:
        return sorted((installation.home / "storage").glob("*/1/last.pt"))

    installation.until(lambda: len(checkpoints()) == 2, "both trainings have a checkpoint")
    process_of = dict(holders(installation.home, 0.0))
    for file in checkpoints():
        os.kill(process_of[file.parents[1].name], signal.SIGKILL)
    damaged, kept = checkpoints()
    os.truncate(damaged, damaged.stat().st_size // 2)
    found = whole(installation, sweep, body, REAL)
    assert found.attempts == 2
    url = installation.settings.database
    query = (
        "SELECT l.text FROM log l JOIN attempt a ON a.id = l.attempt_id JOIN training t ON t.id = a.training_id"
        " WHERE t.uid = :uid AND a.number = 2 ORDER BY l.seq"
    )
    logs = [
        "".join(row.text for row in rows(url, query, uid=file.parents[1].name)).splitlines() for file in (damaged, kept)
    ]
    assert any("last.pt is damaged" in line for line in logs[0]), logs[0][:5]
    assert "starting from the beginning" in logs[0]
    assert not any("starting from the beginning" in line for line in logs[1]), logs[1][:5]
    query = (
        "SELECT max(m.step) FROM metric m JOIN attempt a ON a.id = m.attempt_id JOIN training t"
        " ON t.id = a.training_id WHERE t.uid = :uid AND a.number = 1"
    )
    again = rows(url, query, uid=damaged.parents[1].name)[0][0]
    note("A checkpoint cut off", replace(found, repeated=again))
