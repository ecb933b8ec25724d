"""While a disk has too little room nothing new is taken, written or begun; above the limit all goes on by itself."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import UnavailableError
from tests.disk_limits import SmallDisk, read_only, small_disk
from tests.inline_conductor import conduct, ran
from tests.test_conductor import spec

LEFT = 256 * 1024
"""Bytes that are left: the database can be written, and a twentieth of the disk is more."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "small", "16m") as disk:
        yield disk


@pytest.fixture
def settings(disk: SmallDisk) -> Settings:
    return Settings(home=disk.folder / "home", engine="inline", train="tests.run.trainings:scripted", lease_seconds=5)


def test_a_queued_sweep_waits_for_room(service: Service, settings: Settings, disk: SmallDisk) -> None:
    sweep = service.submissions.submit(spec()).id
    disk.fill(but=LEFT)
    conduct(settings)
    held = service.sweeps.get(sweep)
    assert held.state == "queued"
    assert "a disk takes no more (home: 0." in (held.notice or "")
    assert "it goes on when there is room" in (held.notice or "")
    disk.empty()
    conduct(settings)
    ended = service.sweeps.get(sweep)
    assert (ended.state, ended.notice) == ("finished", None)


def test_nothing_waiting_is_begun_meanwhile(service: Service, settings: Settings, disk: SmallDisk) -> None:
    sweep = ran(service, settings, spec(), 3)
    before = service.sweeps.get(sweep).counts.finished
    disk.fill(but=LEFT)
    conduct(settings)
    assert service.sweeps.get(sweep).counts.finished - before <= 1, "what an earlier conductor began goes on"
    assert service.sweeps.get(sweep).counts.waiting > 0
    disk.empty()
    conduct(settings)
    assert service.sweeps.get(sweep).state == "finished"


def test_no_sweep_and_no_extension_is_taken_meanwhile(service: Service, settings: Settings, disk: SmallDisk) -> None:
    sweep = ran(service, settings, spec())
    wider = spec(repeat={"seed": [0, 1, 2]})
    disk.fill(but=LEFT)
    with pytest.raises(UnavailableError, match=r"nothing new is begun, .* \(home: .* needed, storage: .* needed\)"):
        service.submissions.submit(spec(name="another"))
    with pytest.raises(UnavailableError, match="nothing new is begun"):
        service.commands.extend(sweep, wider)
    check = next(one for one in service.operations.ready().checks if one.name == "disk")
    assert not check.ok
    disk.empty()
    service.commands.extend(sweep, wider)
    assert service.submissions.submit(spec(name="another")).created


def test_a_read_only_home_is_like_a_full_disk(service: Service, settings: Settings, disk: SmallDisk) -> None:
    with read_only(settings.resolved_home):
        with pytest.raises(UnavailableError, match=r"\(home: read-only, storage: read-only\)"):
            service.submissions.submit(spec())
        (check,) = (one for one in service.operations.ready().checks if one.name == "disk")
        assert (check.ok, "home: read-only" in check.detail) == (False, True)
    assert service.submissions.submit(spec()).created


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_conductor_holds_while_the_engine_finds_no_room(service: Service, settings: Settings, number: int) -> None:
    """As when Ray Tune cannot write the state of its experiment."""
    sweep = service.submissions.submit(spec()).id
    left = iter([OSError(number, os.strerror(number))])

    def failing(claim: Callable[..., Any]) -> Callable[..., Any]:
        def claim_or_fail() -> Any:
            for error in left:
                raise error
            return claim()

        return claim_or_fail

    conduct(settings, next_order=failing)
    assert service.sweeps.get(sweep).state == "finished"
