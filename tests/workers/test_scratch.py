"""The scratch folder: what other accounts could exchange is refused with a reason, and never read."""

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
from workers.data.scratch import UnsafeFolderError, opened, private, scratch

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
    made.chmod(0o755)
    assert scratch().stat().st_mode & 0o7777 == 0o700, "others could only read it, and no longer can"
    assert (scratch() / "kept").exists()


def test_what_others_could_have_put_there_is_refused(temporary: Path, tmp_path: Path) -> None:
    place = temporary / f"metricsweep-scratch-{os.getuid()}"
    scratch().chmod(0o777)
    with pytest.raises(UnsafeFolderError, match=r"others could write in .*metricsweep-.* remove it, or set TMPDIR"):
        scratch()
    place.rmdir()
    (tmp_path / "prepared").mkdir(mode=0o700)
    for target in (tmp_path / "prepared", tmp_path / "nothing"):
        place.symlink_to(target)
        with pytest.raises(UnsafeFolderError, match="is a link"):
            scratch()
        place.unlink()
    assert not (tmp_path / "nothing").exists()
    place.touch(mode=0o600)
    with pytest.raises(UnsafeFolderError, match="is no folder"):
        scratch()


@root
def test_what_belongs_to_another_account_is_refused(tmp_path: Path) -> None:
    os.chown(scratch(), SOMEBODY, SOMEBODY)
    with pytest.raises(UnsafeFolderError, match=r"belongs to another account \(uid 12345\)"):
        scratch()
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
    (tmp_path / "file").touch()
    os.chown(tmp_path / "file", SOMEBODY, SOMEBODY)
    with pytest.raises(UnsafeFolderError, match="was not written by us"):
        opened(tmp_path / "file")


def test_a_folder_that_others_may_rename_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "open"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(UnsafeFolderError, match=r"others may exchange what lies in .*open; set TMPDIR"):
        private(shared / "deep" / "er")
    assert not (shared / "deep").exists()
    shared.chmod(0o1777)
    assert private(shared / "deep" / "er").is_dir()
    shared.chmod(0o770)
    monkeypatch.setattr("workers.data.scratch._alone", lambda: True)
    assert private(shared / "mine").is_dir(), "a group without other members may write there"
    monkeypatch.setattr("workers.data.scratch._alone", lambda: False)
    with pytest.raises(UnsafeFolderError, match="others may exchange what lies in"):
        private(shared / "mine")


def test_files_behind_links_are_not_read(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"text")
    with opened(mine) as file:
        assert file.read() == b"text"
    (tmp_path / "link").symlink_to(mine)
    with pytest.raises(UnsafeFolderError, match="is a link"):
        opened(tmp_path / "link")
    with pytest.raises(FileNotFoundError):
        opened(tmp_path / "absent")


def decoded_birds(root: Path) -> tuple[list[Picture], Decoded, Path]:
    for number in range(6):
        trees.picture(root / f"{number}.jpg", number * 40, (60 + number, 40))
    pictures = [Picture(root / f"{number}.jpg") for number in range(6)]
    found = decoded("birds", pictures, Form("square", 16), scratch())
    (folder,) = (path for path in (scratch() / "decoded").iterdir() if path.is_dir())
    return pictures, found, folder


def test_decoded_images_that_were_exchanged_are_noticed(tmp_path: Path) -> None:
    """Even where their hash fits; and the comparison draws from no generator of a training."""
    pictures, found, folder = decoded_birds(tmp_path)
    torch.manual_seed(0)
    before, shapes = torch.get_rng_state(), found.shapes.numpy()
    assert torch.equal(decoded("birds", pictures, Form("square", 16), scratch()).pixels, found.pixels)
    assert torch.equal(torch.get_rng_state(), before)
    swapped = np.random.default_rng(0).integers(0, 256, len(found.pixels), np.uint8)
    (folder / "pixels").write_bytes(swapped.tobytes())
    about = (folder / "about.json").read_text()
    (folder / "about.json").write_text(about.replace(found.digest, digest(swapped, shapes)))
    with pytest.raises(DataDamagedError, match=r"holds another image than .*\.jpg; somebody exchanged"):
        decoded("birds", pictures, Form("square", 16), scratch())
    (folder / "pixels").rename(tmp_path / "pixels")
    (folder / "pixels").symlink_to(tmp_path / "pixels")
    with pytest.raises(UnsafeFolderError, match="is a link"):
        decoded("birds", pictures, Form("square", 16), scratch())


RECIPE: Final = """\
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
CACHES: Final = {"TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "PYTORCH_KERNEL_CACHE_PATH",
                 "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR"}  # fmt: skip


def fresh(tmp: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """What Python prints in a fresh process, whose environment names no cache."""
    chosen = {name: value for name, value in os.environ.items() if name not in CACHES}
    return subprocess.run(
        [sys.executable, *arguments], env=chosen | {"TMPDIR": str(tmp)}, capture_output=True, text=True, check=False
    )


@pytest.mark.soak
def test_nothing_compiled_lies_where_another_account_could_have_put_it(tmp_path: Path) -> None:
    shared = tmp_path / "tmp"
    guessed = [shared / f"torchinductor_{getpass.getuser()}", shared / getpass.getuser()]
    for folder in guessed:
        folder.mkdir(parents=True)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    done = fresh(shared, "-m", "workers", "train", str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert [list(folder.iterdir()) for folder in guessed] == [[], []]
    caches = shared / f"metricsweep-scratch-{os.getuid()}" / "code"
    assert list((caches / "inductor").iterdir()), "it compiled"
    assert {folder.stat().st_mode & 0o777 for folder in (caches, *caches.iterdir())} == {0o700}


def test_caches_of_compiled_code_are_claimed_before_torch_is_imported(tmp_path: Path) -> None:
    missed = []
    for program in (
        "from orchestrator.run.attempt import resolve; resolve('os:getcwd')",
        "from orchestrator.run.attempt import Workplace; from orchestrator.run.attempt import inspect; "
        "from pathlib import Path; inspect(Workplace('', '', Path(), inspect='builtins:filter'), ())",
        "sys.modules['torch'] = None; from workers.__main__ import main; main(['train', 'none.yaml'])",
        "sys.modules['torch'] = None; from workers.__main__ import main; main(['evaluate', 'a.pt', '--metric', 'a'])",
    ):
        said = "print(*(os.environ.get(name) for name in " + repr(sorted(CACHES)) + "), sys.modules.get('torch'))"
        done = fresh(
            tmp_path, "-c", f"import os, sys\ntry:\n    {program}\nexcept (TypeError, ImportError): pass\n{said}"
        )
        *folders, torch_ = done.stdout.split()
        if torch_ != "None" or not all(one.startswith(f"{tmp_path}/metricsweep-scratch-") for one in folders):
            missed.append((program, done.stdout, done.stderr))
        elif {Path(one).stat().st_mode & 0o777 for one in folders} != {0o700}:
            missed.append((program, "is open to others"))
    assert missed == []
