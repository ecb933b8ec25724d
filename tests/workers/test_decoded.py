"""Images of a machine, decoded or encoded: built once, shared, never half there, and the same pixels."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

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
from workers.data.decoded import SETTING, Encoded, decoded, encoded, limit, stored
from workers.data.images import Images
from workers.data.pictures import Form, Picture, key


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


def test_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = pictures(tmp_path)
    first = decoded("four", files, Form("square", 16), tmp_path)

    def fail(*_: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(decoded_module, "_write", fail)
    assert decoded("four", files, Form("square", 16), tmp_path).digest == first.digest
    with pytest.raises(AssertionError, match="decoded again"):
        decoded("four", files, Form("square", 17), tmp_path)
    trees.picture(files[0].path, 200)
    os.utime(files[0].path, (1, 1))
    with pytest.raises(AssertionError, match="decoded again"):
        decoded("four", files, Form("square", 16), tmp_path)


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
    for said, kind in (("", "Decoded"), (f"{needed / 1e9}", "Decoded"), (f"{(needed - 1) / 1e9}", "Encoded")):
        monkeypatch.setenv(SETTING, said)
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
def test_damaged_images_are_told_before_a_step(tmp_path: Path) -> None:
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
    whole = weights(tmp_path / "0" / "best.pt")
    assert same(whole, weights(tmp_path / "1" / "best.pt"))
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
        assert same(weights(place / "best.pt"), whole)
