"""Folders of class folders: what is read, and what is passed over with a word."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, features

from tests.workers import trees
from tests.workers.test_workers_main import own_scratch as own_scratch  # noqa: PLC0414 - a fixture
from workers.__main__ import main
from workers.catalog import Need
from workers.contract import DataMissingError, Part, Place, Progress, Recipe
from workers.data.class_folders import ClassFolders, class_folders, suffixes
from workers.data.inspection import inspect
from workers.train import train


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Four classes of three different images."""
    folder = tmp_path / "data" / "pets"
    for shade, name in enumerate("abcd"):
        for number in range(3):
            trees.picture(folder / name / f"{number}.jpg", 60 * shade + 10 * number)
    return folder


def counts(found: ClassFolders) -> dict[str, int]:
    return {name: len(images) for name, images in found.classes.items()}


VERIFY = ["data", "verify", "image_folder", "--set", "folder=pets", "--set", "side=8", "--data"]
WHOLE = {"a": 3, "b": 3, "c": 3, "d": 3}


def test_whatever_pillow_reads_here_is_an_image(pets: Path) -> None:
    image = Image.open(pets / "c/0.jpg")
    for number, suffix in enumerate((".jfif", ".JPE", ".avif" if features.check("avif") else ".webp")):
        image.save(pets / f"c/{number}{suffix}", "JPEG" if number < 2 else None)
        (pets / f"c/{number}.jpg").unlink()
    assert class_folders(pets) == (class_folders(pets).classes, ())
    assert counts(class_folders(pets)) == WHOLE
    assert {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".webp", ".tif", ".gif", ".pgm"} <= suffixes()


def leave(path: Path) -> None:
    """An image that is none of a class."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path, "JPEG")


@pytest.mark.parametrize(
    ("left", "note"),
    [
        (["a/@eaDir/0.jpg/THUMB_M.jpg", "b/@eaDir/x.jpg"], "2 entries of a NAS or an operating system: a/@eaDir, b"),
        (["__MACOSX/a/._0.jpg", "a/Thumbs.db"], "2 entries of a NAS or an operating system: __MACOSX, a/Thumbs.db"),
        (["a/.AppleDouble/0.jpg", "a/._0", ".thumbnails/0.jpg"], "3 hidden files or folders: .thumbnails, a/.Apple"),
        (["d/IMG_1.HEIC", "d/2.heic"], "2 images in formats that are not read (.heic 2): d/2.heic, d/IMG_1.HEIC; save"),
        (["a/notes.txt", "b/list"], "2 files that are no images (.txt 1, no suffix 1): a/notes.txt, b/list"),
        (["x.jpg"], "1 image that lies in no class folder: x.jpg"),
    ],
)  # fmt: skip
def test_what_is_passed_over_is_said_with_its_reason(pets: Path, left: list[str], note: str) -> None:
    for name in left:
        leave(pets / name)
    found = class_folders(pets)
    assert counts(found) == WHOLE
    (said,) = found.notes
    assert said.startswith(f"passed over {note}")


def test_a_folder_without_images_is_said_to_be_no_class(pets: Path) -> None:
    (pets / "empty").mkdir()
    leave(pets / "phone/1.heic")
    notes = class_folders(pets).notes
    assert notes[-1] == "2 folders are no classes, since they have no image that is read: empty, phone"


def test_links_to_files_and_to_folders_count(pets: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    (pets / "b").rename(store)
    (pets / "b").symlink_to(store)
    (pets / "c").rename(tmp_path / "inner")
    (pets / "c").mkdir()
    (pets / "c/inner").symlink_to(tmp_path / "inner")
    (pets / "d/0.jpg").rename(tmp_path / "0.jpg")
    (pets / "d/0.jpg").symlink_to(tmp_path / "0.jpg")
    assert (counts(class_folders(pets)), class_folders(pets).notes) == (WHOLE, ())


def test_links_in_circles_end_and_count_nothing_twice(pets: Path) -> None:
    (pets / "a/up").symlink_to(pets)
    (pets / "a/self").symlink_to(pets / "a")
    (pets / "b/root").symlink_to("/")
    (pets / "c/inner").mkdir()
    (pets / "c/0.jpg").rename(pets / "c/inner/0.jpg")
    (pets / "c/other").symlink_to(pets / "c/inner")
    found = class_folders(pets)
    assert counts(found) == WHOLE
    assert found.notes == (
        "passed over 4 folders that were read already or lie above: a/self, a/up, b/root, ...",
    )  # fmt: skip


def test_links_that_lead_nowhere_are_missing_images(pets: Path) -> None:
    for name in ("b/2.jpg", "d/0.jpg", "d/1.jpg", "d/2.jpg"):
        (pets / name).unlink()
        (pets / name).symlink_to(f"/nowhere/{name}")
    with pytest.raises(DataMissingError) as raised:
        class_folders(pets)
    assert f"4 links lead nowhere, the first is {pets}/b/2.jpg (to /nowhere/b/2.jpg)" in str(raised.value)
    assert "of d nothing else is there" in str(raised.value)
    (pets / "d/0.jpg").unlink()
    (pets / "d/0.jpg").symlink_to(pets / "d/0.jpg")
    with pytest.raises(DataMissingError, match="4 links lead nowhere"):
        class_folders(pets)


def test_halves_that_are_taken_for_classes_are_doubted(pets: Path) -> None:
    (pets / "a").rename(pets / "train")
    (pets / "b").rename(pets / "Test")
    (said,) = class_folders(pets).notes
    assert "Test, train are taken for classes" in said
    assert "such as pets/Test" in said


def same(pets: Path) -> None:
    shutil.copy(pets / "a/1.jpg", pets / "d/twin.jpg")


def test_verify_the_node_and_the_training_log_say_it(
    pets: Path, tmp_path: Path, own_scratch: None, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(pets / "a/1.heic")
    same(pets)
    passed = "passed over 1 image in a format that is not read (.heic 1): a/1.heic"
    shared = f"warning: 1 image of the test classes is in the training classes too, such as {pets}/d/twin.jpg"
    assert main([*VERIFY, str(pets.parent)]) == 0
    said = capsys.readouterr().out
    assert [line in said for line in (passed, shared)] == [True, True], said
    part = Part.model_validate({"name": "image_folder", "folder": "pets", "side": 8})
    (found,) = inspect([Need(dataset=part)], pets.parent, tmp_path / "scratch")
    assert (found.state, passed in found.said, shared in found.said) == ("ok", True, True)
    recipe = Recipe.model_validate({
        "dataset": part, "backbone": {"name": "small_cnn", "width": 4}, "embedding": 4, "loss": "triplet",
        "sampler": {"name": "balanced", "classes": 2, "per_class": 2}, "iterations": 1, "select": {"split": "last"},
    })  # fmt: skip
    log: list[Progress] = []
    train(recipe, Place(pets.parent, tmp_path / "scratch", tmp_path / "out"), log.append)
    lines = "".join(one.log for one in log)
    expected = ("data: 6 images of 2 classes train, 7 images of 2 classes test", f"data: {passed}", f"data: {shared}")
    assert [line in lines for line in expected] == [True] * 3, lines


def test_a_pack_says_which_images_are_in_both_splits(tmp_path: Path) -> None:
    image = np.arange(4 * 64, dtype=np.uint8).reshape(4, 8, 8)
    np.savez(tmp_path / "birds.npz", image=image[[0, 1, 2, 0]], label=[0, 0, 1, 1])
    (found,) = inspect([Need(dataset=Part.model_validate({"name": "packed", "file": "birds.npz"}))], tmp_path, tmp_path)
    assert f"such as image 3 of {tmp_path}/birds.npz, which is image 0 of" in found.said


def test_names_that_are_not_utf_8_are_classes_and_can_be_printed(pets: Path, own_scratch: None) -> None:
    old = os.fsencode(pets) + b"/caf\xe9"
    os.rename(pets / "a", old)  # noqa: PTH104 - bytes
    assert "caf\\xe9" in counts(class_folders(pets))
    assert main([*VERIFY, str(pets.parent)]) == 0
