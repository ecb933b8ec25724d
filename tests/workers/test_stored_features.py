"""The store of features: written whole or not at all, waited for, compared with its hash, and bounded in size."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from filelock import FileLock

from tests.workers.frozen_recipes import frozen, weights_file
from tests.workers.recipes import numbers, place, run
from workers.contract import Place, Progress, Recipe, Result, Stopped
from workers.data import features, scratch
from workers.data.features import SETTING, FeatureSet, NetworkIdentity, limit, stored
from workers.data.images import DataSet, Images, load
from workers.data.scratch import UnsafeFolderError
from workers.train import train

CPU = torch.device("cpu")


def of(recipe: Recipe, where: Place, said: list[str] | None = None) -> FeatureSet:
    """The features of a recipe, not from this process's memory."""
    return features_of(recipe, load(recipe.part("dataset"), where.data_root, where.scratch), where, said)


def features_of(recipe: Recipe, dataset: DataSet, where: Place, said: list[str] | None = None) -> FeatureSet:
    """Those of any data set."""
    features._kept.cache_clear()
    held = features.frozen(recipe, None)
    assert held is not None
    return stored(recipe, held, dataset, where, CPU, (said if said is not None else []).append)


@pytest.fixture
def where(tmp_path: Path) -> Place:
    weights_file(tmp_path)
    return place(tmp_path)


def folders(where: Place) -> list[Path]:
    return [one for one in (where.scratch / "features").iterdir() if one.is_dir()]


def test_test_sets_have_their_own_rows_in_whatever_order_they_are_named(where: Place) -> None:
    digits = load(frozen().part("dataset"), where.data_root, where.scratch)

    def some(first: int) -> Images:
        return replace(digits.test, images=digits.test.images[first : first + 8], labels=torch.arange(8))

    def told(*names: str) -> FeatureSet:
        tests = {name: some(8 * number) for number, name in enumerate(("one", "other"), 1) if name in names}
        dataset = FeatureSet(some(0), some(0), None, NetworkIdentity("", None), {name: tests[name] for name in names})
        return features_of(frozen(), dataset, where)

    before, after = told("one", "other"), told("other", "one")
    assert len(folders(where)) == 1
    assert not torch.equal(before.tests["one"].images, before.tests["other"].images)
    for name in ("one", "other"):
        assert torch.equal(after.tests[name].images, before.tests[name].images)


def test_data_roots_share_features_of_equal_weights_and_images_only(where: Place, tmp_path: Path) -> None:
    digits = load(frozen().part("dataset"), where.data_root, where.scratch).test
    images = digits.images[:8].clone()

    def rows(home: str, seed: int) -> torch.Tensor:
        (tmp_path / home).mkdir(exist_ok=True)
        weights_file(tmp_path / home, seed)
        some = replace(digits, images=images.clone(), labels=torch.arange(8))
        dataset = FeatureSet(some, some, None, NetworkIdentity("", None))
        return features_of(frozen(), dataset, replace(where, data_root=tmp_path / home / "data")).train.images

    first = rows("here", 0)
    assert torch.equal(rows("there", 0), first)
    assert len(folders(where)) == 1
    assert not torch.equal(rows("other weights", 1), first)
    images[3, 0, 4, 4] ^= 255
    assert not torch.equal(rows("here", 0), first)
    assert len(folders(where)) == 3


def test_who_is_stopped_half_way_leaves_nothing(where: Place) -> None:
    asked = iter([False, False, True])
    stopping = Place(**{**vars(where), "stop": lambda: next(asked, True)})
    with pytest.raises(Stopped, match=r"stopped after features of mobilenet_v1: 96 of 1,797 images"):
        of(frozen(), stopping)
    assert folders(where) == []
    assert of(frozen(), where).train.images.shape[0] == 1083


def test_damaged_features_are_computed_again_and_links_are_refused(
    where: Place, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = of(frozen(), where).train.images.clone()
    (folder,) = folders(where)
    rows = np.memmap(folder / "features", "<f4", mode="r+")
    rows[5] += 1
    rows.flush()
    assert torch.equal(of(frozen(), where).train.images, before)
    assert "is damaged: computing anew" in capfd.readouterr().err
    (folder / "about.json").write_text("{")
    assert torch.equal(of(frozen(), where).train.images, before)
    (folder / "features").rename(tmp_path / "elsewhere")
    (folder / "features").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeFolderError, match="is a link"):
        of(frozen(), where)


def test_others_wait_and_can_be_stopped(where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_WAITED", 0.01)
    of(frozen(), where)
    (folder,) = folders(where)
    (folder / "about.json").unlink()  # as while another process computes
    said: list[str] = []
    stop = threading.Event()
    waiting = Place(**{**vars(where), "stop": stop.is_set})
    ended: list[Any] = []

    def wait() -> None:
        try:
            of(frozen(), waiting, said)
        except Stopped as error:
            ended.append(str(error))

    with FileLock(f"{folder}.lock"):
        thread = threading.Thread(target=wait)
        thread.start()
        while not said:
            thread.join(0.01)
        assert said[0] == "waiting for features of mobilenet_v1, which another training of this machine computes"
        stop.set()
        thread.join(60)
    assert ended == ["stopped while it waited for features of mobilenet_v1"]
    assert of(frozen(), where).train.images.shape[0] == 1083


def test_the_longest_unused_make_room(where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1797 * 256 * 4
    monkeypatch.setenv(SETTING, str(2.5 * size / 1e9))
    for number, crop in enumerate((8, 7)):
        of(frozen(crop=crop), where)
        newest = max(folders(where), key=lambda one: one.stat().st_mtime_ns)
        os.utime(newest, (number, number))
    kept = of(frozen(crop=8), where)  # used again, so that the other one is the longest unused
    abandoned = where.scratch / "features" / ".mobilenet_v1-0123"
    abandoned.mkdir()
    of(frozen(crop=6), where)
    assert len(folders(where)) == 2
    assert not abandoned.exists()
    assert torch.equal(of(frozen(crop=8), where).train.images, kept.train.images)


def test_what_never_fits_is_refused(where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "0.001")
    with pytest.raises(ValueError, match=r"would take 0\.0 GB, and METRICSWEEP_FEATURES_GB allows 0\.001; raise it"):
        of(frozen(), where)
    assert folders(where) == []
    for said in ("0", "-1", "nan", "much"):
        monkeypatch.setenv(SETTING, said)
        with pytest.raises(ValueError, match="METRICSWEEP_FEATURES_GB: expected a number of gigabytes above 0, found"):
            limit()


ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
from tests.workers.recipes import numbers, place, run
from workers.contract import Recipe
from workers.train import train

asked = 0

def stop():  # asked after each batch of features: stays in the middle until it is killed
    global asked
    asked += 1
    if asked == 5:
        print("in the middle", flush=True)
        sys.stdin.read()
    return False

train(Recipe.model_validate_json(sys.argv[2]), place(Path(sys.argv[1]), stop=stop), lambda _: None)
"""


def test_killed_while_it_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_WAITED", 0.01)
    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()
        weights_file(tmp_path / name)
    home, what = tmp_path / "killed", frozen()
    lines: list[str] = []
    results: list[Result] = []
    waiting = threading.Event()

    def report(progress: Progress) -> None:
        lines.append(progress.log)
        waiting.set()

    other = threading.Thread(target=lambda: results.append(train(what, place(home), report)), daemon=True)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(home), what.model_dump_json()],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "in the middle\n"
            (aside,) = folders(place(home))
            assert aside.name.startswith(".")
            assert (aside / "features").stat().st_size == 1797 * 256 * 4
            other.start()
            assert waiting.wait(60)
            assert lines == ["waiting for features of mobilenet_v1, which another training of this machine computes\n"]
        finally:
            process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    other.join(120)
    assert lines[1] == "computing features of mobilenet_v1: 1,797 images, once for this machine\n"
    whole, _ = run(what, tmp_path / "whole")
    assert [numbers(one) for one in results] == [numbers(whole)]
    (left,), (right,) = folders(place(home)), folders(place(tmp_path / "whole"))
    assert left.name == right.name
    assert np.array_equal(*(np.fromfile(one / "features", "<f4") for one in (left, right)))
