"""Images of a machine, decoded or encoded: built once, shared, never half there, and the same pixels."""

import getpass
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import torch
from PIL import Image

from tests.workers import recipes, trees
from tests.workers.recipes import numbers, run, same, weights
from workers import registry
from workers.contract import DataDamagedError, DataMissingError, Part, Recipe, Stopped
from workers.data import decoded as decoded_module
from workers.data import images
from workers.data.decoded import SETTING, Encoded, decoded, digest, encoded, limit, stored
from workers.data.images import Images
from workers.data.pictures import Form, Picture, key
from workers.data.scratch import UnsafeFolderError, opened, private, scratch


def pictures(root: Path, count: int = 4) -> list[Picture]:
    for number in range(count):
        trees.picture(root / f"{number}.jpg", number * 40, (60 + number, 40))
    return [Picture(root / f"{number}.jpg") for number in range(count)]


def folders(scratch: Path) -> list[Path]:
    return sorted(path for path in (scratch / "decoded").iterdir() if path.is_dir())


def test_equal_to_pil(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, size in (("wide", (61, 40)), ("tall", (40, 99))):
        pixels = rng.integers(0, 256, (size[1], size[0], 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    files = [Picture(tmp_path / "wide.png"), Picture(tmp_path / "tall.png")]
    for resize, sizes in (
        ("shorter", [(24, 16), (16, 39)]),
        ("square", [(16, 16)] * 2),
        ("keep", [(61, 40), (40, 99)]),
    ):
        found = decoded("two", files, Form(resize, 16), tmp_path / "scratch")  # type: ignore[arg-type]
        split = found.split(range(2), torch.tensor([0, 1]))
        for number, (file, size) in enumerate(zip(files, sizes, strict=True)):
            expected = np.asarray(Image.open(file.path).resize(size, Image.Resampling.BILINEAR))
            if resize == "keep":
                expected = np.asarray(Image.open(file.path))
            taken = split.take(torch.tensor([number]))
            assert taken.sizes.tolist() == [[size[1], size[0]]]
            assert np.array_equal(taken.images[0].permute(1, 2, 0).numpy(), expected)


def test_what_was_damaged_is_decoded_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = pictures(tmp_path)
    first = decoded("four", files, Form("shorter", 16), tmp_path)
    (folder,) = folders(tmp_path)
    for name in ("pixels", "shapes.npy", "about.json"):
        content = bytearray((folder / name).read_bytes())
        content[-20] ^= 1
        (folder / name).write_bytes(content)
        again = decoded("four", files, Form("shorter", 16), tmp_path)
        assert again.digest == first.digest
        (folder / name).write_bytes(content[:-1])
        assert decoded("four", files, Form("shorter", 16), tmp_path).digest == first.digest
    assert "is damaged: decoding anew" in capsys.readouterr().err
    assert folders(tmp_path) == [folder]


def test_nothing_is_left_of_a_failure_or_a_crash(tmp_path: Path) -> None:
    files = pictures(tmp_path)
    good = files[2].path.read_bytes()
    files[2].path.write_bytes(good[:-30])
    with pytest.raises(DataDamagedError, match="cut off"):
        decoded("four", files, Form("square", 16), tmp_path)
    assert folders(tmp_path) == []
    files[2].path.write_bytes(good)
    name = f"four-{key(files, Form('square', 16), tmp_path)[:16]}"
    (tmp_path / "decoded" / f".{name}").mkdir()  # as a process that was killed leaves it
    (tmp_path / "decoded" / f".{name}" / "pixels").write_bytes(b"half")
    decoded("four", files, Form("square", 16), tmp_path)
    assert [path.name for path in folders(tmp_path)] == [name]


def test_what_is_decoded_is_known_by_content_whatever_the_times_of_files_say(tmp_path: Path) -> None:
    files = pictures(tmp_path)
    before = decoded("four", files, Form("square", 16), tmp_path).digest
    path, status = files[2].path, files[2].path.stat()
    with Image.open(path) as image:
        painted = Image.new(image.mode, image.size)
    aside = path.with_suffix(".new.png")
    painted.save(aside)
    aside.write_bytes(aside.read_bytes().ljust(status.st_size, b"\0"))
    os.utime(aside, ns=(status.st_atime_ns, status.st_mtime_ns))
    aside.replace(path)
    assert decoded("four", files, Form("square", 16), tmp_path).digest != before


def opening(root: Path, count: int, answers: "multiprocessing.Queue[tuple[str, int]]") -> None:
    """Say the digest of the decoded images, and how many times this process decoded them."""
    written: list[Path] = []
    write = decoded_module._write

    def counted(folder: Path, files: Sequence[Picture], form: Form) -> None:
        written.append(folder)
        write(folder, files, form)

    decoded_module._write = counted
    files = [Picture(root / f"{number}.jpg") for number in range(count)]
    answers.put((decoded("many", files, Form("shorter", 16), root).digest, len(written)))


def test_processes_at_once_decode_once(tmp_path: Path) -> None:
    pictures(tmp_path, 40)
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[tuple[str, int]] = context.Queue()
    for times, expected in ((3, 1), (1, 0)):  # a later process decodes nothing
        processes = [context.Process(target=opening, args=(tmp_path, 40, answers)) for _ in range(times)]
        for process in processes:
            process.start()
        found = [answers.get(timeout=120) for _ in processes]
        for process in processes:
            process.join()
        assert len({digest for digest, _ in found}) == 1
        assert sum(count for _, count in found) == expected


def test_a_change_of_pixels_in_memory_does_not_reach_the_folder(tmp_path: Path) -> None:
    files = pictures(tmp_path)
    first = decoded("four", files, Form("square", 16), tmp_path)
    first.pixels.add_(1)
    assert not torch.equal(decoded("four", files, Form("square", 16), tmp_path).pixels, first.pixels)


@pytest.fixture
def undecoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "0")
    images._kept.clear()


def photographs(root: Path, classes: int = 4, each: int = 4) -> Path:
    """`root/mine`: photographs of noise, of unequal sizes; some are no JPEG, grey, or of four colours."""
    noise = torch.Generator().manual_seed(0)
    for number in range(classes * each):
        height, width = 20 + number % 5, 34 - number % 7
        pixels = torch.randint(256, (height, width, 3), generator=noise, dtype=torch.uint8).numpy()
        path = root / "mine" / f"class {number // each}" / f"{number}.{'png' if number % 5 == 4 else 'jpg'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = {1: "L", 2: "CMYK"}.get(number % 6, "RGB") if path.suffix == ".jpg" else "RGB"
        Image.fromarray(pixels).convert(mode).save(path)
    return root / "mine"


def photographed(folder: Path) -> list[Picture]:
    return [Picture(path) for path in sorted(folder.glob("*/*"))]


def folder(root: Path, **options: Any) -> Any:
    part = Part(name="image_folder", folder="mine", side=16, **options)
    return registry.build("dataset", part, root=root, scratch=root / "scratch")


def taken(split: Images, indices: torch.Tensor) -> torch.Tensor:
    """What is taken by threads, which is what is taken without."""
    with ThreadPoolExecutor(2) as threads:
        by_threads = split.begin(indices, threads)()
    batch = split.take(indices)
    assert torch.equal(batch.images, by_threads.images)
    assert torch.equal(batch.sizes, by_threads.sizes)
    return batch.images


@pytest.mark.parametrize("form", [Form("shorter", 16), Form("square", 16), Form("keep"), Form("shorter", 16, "L")])
def test_the_pixels_are_those_of_the_decoded_map(form: Form, tmp_path: Path) -> None:
    files = photographed(photographs(tmp_path))
    first, second = (one("mine", files, form, tmp_path) for one in (decoded, encoded))
    assert isinstance(second, Encoded)
    assert first.digest == second.digest
    whole, part = range(len(files)), range(3, 11)
    for rows in (whole, part):
        labels = torch.arange(len(rows)) // 2
        one, other = first.split(rows, labels), second.split(rows, labels)
        assert (one.side, one.channels, one.counts) == (other.side, other.channels, other.counts)
        for indices in (torch.arange(len(rows)), torch.tensor([5, 0, 5])):
            assert torch.equal(one.take(indices).images, taken(other, indices))
        wanted = torch.arange(one.classes) % 2 == 0
        some = torch.arange(int((wanted[labels]).sum()))
        assert torch.equal(one.of_classes(wanted).take(some).images, taken(other.of_classes(wanted), some))


def test_a_hash_over_many_chunks_is_that_of_the_decoded_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = photographed(photographs(tmp_path))
    for chunk in (100, 768, 1536, 10**6):  # within an image, at its end, of two images, of all
        monkeypatch.setattr("workers.data.decoded.HASHED", chunk)
        scratch = tmp_path / str(chunk)
        form = Form("square", 16)
        assert decoded("mine", files, form, scratch).digest == encoded("mine", files, form, scratch).digest


def test_the_setting_says_from_which_size_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = photographed(photographs(tmp_path))
    needed = len(files) * 3 * 16 * 16
    for gigabytes, kind in (("", "Decoded"), (f"{needed / 1e9}", "Decoded"), (f"{(needed - 1) / 1e9}", "Encoded")):
        monkeypatch.setenv(SETTING, gigabytes)
        assert type(stored("mine", files, Form("square", 16), tmp_path)).__name__ == kind
    for wrong in ("much", "-1", "nan"):
        monkeypatch.setenv(SETTING, wrong)
        with pytest.raises(ValueError, match=f"{SETTING}: expected a number of gigabytes from 0 on, found '{wrong}'"):
            limit()


@pytest.mark.usefixtures("undecoded")
def test_nothing_is_decoded_to_disk_and_all_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photographs(tmp_path)
    found = folder(tmp_path)
    assert found.train.undecoded is not None
    kept = [path for path in (tmp_path / "scratch/encoded").rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert {path.name for path in kept} == {"about.json", "shapes.npy"}
    assert (tmp_path / "scratch/encoded").stat().st_mode & 0o077 == 0, "closed to other accounts"
    for path in kept:  # what is damaged there is found anew
        path.write_bytes(path.read_bytes()[:-3])
        assert folder(tmp_path).content == found.content
    monkeypatch.setattr("workers.data.decoded._write_encoded", None)
    assert folder(tmp_path).content == found.content
    monkeypatch.setenv(SETTING, "1")
    assert folder(tmp_path).content == found.content  # decoded, which is another form of the same images
    assert folder(tmp_path).train.undecoded is None


@pytest.mark.usefixtures("undecoded")
def test_damaged_images_are_reported_before_the_first_step(tmp_path: Path) -> None:
    files = sorted(path for path in photographs(tmp_path).rglob("*.*"))
    files[2].write_bytes(files[2].read_bytes()[:-200])
    files[5].write_bytes(b"no image")
    with pytest.raises(DataDamagedError, match=f"{files[5]} cannot be read"):
        folder(tmp_path)
    files[5].write_bytes(files[0].read_bytes())
    with pytest.raises(DataDamagedError, match=f"{files[2]} cannot be read: it is cut off or no image; fetch"):
        folder(tmp_path)
    assert not [
        path for path in (tmp_path / "scratch" / "encoded").rglob("*") if path.is_file() and path.suffix != ".lock"
    ]
    files[2].unlink()
    found = folder(tmp_path)
    files[0].write_bytes(b"exchanged while it trains")
    with pytest.raises(DataDamagedError, match=f"{files[0]} cannot be read"):
        found.train.take(torch.tensor([1, 0]))
    with pytest.raises(DataMissingError, match="is missing"):
        encoded("mine", [Picture(files[2])], Form("keep"), tmp_path)


def test_damaged_images_are_skipped_the_same_way_decoded_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(photographs(tmp_path).rglob("*.*"))
    whole = folder(tmp_path, on_error="skip")
    assert whole.content == folder(tmp_path).content
    files[2].write_bytes(files[2].read_bytes()[:-200])
    files[9].write_bytes(b"no image")
    found = folder(tmp_path, on_error="skip")
    assert (found.train.skipped, found.test.skipped) == ((str(files[2]),), (str(files[9]),))
    assert (len(found.train), len(found.test)) == (7, 7)
    files[2].write_bytes(b"no image")
    assert folder(tmp_path, on_error="skip").notes == ()  # of two equal files that are left out
    monkeypatch.setenv(SETTING, "0")
    shutil.rmtree(tmp_path / "scratch")
    kept = folder(tmp_path, on_error="skip")
    assert kept.train.undecoded is not None
    assert (kept.content, kept.train.skipped) == (found.content, found.train.skipped)
    files[0].chmod(0)
    if os.getuid():  # root may read it
        with pytest.raises(PermissionError):
            folder(tmp_path, on_error="skip")
    for path in files[:8]:
        path.chmod(0o600)
        path.write_bytes(b"no image")
    with pytest.raises(DataDamagedError, match="no image of a split can be decoded"):
        folder(tmp_path, on_error="skip")


def recipe(**changes: Any) -> Recipe:
    dataset = {"name": "image_folder", "folder": "mine", "side": 16, "train_classes": 3}
    sampler = {"name": "balanced", "classes": 2, "per_class": 2}
    validation = {"name": "none"}
    select = {"split": "test"}
    return recipes.recipe(
        dataset=dataset, sampler=sampler, validation=validation, select=select, augment="crop_flip", **changes
    )


def test_a_training_is_the_same_and_goes_on_either_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    what = recipe()
    found = {}
    for gigabytes in ("1", "0"):
        monkeypatch.setenv(SETTING, gigabytes)
        images._kept.clear()
        photographs(tmp_path / gigabytes / "data", classes=5)
        found[gigabytes], _ = run(what, tmp_path / gigabytes)
    assert numbers(found["0"]) == numbers(found["1"])
    assert found["0"].provenance["manifest"] == found["1"].provenance["manifest"]
    whole = weights(tmp_path / "0" / "best.safetensors")
    assert same(whole, weights(tmp_path / "1" / "best.safetensors"))
    for begun, ended in (("0", "1"), ("1", "0")):  # on a machine with another setting too
        monkeypatch.setenv(SETTING, begun)
        images._kept.clear()
        place = tmp_path / f"{begun} to {ended}"
        place.mkdir()
        (place / "data").symlink_to(tmp_path / "0" / "data")
        asked = iter(range(100))
        with pytest.raises(Stopped):
            run(what, place, stop=lambda asked=asked: next(asked) >= 7)  # type: ignore[misc]
        monkeypatch.setenv(SETTING, ended)
        images._kept.clear()
        result, _ = run(what, place, resume=place / "last.pt")
        assert numbers(result) == numbers(found["0"])
        assert same(weights(place / "best.safetensors"), whole)


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
    with pytest.raises(UnsafeFolderError, match="is not a folder"):
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


def test_decoded_images_that_were_exchanged_are_noticed(tmp_path: Path) -> None:
    """Even where their hash fits; and the comparison draws from no generator of a training."""
    files = pictures(tmp_path, 6)
    found = decoded("birds", files, Form("square", 16), scratch())
    (folder,) = folders(scratch())
    torch.manual_seed(0)
    before, shapes = torch.get_rng_state(), found.shapes.numpy()
    assert torch.equal(decoded("birds", files, Form("square", 16), scratch()).pixels, found.pixels)
    assert torch.equal(torch.get_rng_state(), before)
    swapped = np.random.default_rng(0).integers(0, 256, len(found.pixels), np.uint8)
    (folder / "pixels").write_bytes(swapped.tobytes())
    about = (folder / "about.json").read_text()
    (folder / "about.json").write_text(about.replace(found.digest, digest(swapped, shapes)))
    with pytest.raises(DataDamagedError, match=r"holds another image than .*\.jpg; somebody exchanged"):
        decoded("birds", files, Form("square", 16), scratch())
    (folder / "pixels").rename(tmp_path / "pixels")
    (folder / "pixels").symlink_to(tmp_path / "pixels")
    with pytest.raises(UnsafeFolderError, match="is a link"):
        decoded("birds", files, Form("square", 16), scratch())


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
        printing = "print(*(os.environ.get(name) for name in " + repr(sorted(CACHES)) + "), sys.modules.get('torch'))"
        done = fresh(
            tmp_path, "-c", f"import os, sys\ntry:\n    {program}\nexcept (TypeError, ImportError): pass\n{printing}"
        )
        *folders, torch_ = done.stdout.split()
        if torch_ != "None" or not all(one.startswith(f"{tmp_path}/metricsweep-scratch-") for one in folders):
            missed.append((program, done.stdout, done.stderr))
        elif {Path(one).stat().st_mode & 0o777 for one in folders} != {0o700}:
            missed.append((program, "is open to others"))
    assert missed == []
