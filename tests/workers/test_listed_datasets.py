"""Data as people have them: CSV files that list images, and the data sets of torchvision."""

import csv
import gzip
import io
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from torchvision import datasets as theirs

from tests.workers import trees
from workers.catalog import Finding, Need, load, need_of, problems
from workers.contract import DataDamagedError, DataMissingError, DataOptionError, Part, Place, Progress, Recipe, Result
from workers.data import images
from workers.data.inspection import inspect
from workers.model import load as load_model
from workers.registry import build
from workers.train import train

CATALOG = load()
CLASSES = {"wren": 3, "robin": 2, "owl": 4, "kite": 2}


def birds(root: Path) -> list[list[str]]:
    """Images of four classes in a folder, and the rows that list them: wren and robin train."""
    rows = []
    for shade, (name, count) in enumerate(CLASSES.items(), 1):
        for number in range(count):
            trees.picture(root / "birds" / name / f"{number}.jpg", shade * 20 + number)
            rows.append([f"{name}/{number}.jpg", name, "train" if name in {"wren", "robin"} else "test"])
    return rows


def table(rows: Sequence[Sequence[str]], header: Sequence[str] = ("path", "label", "split"), **options: Any) -> str:
    text = io.StringIO()
    csv.writer(text, **options).writerows([header, *rows])
    return text.getvalue()


def listed(root: Path, content: str | bytes, **options: Any) -> Any:
    """The data set of a CSV with this content."""
    (root / "birds").mkdir(exist_ok=True)
    (root / "birds/list.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    part = Part(name="csv", file="birds/list.csv", **{"side": 8, **options})
    return build("dataset", part, root=root, scratch=root / "scratch")


def summary(dataset: Any) -> list[tuple[tuple[str, ...], list[int]]]:
    """The names of the classes and the labels of each split."""
    return [(half.names, half.labels.tolist()) for half in (dataset.train, dataset.test)]


BIRDS = [(("robin", "wren"), [0, 0, 1, 1, 1]), (("kite", "owl"), [0, 0, 1, 1, 1, 1])]


def test_a_csv_is_read_as_people_write_it(tmp_path: Path) -> None:
    rows = birds(tmp_path)
    plain = listed(tmp_path, table(rows))
    assert summary(plain) == BIRDS
    assert plain.train.images[0].float().mean() < plain.test.images[0].float().mean()
    mixed = [[name, label, split.title()] for name, label, split in rows]
    shuffled = [[row[2], "x", row[0], row[1]] for row in rows]
    validated = [*rows, ["none.jpg", "ghost", "val"]]
    for what, content, options in (
        ("a byte order mark", "\ufeff" + table(rows), {}),
        ("UTF-16", table(rows).encode("utf-16"), {}),
        ("semicolons", table(rows, delimiter=";"), {}),
        ("tabs and quotes", table(rows, delimiter="\t", quoting=csv.QUOTE_ALL), {}),
        ("Unix lines, blank lines and blanks", table(rows).replace("\r\n", " \n\n").replace(",", " , "), {}),
        ("capitals", table(mixed), {}),
        ("other columns", table(shuffled, ("set", "age", "file", "species")),
         {"path": "file", "label": "species", "split": "set"}),
        ("other values", table(rows), {"train": ["TRAIN"], "test": ["test"], "unused": ["val"]}),
        ("a split that is not used", table(validated), {"unused": ["val"]}),
        ("paths relative to another folder", table([[f"birds/{row[0]}", *row[1:]] for row in rows]), {"folder": "."}),
    ):  # fmt: skip
        found = listed(tmp_path, content, **options)
        assert (summary(found), found.content) == (BIRDS, plain.content), what
    halves = listed(tmp_path, table([row[:2] for row in rows], ("path", "label")), split=None)
    assert [names for names, _ in summary(halves)] == [("kite", "owl"), ("robin", "wren")]
    same = [[name, label, "train" if name.endswith("0.jpg") else "test"] for name, label, _ in rows]
    assert [names for names, _ in summary(listed(tmp_path, table(same), disjoint=False))] == 2 * [
        tuple(sorted(CLASSES))
    ]


def test_everything_that_is_wrong_with_a_csv_is_in_one_message_with_its_lines(tmp_path: Path) -> None:
    rows = birds(tmp_path)
    wrong = [
        ["lost.jpg", "wren", "train"], ["/etc/passwd", "wren", "train"], ["../x.jpg", "wren", "train"],
        ["wren/./0.jpg", "wren", "train"], ["owl/0.jpg", "", "test"], ["", "owl", "test"], ["owl/1.jpg", "owl", "tets"],
        ["owl/2.jpg", "wren", "test"], ["owl/3.jpg", "owl"], ["owl/3.jpg", "two\nlines", "test"],
        ["gone.jpg", "owl", ""],
    ]  # fmt: skip
    with pytest.raises(DataDamagedError) as caught:
        listed(tmp_path, table([*rows[:5], *wrong]))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/birds/list.csv: 11 problems: line 7: lost.jpg is missing; line 8: ")
    assert message.endswith(f"; paths are relative to {tmp_path}/birds")
    for expected in (
        "line 8: /etc/passwd is not a path below birds", "line 9: ../x.jpg is not a path below birds",
        "line 10: wren/./0.jpg is in line 2 too", "line 11: no label", "line 12: no path",
        "line 13: split 'tets' (in 1 line); expected train: 'train', test: 'test'",
        "line 14: class 'wren' is in test, and in train in line 2 (see `disjoint`)",
        "line 15: 2 values, expected 3", "line 18: no split", "line 18: gone.jpg is missing",
    ):  # fmt: skip
        assert expected in message, expected
    with pytest.raises(DataMissingError, match=r"25 problems: line 2: .*line 21: 19\.jpg is missing; and 5 more"):
        listed(tmp_path, table([[f"{number}.jpg", "owl", "train"] for number in range(25)]))


def test_a_csv_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    rows = birds(tmp_path)
    for content, options, message in (
        (table(rows, ("file", "label", "split")), {},
         "line 1: no column 'path': set `path`; the columns are 'file', 'label', 'split'"),
        (table(rows, ("paths", "Label", "label")), {"split": "label"},
         "line 1: no column 'path' (did you mean 'paths'?): set `path`; the columns are"),
        (table(rows, ("path", "label", "label")), {"split": None}, "line 1: 2 columns 'label': set `label`"),
        ("", {}, "no column 'split': set `split`; the columns are none"),
        (table(rows).encode() + b"caf\xe9/0.jpg,owl,test\n", {}, "save it as UTF-8 (line 13 is not UTF-8, at byte"),
        (table(rows) + 'owl/0.jpg,"owl,test\n', {}, "line 13: unexpected end of data"),
        (table(rows[:5]), {}, "no line is in test"),
        (table([]), {"split": None}, "no line is in train or test"),
    ):  # fmt: skip
        with pytest.raises(DataDamagedError) as caught:
            listed(tmp_path, content, **options)
        assert message in str(caught.value), message
    with pytest.raises(DataOptionError, match="name a split twice"):
        listed(tmp_path, table(rows), train=["all"], test=["All"])
    (tmp_path / "birds/list.csv").unlink()
    part = Part(name="csv", file="birds/list.csv")
    with pytest.raises(DataMissingError, match=r"birds/list\.csv is missing: looked in .*METRICSWEEP_DATA"):
        build("dataset", part, root=tmp_path, scratch=tmp_path / "scratch")


def test_damaged_images_of_a_csv_are_left_out_on_request(tmp_path: Path) -> None:
    rows = birds(tmp_path)
    (tmp_path / "birds/owl/0.jpg").write_bytes(b"no image")
    with pytest.raises(DataDamagedError, match=r"owl/0\.jpg cannot be read"):
        listed(tmp_path, table(rows))
    found = listed(tmp_path, table(rows), on_error="skip")
    assert (found.test.skipped, len(found.test)) == ((f"{tmp_path}/birds/owl/0.jpg",), 5)


def looked(part: Part, root: Path) -> Finding:
    need = need_of(part, Part(name="mlp"), CATALOG)
    assert need == Need(dataset=need.dataset if need else None)
    (found,) = inspect([need] if need else [], root, root / "scratch")
    return found


def test_an_edited_csv_has_another_content_and_counts_are_known_before_a_training(tmp_path: Path) -> None:
    rows = birds(tmp_path)
    part = Part(name="csv", file="birds/list.csv", side=8)
    (tmp_path / "birds/list.csv").write_text(table(rows))
    found = looked(part, tmp_path)
    assert found.counts == {"train": {"classes": 2, "images": 5}, "test": {"classes": 2, "images": 6}}
    assert looked(part, tmp_path).content == found.content
    (tmp_path / "birds/list.csv").write_text(table(rows[:-1]))
    edited = looked(part, tmp_path)
    trees.picture(tmp_path / "birds/owl/0.jpg", 200)
    contents = [found.content["data"], edited.content["data"], looked(part, tmp_path).content["data"]]
    assert len({*contents}) == 3
    (tmp_path / "birds/owl/0.jpg").unlink()
    assert (looked(part, tmp_path).state, "line 7" in looked(part, tmp_path).message) == ("missing", True)


def trained(dataset: Mapping[str, Any], root: Path, **changes: Any) -> tuple[Result, str]:
    """A training of some iterations, and its log."""
    recipe = Recipe.model_validate({
        "dataset": dataset, "backbone": {"name": "small_cnn", "width": 4}, "embedding": 4, "loss": "triplet",
        "sampler": {"name": "balanced", "classes": 2, "per_class": 2}, "iterations": 2, "select": {"split": "last"},
        **changes,
    })  # fmt: skip
    assert problems(recipe.model_dump(mode="json", exclude={"pins"}), CATALOG) == []
    log: list[Progress] = []
    result = train(recipe, Place(root, root / "scratch", root / "out"), log.append)
    return result, "".join(one.log for one in log)


def test_a_csv_trains(tmp_path: Path) -> None:
    (tmp_path / "birds").mkdir()
    (tmp_path / "birds/list.csv").write_text(table(birds(tmp_path)))
    result, log = trained({"name": "csv", "file": "birds/list.csv", "side": 8}, tmp_path)
    assert result.outcome == "ok"
    assert "data: 5 images of 2 classes train, 6 images of 2 classes test" in log


# torchvision

EXCLUDED = {
    "of another kind than (image, class)": (
        "CREStereo", "CarlaStereo", "Cityscapes", "CocoCaptions", "CocoDetection", "ETH3DStereo", "FallingThingsStereo",
        "Flickr30k", "Flickr8k", "FlyingChairs", "FlyingThings3D", "HD1K", "HMDB51", "InStereo2k", "Kinetics", "Kitti",
        "Kitti2012Stereo", "Kitti2015Stereo", "KittiFlow", "LFWPairs", "Middlebury2014Stereo", "MovingMNIST",
        "PhotoTour", "SBDataset", "SBU", "SceneFlowStereo", "Sintel", "SintelStereo", "UCF101", "VOCDetection",
        "VOCSegmentation", "WIDERFace",
    ),
    "a base class, a function, or random noise": (
        "DatasetFolder", "FakeData", "VisionDataset", "wrap_dataset_for_transforms_v2",
    ),
    "image_folder reads it": ("ImageFolder",),
    "imagenet reads it": ("ImageNet",),
    "omniglot reads it; torchvision numbers the characters of both halves from 0": ("Omniglot",),
    "needs a package that is not installed: lmdb, h5py": ("LSUN", "LSUNClass", "PCAM"),
}  # fmt: skip
"""Why each other class of torchvision.datasets cannot be named."""


def torchvision(root: Path, of: str, **options: Any) -> Any:
    part = Part(name="torchvision_dataset", of=of, **options)
    return build("dataset", part, root=root, scratch=root / "scratch")


def names_of() -> list[str]:
    entry = CATALOG.get("dataset", "torchvision_dataset")
    assert entry is not None
    parameter = entry.parameter("of")
    assert parameter is not None
    return [str(choice) for choice in parameter.choices or []]


def test_every_class_of_torchvision_is_known_or_excluded_for_a_reason(tmp_path: Path) -> None:
    excluded = [name for names in EXCLUDED.values() for name in names]
    assert sorted([*names_of(), *excluded]) == sorted(theirs.__all__)
    for of in names_of():
        with pytest.raises(DataMissingError, match="is missing: looked in"):
            torchvision(tmp_path, of)
        assert not [*tmp_path.iterdir()], of
    recipe = {"dataset": {"name": "torchvision_dataset", "of": "Flower102"}, "loss": "triplet", "iterations": 1}
    messages = {one.path: one.message for one in problems(recipe, CATALOG)}
    assert "'Flowers102'" in messages["dataset.of"], messages


def test_every_torchvision_class_is_called_with_its_own_parts(tmp_path: Path) -> None:
    """An empty place for each file that is missing, until the class itself has been called."""
    for of in names_of():
        message, place = "", tmp_path / of
        while not message or message.endswith("missing"):
            try:
                torchvision(place, of)
            except (DataMissingError, DataDamagedError) as error:
                message = str(error)
            if lost := re.match(r"(\S+) is missing: looked in", message):
                path, message = place / lost[1], "missing"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch() if path.suffix in {".bz2", ".data", ".mat", ".txt"} else path.mkdir()
        assert re.search(rf"torchvision\.datasets\.{of}\(|torchvision found 0 images", message), message
        assert not re.search("TypeError|Unknown value|unexpected keyword|Unknown version", message), message


def idx(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    path.write_bytes(head + array.astype(np.uint8).tobytes())


def mnist(root: Path) -> None:
    """Ten classes of two images in each half; the shade of an image is its class and its number."""
    labels = np.arange(10).repeat(2)
    for half, first in (("train", 1), ("t10k", 3)):
        shades = (10 * labels + first + np.arange(20) % 2).astype(np.uint8)
        idx(root / f"MNIST/raw/{half}-images-idx3-ubyte", np.broadcast_to(shades[:, None, None], (20, 28, 28)))
        idx(root / f"MNIST/raw/{half}-labels-idx1-ubyte", labels)


def ppm(path: Path, shade: int, size: tuple[int, int] = (20, 16)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade,) * 3).save(path)


def gtsrb(root: Path) -> None:
    """Four classes of signs of different sizes."""
    for label in range(4):
        for number in range(3):
            ppm(root / f"gtsrb/GTSRB/Training/{label:05}/{number}.ppm", 10 * label + number, (20 + number, 16))
    lines = ["Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"]
    for number in range(8):
        ppm(root / f"gtsrb/GTSRB/Final_Test/Images/{number:05}.ppm", 10 * (number % 4) + 5 + number // 4)
        lines.append(f"{number:05}.ppm;20;16;0;0;20;16;{number % 4}")
    (root / "gtsrb/GT-final_test.csv").write_text("\n".join(lines) + "\n")


def caltech(root: Path) -> None:
    """Four classes in files, which torchvision opens without decoding; its images vary in size."""
    for label, (name, count) in enumerate({"ant": 2, "bass": 3, "cup": 2, "BACKGROUND_Google": 1, "dollar": 2}.items()):
        for number in range(count):
            path = root / f"caltech101/101_ObjectCategories/{name}/image_{number + 1:04}.jpg"
            trees.picture(path, 30 * label + number, (40 + number, 30))


def eurosat(root: Path) -> None:
    """Four classes in files, whose paths torchvision gives to a loader."""
    trees.class_folders(root / "eurosat/2750", {"Forest": 2, "Highway": 3, "Pasture": 2, "River": 2})


def means(half: images.Images) -> list[list[int]]:
    """The mean of the first channel of each image, by class."""
    found = [half.take(half.labels.new_tensor([number])).images[0, 0].float().mean() for number in range(len(half))]
    return [
        [round(float(mean)) for mean, label in zip(found, half.labels.tolist(), strict=True) if label == number]
        for number in range(half.classes)
    ]


def test_data_sets_of_torchvision_are_read_by_its_classes(tmp_path: Path) -> None:
    for write in (mnist, gtsrb, caltech, eurosat):
        write(tmp_path)
    digits = torchvision(tmp_path, "MNIST")
    assert means(digits.train) == [[10 * label + shade for shade in (1, 2, 3, 4)] for label in range(5)]
    assert means(digits.test) == [[10 * label + shade for shade in (1, 2, 3, 4)] for label in range(5, 10)]
    assert digits.train.names == ("0 - zero", "1 - one", "2 - two", "3 - three", "4 - four")
    assert (digits.train.images.shape, images.faults(digits)) == ((20, 1, 28, 28), [])
    official = torchvision(tmp_path, "MNIST", split="official", side=14)
    assert means(official.train) == [[10 * label + 1, 10 * label + 2] for label in range(10)]
    assert means(official.test) == [[10 * label + 3, 10 * label + 4] for label in range(10)]
    assert official.test.images.shape == (20, 1, 14, 14)
    three = torchvision(tmp_path, "MNIST", train_classes=3)
    assert (three.train.classes, three.test.classes) == (3, 7)

    signs = torchvision(tmp_path, "GTSRB")
    assert means(signs.train) == [[0, 1, 2, 5, 6], [10, 11, 12, 15, 16]]
    assert (signs.train.side, signs.train.channels, signs.train.names) == (48, 3, ("0", "1"))
    assert torchvision(tmp_path, "GTSRB", resize="square", side=8).train.images.shape == (10, 3, 8, 8)
    assert len({dataset.content for dataset in (digits, official, three, signs)}) == 4

    objects = torchvision(tmp_path, "Caltech101", side=16)
    assert (objects.train.names, objects.test.names) == (("ant", "bass"), ("cup", "dollar"))
    assert [len(half) for half in means(objects.train)] == [2, 3]
    with Image.open(tmp_path / "caltech101/101_ObjectCategories/ant/image_0001.jpg") as image:
        assert means(objects.train)[0][0] == image.getpixel((0, 0))[0]  # type: ignore[index]
    land = torchvision(tmp_path, "EuroSAT")
    assert (land.train.images.shape, land.train.names) == ((5, 3, 30, 40), ("Forest", "Highway"))
    (tmp_path / "eurosat/2750/River/0.jpg").write_bytes(b"no image")
    with pytest.raises(DataDamagedError, match=r"River/0\.jpg cannot be read"):
        torchvision(tmp_path, "EuroSAT")
    assert len(torchvision(tmp_path, "EuroSAT", on_error="skip").test) == 3

    for options, message in (
        ({"of": "EuroSAT", "split": "official"}, "EuroSAT has no official halves; write `split: classes`"),
        ({"of": "MNIST", "train_classes": 10}, "train_classes: expected 1 to 9, found 10"),
        ({"of": "MNIST", "folder": "../x"}, "expected a path below the data root"),
    ):
        with pytest.raises(DataOptionError, match=message):
            torchvision(tmp_path, **options)


def test_missing_and_damaged_files_of_torchvision_are_named(tmp_path: Path) -> None:
    gtsrb(tmp_path)
    shutil.rmtree(tmp_path / "gtsrb/GTSRB/Final_Test")
    with pytest.raises(DataMissingError, match=r"datasets\.GTSRB\('.*', split='test'\): Dataset not found"):
        torchvision(tmp_path, "GTSRB")
    (tmp_path / "semeion.data").write_text("no digits")
    with pytest.raises(DataMissingError, match=r"SEMEION\(.*\): Dataset not found or corrupted"):
        torchvision(tmp_path, "SEMEION")
    mnist(tmp_path)
    path = tmp_path / "MNIST/raw/t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DataDamagedError, match=r"MNIST\(.*, train=False\) cannot be read \(.*fetch it again"):
        torchvision(tmp_path, "MNIST")
    found = looked(Part(name="torchvision_dataset", of="Food101"), tmp_path)
    assert (found.state, "download=True" in found.message) == ("missing", True)


def test_files_of_torchvision_are_hashed_without_the_archives(tmp_path: Path) -> None:
    mnist(tmp_path / "mine")
    part = Part(name="torchvision_dataset", of="MNIST", folder="mine")
    found = looked(part, tmp_path)
    assert found.counts == {"train": {"classes": 5, "images": 20}, "test": {"classes": 5, "images": 20}}
    raw = tmp_path / "mine/MNIST/raw"
    (raw / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress((raw / "train-labels-idx1-ubyte").read_bytes()))
    assert looked(part, tmp_path).content == found.content
    idx(raw / "train-labels-idx1-ubyte", np.arange(10).repeat(2)[::-1])
    assert looked(part, tmp_path).content != found.content


def test_data_sets_of_torchvision_train(tmp_path: Path) -> None:
    for write in (mnist, gtsrb, caltech):
        write(tmp_path)
    for of, options in (("MNIST", {}), ("GTSRB", {"side": 16}), ("Caltech101", {"side": 16, "resize": "square"})):
        result, log = trained({"name": "torchvision_dataset", "of": of, **options}, tmp_path)
        assert (result.outcome, "classes train" in log) == ("ok", True), of
        content = torchvision(tmp_path, of, **options).content
        assert result.provenance["manifest"] == content, of
        model = load_model(tmp_path / "out/final.safetensors", "cpu", data=tmp_path)
        sign = Image.new("RGB", (40, 30), (20, 20, 20))
        assert model.embed([sign, sign.convert("L")]).shape == (2, 4), of
