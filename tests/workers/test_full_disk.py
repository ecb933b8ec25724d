"""A disk that is full on the way ends no training; at the end it is an error that names the file."""

import resource
from pathlib import Path

import pytest

from tests.workers.recipes import numbers, place, recipe, run
from workers.contract import Progress, Stopped
from workers.train import train


def limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_checkpoints_come_again_once_there_is_room(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    reports: list[Progress] = []

    def report(progress: Progress) -> None:
        reports.append(progress)
        # iterations 1 to 3 have room, 4 to 8 have none
        if progress.checkpoint and progress.step == 3:
            limit(2000)
        if progress.log.startswith("no checkpoint at step 8"):
            limit(before)

    where = place(tmp_path / "short", checkpoint_seconds=0.0)
    try:
        result = train(recipe(), where, report)
    finally:
        limit(before)
    assert [one.step for one in reports if one.checkpoint] == [1, 2, 3, 9, 10, 11, 12, 12]  # once at the end
    lost = [one for one in reports if "no checkpoint" in one.log]
    assert [one.step for one in lost] == [4, 5, 6, 7, 8]
    expected = f"no checkpoint at step 4: File too large ({tmp_path}/short/last.pt); going on without\n"
    assert lost[0].log == expected
    assert numbers(result) == numbers(run(recipe(), tmp_path / "long")[0]), "as if there had been room"
    assert sorted(path.name for path in (tmp_path / "short").iterdir()) == ["best.pt", "queries.npz"]


def test_the_checkpoint_before_it_still_stands(tmp_path: Path) -> None:
    where = place(tmp_path, checkpoint_seconds=0.0, stop=iter([False] * 4 + [True]).__next__)
    reports: list[Progress] = []

    def report(progress: Progress) -> None:
        reports.append(progress)
        if progress.checkpoint:
            limit(2000)

    before = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    try:
        with pytest.raises(Stopped, match="stopped after 4 of 12"):
            train(recipe(), where, report)
    finally:
        limit(before)
    assert [one.step for one in reports if one.checkpoint] == [1]
    assert "no checkpoint at step 4" in reports[-1].log, "also the one that was asked for at the stop"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last.pt"], "nothing half is left"
    log = "".join(one.log for one in run(recipe(), tmp_path / "again", tmp_path / "last.pt")[1])
    assert "training from step 1" in log
