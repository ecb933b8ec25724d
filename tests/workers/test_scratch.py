"""The scratch folder: what other accounts could exchange is refused, with a sentence, and never read."""

import getpass
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import numpy as np
import pytest
import torch

from tests.workers import trees
from workers.contract import DataDamagedError
from workers.data.decoded import Decoded, decoded, digest
from workers.data.pictures import Form, Picture
from workers.data.scratch import _CODE_CACHES, UnsafeFolderError, opened, private, scratch

SOMEBODY = 12_345
root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another account")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files as systems have it: everybody writes there, and nobody removes another's."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_it_is_made_closed_and_found_again(temporary: Path) -> None:
    made = scratch()
    assert made == temporary / f"metricsweep-scratch-{os.getuid()}"
    assert made.stat().st_mode & 0o7777 == 0o700
    (made / "kept").touch()
    assert (scratch() / "kept").exists()


def test_one_that_others_could_only_read_is_closed(temporary: Path) -> None:
    made = scratch()
    made.chmod(0o755)
    assert scratch().stat().st_mode & 0o7777 == 0o700


def test_one_that_others_could_write_in_is_refused(temporary: Path) -> None:
    scratch().chmod(0o777)
    with pytest.raises(
        UnsafeFolderError, match=r"others could write in .*metricsweep-scratch-.* remove it, or set TMPDIR"
    ):
        scratch()


def test_a_link_at_its_place_is_refused(temporary: Path, tmp_path: Path) -> None:
    prepared = tmp_path / "prepared"
    prepared.mkdir(mode=0o700)
    for target in (prepared, tmp_path / "nothing"):
        link = temporary / f"metricsweep-scratch-{os.getuid()}"
        link.symlink_to(target)
        with pytest.raises(UnsafeFolderError, match="is a link"):
            scratch()
        link.unlink()
    assert not (tmp_path / "nothing").exists()


def test_a_file_at_its_place_is_refused(temporary: Path) -> None:
    (temporary / f"metricsweep-scratch-{os.getuid()}").touch(mode=0o600)
    with pytest.raises(UnsafeFolderError, match="is no folder"):
        scratch()


@root
def test_one_that_another_account_prepared_is_refused(temporary: Path) -> None:
    os.chown(scratch(), SOMEBODY, SOMEBODY)
    with pytest.raises(UnsafeFolderError, match=r"belongs to another account \(uid 12345\)"):
        scratch()


@root
def test_one_in_a_folder_of_another_account_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, SOMEBODY, SOMEBODY)
    with pytest.raises(UnsafeFolderError, match="theirs belongs to another account"):
        private(theirs / "mine")
    (tmp_path / "way").symlink_to(theirs)
    with pytest.raises(UnsafeFolderError, match="theirs belongs to another account"):
        private(tmp_path / "way" / "mine")
    os.chown(tmp_path / "way", SOMEBODY, SOMEBODY, follow_symlinks=False)
    with pytest.raises(UnsafeFolderError, match="way is a link of another account"):
        private(tmp_path / "way" / "mine")


def test_one_where_others_may_rename_it_is_refused(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(UnsafeFolderError, match=r"others may exchange what lies in .*open; set TMPDIR"):
        private(open_to_all / "deep" / "er")
    assert not (open_to_all / "deep").exists()
    open_to_all.chmod(0o1777)
    assert private(open_to_all / "deep" / "er").is_dir()


def test_a_group_of_nobody_else_may_write_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o770)
    monkeypatch.setattr("workers.data.scratch._alone", lambda: True)
    assert private(shared / "mine").is_dir()
    monkeypatch.setattr("workers.data.scratch._alone", lambda: False)
    with pytest.raises(UnsafeFolderError, match="others may exchange what lies in"):
        private(shared / "mine")


def test_files_are_read_where_they_are_ours_and_no_links(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"text")
    with opened(mine) as file:
        assert file.read() == b"text"
    (tmp_path / "link").symlink_to(mine)
    with pytest.raises(UnsafeFolderError, match="is a link"):
        opened(tmp_path / "link")
    with pytest.raises(FileNotFoundError):
        opened(tmp_path / "absent")


@root
def test_a_file_of_another_account_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").touch()
    os.chown(tmp_path / "theirs", SOMEBODY, SOMEBODY)
    with pytest.raises(UnsafeFolderError, match="was not written by us"):
        opened(tmp_path / "theirs")


def decoded_birds(root: Path) -> tuple[list[Picture], Decoded, Path]:
    for number in range(6):
        trees.picture(root / f"{number}.jpg", number * 40, (60 + number, 40))
    pictures = [Picture(root / f"{number}.jpg") for number in range(6)]
    found = decoded("birds", pictures, Form("square", 16), scratch())
    (folder,) = (path for path in (scratch() / "decoded").iterdir() if path.is_dir())
    return pictures, found, folder


def test_decoded_images_that_somebody_exchanged_are_noticed_though_their_hash_fits(tmp_path: Path) -> None:
    pictures, found, folder = decoded_birds(tmp_path)
    shapes = found.shapes.numpy()
    swapped = np.random.default_rng(0).integers(0, 256, len(found.pixels), np.uint8)
    (folder / "pixels").write_bytes(swapped.tobytes())
    about = (folder / "about.json").read_text()
    (folder / "about.json").write_text(about.replace(found.digest, digest(swapped, shapes)))
    with pytest.raises(DataDamagedError, match=r"holds another image than .*\.jpg; somebody exchanged"):
        decoded("birds", pictures, Form("square", 16), scratch())


def test_decoded_images_behind_a_link_are_not_read(tmp_path: Path) -> None:
    pictures, _, folder = decoded_birds(tmp_path)
    (folder / "pixels").rename(tmp_path / "pixels")
    (folder / "pixels").symlink_to(tmp_path / "pixels")
    with pytest.raises(UnsafeFolderError, match="is a link"):
        decoded("birds", pictures, Form("square", 16), scratch())


def test_the_comparison_draws_from_no_generator_of_a_training(tmp_path: Path) -> None:
    pictures, first, _ = decoded_birds(tmp_path)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    again = decoded("birds", pictures, Form("square", 16), scratch())
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(again.pixels, first.pixels)


COMPILED: Final = """\
dataset: digits
backbone: {name: mlp, width: 8}
embedding: 4
sampler: {name: balanced, classes: 2, per_class: 2}
loss: triplet
optimizer: {name: sgd, lr: 0.01}
iterations: 1
select: {split: test}
compile: true
"""


def test_nothing_compiled_lies_where_another_account_could_have_put_it(tmp_path: Path) -> None:
    """In a fresh process, since torch chooses its folder once."""
    shared = tmp_path / "tmp"
    guessed = [shared / f"torchinductor_{getpass.getuser()}", shared / getpass.getuser()]
    for folder in guessed:
        folder.mkdir(parents=True)
    (tmp_path / "recipe.yaml").write_text(COMPILED)
    chosen = {name: value for name, value in os.environ.items() if name not in _CODE_CACHES}
    done = subprocess.run(
        [sys.executable, "-m", "workers", "train", str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "out")],
        env=chosen | {"TMPDIR": str(shared)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [list(folder.iterdir()) for folder in guessed] == [[], []]
    caches = shared / f"metricsweep-scratch-{os.getuid()}" / "code"
    assert list((caches / "inductor").iterdir()), "it compiled"
    assert {folder.stat().st_mode & 0o777 for folder in (caches, *caches.iterdir())} == {0o700}


def test_a_slot_and_an_inspection_claim_the_caches_before_torch(tmp_path: Path) -> None:
    for program in (
        "from orchestrator.run.attempt import resolve; resolve('os:getcwd')",
        "from orchestrator.run.attempt import Workplace; from orchestrator.run.inspection import inspect; "
        "from pathlib import Path; inspect(Workplace('', '', Path(), inspect='builtins:filter'), ())",
    ):
        said = "import os, sys; assert 'torch' not in sys.modules; print(os.environ['TORCHINDUCTOR_CACHE_DIR'])"
        chosen = {name: value for name, value in os.environ.items() if name not in _CODE_CACHES}
        tried = f"try:\n    {program}\nexcept TypeError: pass\n{said}"
        done = subprocess.run(
            [sys.executable, "-c", tried], env=chosen | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.stdout.startswith(f"{tmp_path}/metricsweep-scratch-"), done.stderr
