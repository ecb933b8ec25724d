"""Real data sets in their real layouts, small: images, names of classes, and what is wrong with them."""

import gzip
import pickle
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import torch

from tests.workers import trees
from workers.contract import DataDamagedError, DataMissingError, Part
from workers.data import images
from workers.data.images import Images
from workers.datasets.cifar10 import Cifar10
from workers.datasets.cifar100 import Cifar100
from workers.datasets.fashion_mnist import FashionMnist
from workers.registry import build

TREES: dict[str, Callable[[Path], object]] = {
    "cub200": trees.cub,
    "cars196": partial(trees.cars, layout="original"),
    "sop": trees.sop,
    "inshop": lambda root: trees.inshop(root / "Inshop_Clothes", ".", "."),
}


def load(name: str, root: Path, **options: Any) -> Any:
    """The data set as a part of the official one, with its shorter sides brought to 16 pixels."""
    options = {"official": False, "side": 16, **options}
    return build("dataset", Part(name=name, **options), root=root, scratch=root / "scratch")


def shades(split: Images) -> list[list[int]]:
    """The red of the images of each class, which in these trees is the class's number."""
    found: list[list[int]] = [[] for _ in range(split.classes)]
    for number, label in enumerate(split.labels.tolist()):
        pixels, sizes = split.take(torch.tensor([number]))
        assert pixels.shape[2:] == (*sizes[0].tolist(),)
        found[label].append(round(float(pixels[0, 0].float().mean())))
    return found


def close(found: list[list[int]], expected: list[list[int]]) -> bool:
    """Whether shades are the same but for what JPEG loses."""
    pairs = [(one, other) for one, other in zip(found, expected, strict=True)]
    return all(len(one) == len(other) and np.allclose(one, other, rtol=0, atol=2) for one, other in pairs)


def test_cub(tmp_path: Path) -> None:
    trees.cub(tmp_path)
    cub = load("cub200", tmp_path)
    assert close(shades(cub.train), [[1] * 3, [2] * 2, [100] * 4])
    assert close(shades(cub.test), [[101] * 3, [200] * 2])
    assert cub.train.names == ("Albatross", "Auklet", "Pelican")
    assert cub.test.names == ("Pelican", "Yellowthroat")
    assert (cub.train.side, cub.train.channels) == (16, 3)
    batch, sizes = cub.train.take(torch.tensor([0, 2]))
    assert sizes.tolist() == [[16, 21], [16, 22]]  # 40x30 and 42x30, rounded down
    assert batch.shape == (2, 3, 16, 22)
    assert not batch[0, :, :, 21:].any()  # padded
    grey = cub.train.take(torch.tensor([1])).images[0]
    assert torch.equal(grey[0], grey[1])
    square = load("cub200", tmp_path, resize="square")
    assert (square.train.images.shape, square.train.shapes) == ((9, 3, 16, 16), None)
    path = tmp_path / "CUB_200_2011/image_class_labels.txt"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    with pytest.raises(DataDamagedError, match="image 14 is in one list only"):
        load("cub200", tmp_path)


def test_cars(tmp_path: Path) -> None:
    models = np.array([f"Model {number}" for number in range(1, 197)], dtype=object)
    for layout, file in (("original", "cars_annos.mat"), ("devkit", "devkit/cars_meta.mat"), ("folders", "")):
        path = trees.cars(tmp_path / layout, layout) / file
        cars = load("cars196", tmp_path / layout)
        assert close(shades(cars.train), [[1] * 3, [2] * 2, [98] * 2])
        assert close(shades(cars.test), [[99] * 3, [196] * 2])
        if file:
            assert (cars.train.names, cars.test.names) == (("1", "2", "98"), ("99", "196")), "no file has names"
            held = scipy.io.loadmat(path) if path.exists() else {}
            named = {key: value for key, value in held.items() if key[0] != "_"} | {"class_names": models}
            scipy.io.savemat(path, named)
            cars = load("cars196", tmp_path / layout)
        assert cars.train.names == ("Model 1", "Model 2", "Model 98")
        assert cars.test.names == ("Model 99", "Model 196")
    trees.cars(tmp_path / "zero", "folders", {0: 2, 97: 2, 195: 2})
    with pytest.raises(DataDamagedError, match="numbered 1 to 196, found 0"):
        load("cars196", tmp_path / "zero")
    path = tmp_path / "devkit/cars196/devkit/cars_test_annos_withlabels.mat"
    path.rename(path.with_name("cars_test_annos.mat"))
    with pytest.raises(DataMissingError, match=r"cars_test_annos_withlabels\.mat is missing"):
        load("cars196", tmp_path / "devkit")


def test_sop(tmp_path: Path) -> None:
    trees.sop(tmp_path)
    sop = load("sop", tmp_path)
    assert close(shades(sop.train), [[1] * 2, [2] * 3, [11318 % 250]])
    assert close(shades(sop.test), [[11319 % 250] * 2, [22634 % 250] * 3])
    assert sop.test.names == ("chair 11319", "chair 22634")


def test_inshop(tmp_path: Path) -> None:
    for folder, lists, pictures in (
        ("In-shop Clothes Retrieval Benchmark", "Eval", "Img"), ("inshop", ".", "."), ("Inshop_Clothes", "Eval", "."),
    ):  # fmt: skip
        path = trees.inshop(tmp_path / folder / folder, lists, pictures)
        inshop = load("inshop", tmp_path / folder)
        assert close(shades(inshop.train), [[40, 40], [60]])  # a class of one image stays
        assert close(shades(inshop.test), [[20, 20], [140, 140, 140]])
        assert inshop.test.names == ("id_00000001", "id_00000007")
        assert inshop.train.query is None
        assert inshop.test.query.tolist() == [True, False, True, False, False]
        assert inshop.test.counts == {"classes": 2, "images": 5, "queries": 2}
    second = inshop.test.of_classes(torch.tensor([False, True]))
    assert second.query.tolist() == [True, False, False]
    assert close(shades(second), [[140] * 3])
    assert second.images.untyped_storage().data_ptr() == inshop.test.images.untyped_storage().data_ptr(), "no copy"
    path.write_text(path.read_text().replace("8\n", "9\n", 1))
    with pytest.raises(DataDamagedError, match="declares 9 images, but 8 follow"):
        load("inshop", tmp_path / folder)


@pytest.mark.parametrize("name", TREES)
def test_labels_content_and_counts(name: str, tmp_path: Path) -> None:
    TREES[name](tmp_path)
    scratch = tmp_path / "scratch"
    with pytest.raises(DataDamagedError, match=r"train has \d classes, expected .*; test has \d classes") as caught:
        images.load(Part(name=name), tmp_path, scratch)
    assert "official: false" in str(caught.value)
    assert not scratch.exists(), "refused before anything is decoded"
    dataset = load(name, tmp_path)
    for split in (dataset.train, dataset.test):
        assert split.labels.dtype == torch.int64
        assert split.labels.tolist() == sorted(split.labels.tolist())
        assert set(split.labels.tolist()) == set(range(split.classes))
    assert dataset.content == images.content_hash(dataset) == load(name, tmp_path).content
    assert dataset.content != load(name, tmp_path, side=20).content
    other = Part(name=name, official=False, content="sha256:" + "0" * 64)
    with pytest.raises(DataDamagedError, match=f"the content is sha256:.*, expected {other.options['content']}"):
        images.load(other, tmp_path, scratch)
    first, second, *_ = sorted(path for path in tmp_path.rglob("*") if path.suffix.lower() == ".jpg")
    second.write_bytes(second.read_bytes()[:-50])
    with pytest.raises(DataDamagedError, match=f"{second} cannot be read: it is cut off or no image; fetch"):
        load(name, tmp_path)
    first.unlink()
    with pytest.raises(DataMissingError, match=f"{first} is missing; put"):
        load(name, tmp_path)
    second.unlink()
    with pytest.raises(DataMissingError, match=f"{first} is missing and 1 more .{second}.; put"):
        load(name, tmp_path)


# Omniglot


def omniglot(root: Path) -> Any:
    return build("dataset", Part(name="omniglot"), root=root, scratch=root / "scratch")


def box(strokes: np.ndarray) -> np.ndarray:
    """28x28 bytes of 105x105 strokes: means over windows of 4, 4, 3 and 4 pixels, rounded along rows, then columns."""
    ends = np.cumsum([4, 4, 3, 4] * 7)

    def means(rows: np.ndarray) -> np.ndarray:
        windows = np.split(rows, ends[:-1], axis=1)
        return np.stack([np.floor(window.mean(axis=1) + 0.5) for window in windows], axis=1)

    found: np.ndarray = means(means(strokes * 255.0).T).T
    return found


def test_omniglot_from_the_official_drawings(tmp_path: Path) -> None:
    drawn = trees.omniglot(tmp_path)
    folder = tmp_path / "omniglot-py/images_background/Greek"
    (folder / "character01/._0709_01.png").write_bytes(b"what a Mac leaves")
    (folder / "character01/notes.txt").write_text("no drawing")
    (folder / ".DS_Store").write_bytes(b"another")
    found = omniglot(tmp_path)
    for half, split in (("background", found.train), ("evaluation", found.test)):
        assert split.images.shape == (12, 1, 28, 28)
        assert split.labels.tolist() == [label for label in range(4) for _ in range(3)]
        expected = np.stack([box(drawn[key]) for key in sorted(drawn) if key.startswith(half)])
        assert np.abs(split.images[:, 0].numpy() - expected).max() == 0
    assert found.train.names == (
        "Anglo-Saxon_Futhorc character01", "Anglo-Saxon_Futhorc character02", "Greek character01", "Greek character02",
    )  # fmt: skip
    with pytest.raises(DataDamagedError, match=r"4 classes, expected 964; .*train has 12 images, expected 19"):
        images.load(Part(name="omniglot"), tmp_path, tmp_path / "scratch")
    (tmp_path / "omniglot-py/images_background").rename(tmp_path / "images_background")
    (tmp_path / "omniglot-py/images_evaluation").rename(tmp_path / "images_evaluation")
    assert images.content_hash(omniglot(tmp_path)) == images.content_hash(found)  # the data root may be the folder


def test_omniglot_that_is_damaged_or_half_there(tmp_path: Path) -> None:
    trees.omniglot(tmp_path)
    second = sorted(tmp_path.rglob("*.png"))[1]
    second.write_bytes(second.read_bytes()[:-50])
    with pytest.raises(DataDamagedError, match=f"{second} cannot be read"):
        omniglot(tmp_path)
    half = tmp_path / "omniglot-py/images_evaluation"
    shutil.rmtree(half)
    with pytest.raises(DataMissingError, match=f"{half} is missing"):
        omniglot(tmp_path)
    half.mkdir()
    with pytest.raises(DataDamagedError, match="expected folders ALPHABET/CHARACTER of drawings; found none"):
        omniglot(tmp_path)


# Any folder


def folder(root: Path, **options: Any) -> Any:
    part = Part(name="image_folder", folder="mine", side=16, **options)
    return build("dataset", part, root=root, scratch=root / "scratch")


def test_image_folder(tmp_path: Path) -> None:
    with pytest.raises(DataMissingError, match="the folder mine is missing"):
        folder(tmp_path)
    trees.class_folders(tmp_path / "mine", {"a": 2, "b": 1, "c/inner": 3, "d": 2, "e": 1})
    (tmp_path / "mine/f").mkdir()
    every = folder(tmp_path)
    assert close(shades(every.train), [[20] * 2, [40]])
    assert close(shades(every.test), [[60] * 3, [80] * 2, [100]])
    assert (every.train.names, every.test.names) == (("a", "b"), ("c", "d", "e"))
    assert folder(tmp_path, train_classes=4).test.counts["classes"] == 1
    assert images.faults(every) == []
    with pytest.raises(ValueError, match="train_classes: expected 1 to 4, found 5"):
        folder(tmp_path, train_classes=5)
    for outside in ("/etc", "../mine", ""):
        with pytest.raises(ValueError, match="expected a path below the data root"):
            build("dataset", Part(name="image_folder", folder=outside), root=tmp_path, scratch=tmp_path)


# ImageNet


def test_imagenet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METRICSWEEP_DECODED_GB", "0")
    for half, sizes in (("train", {"n01": 3, "n02": 2}), ("val", {"n01": 1, "n02": 1})):
        trees.class_folders(tmp_path / "ILSVRC2012" / half, sizes)
    for path in (tmp_path / "ILSVRC2012/train/n02").iterdir():
        path.rename(path.with_suffix(".JPEG"))
    found = load("imagenet", tmp_path)
    assert close(shades(found.train), [[20] * 3, [40] * 2])
    assert close(shades(found.test), [[20], [40]])
    assert found.train.names == found.test.names == ("n01", "n02")
    assert found.train.undecoded is not None
    with pytest.raises(DataDamagedError, match=r"train has 2 classes, expected 1,000; .*test has 2 images"):
        images.load(Part(name="imagenet"), tmp_path, tmp_path / "scratch")
    shutil.rmtree(tmp_path / "ILSVRC2012/val/n02")
    with pytest.raises(DataDamagedError, match="val: expected folders of images, one a class; found 1"):
        load("imagenet", tmp_path)


# Fashion-MNIST


def test_fashion_mnist(tmp_path: Path) -> None:
    raw = tmp_path / "FashionMNIST/raw"
    raw.mkdir(parents=True)
    labels = np.array([9, 0, 4, 5, 1, 0], np.uint8)
    pixels = labels[:, None, None].repeat(28, 1).repeat(28, 2)
    for array, kind in ((pixels, "images-idx3"), (labels, "labels-idx1")):
        content = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()
        (raw / f"train-{kind}-ubyte.gz").write_bytes(gzip.compress(content))
        (raw / f"t10k-{kind}-ubyte").write_bytes(content)
    fashion = FashionMnist(tmp_path, official=False)
    assert fashion.train.images[:, 0, 0, 0].tolist() == [0, 4, 1, 0]
    assert fashion.test.images[:, 0, 0, 0].tolist() == [9, 5]
    with pytest.raises(DataDamagedError, match="train has 4 images, expected 30,000"):
        images.load(Part(name="fashion_mnist"), tmp_path, tmp_path)


# CIFAR


def cifar_batch(rng: np.random.Generator, classes: int, count: int) -> tuple[np.ndarray, list[int]]:
    return rng.integers(0, 256, (count, 3072), np.uint8), [number % classes for number in range(count)]


def test_cifar10_from_pickles_and_binary_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for folder in ("cifar-10-batches-py", "cifar-10-batches-bin"):
        (tmp_path / folder).mkdir()
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        pixels, labels = cifar_batch(rng, 10, 20)
        batch = {b"batch_label": b"x", b"data": pixels, b"labels": labels}
        (tmp_path / "cifar-10-batches-py" / name).write_bytes(pickle.dumps(batch, protocol=2))
        records = np.column_stack([np.array(labels, np.uint8), pixels])
        (tmp_path / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(records.tobytes())
    first = Cifar10(tmp_path, tmp_path, official=False)
    assert first.train.images.shape == (100, 3, 32, 32)
    assert torch.equal(first.test.images[3].flatten(), torch.from_numpy(pixels[3]))
    assert first.test.labels.tolist() == labels
    assert images.miscounts(Cifar10, {"train": first.train.counts, "test": first.test.counts}) == [
        "train has 100 images, expected 50,000", "test has 20 images, expected 10,000",
    ]  # fmt: skip
    shutil.rmtree(tmp_path / "cifar-10-batches-py")
    assert Cifar10(tmp_path, tmp_path, official=False).content == first.content


def test_cifar100_takes_the_fine_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "cifar-100-binary").mkdir()
    for half in ("train", "test"):
        pixels, labels = cifar_batch(rng, 100, 200)
        fine = np.array(labels, np.uint8)
        records = np.column_stack([fine // 5, fine, pixels])
        (tmp_path / "cifar-100-binary" / f"{half}.bin").write_bytes(records.tobytes())
    cifar = Cifar100(tmp_path, official=False)
    assert cifar.train.classes == 100
    assert cifar.test.labels.tolist() == labels


HOSTILE = {
    "tuples in tuples as a key": (b"\x80\x02})" + b"\x85" * 1_000_000 + b"Ns.", "it makes more than 100 tuples"),
    "steps without end": (b"\x80\x02" + b"]0" * 500_001 + b".", "it takes more than 1,000,000 steps"),
    "an encoding of none": (b"c_codecs\nencode\n(Va\nVzip\ntR.", "it asks for the encoding 'zip'"),
    "attributes of a list": (b"\x80\x02]}U\x01aK\x01sb.", "cannot be read"),
    "values of no list": (b"\x80\x02K\x01K\x01a.", "cannot be read"),
    "an array without end": (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(L" + b"9" * 30 + b"L\ntU\x01btR.", "cannot be read",
    ),
    "no mapping": (b"\x80\x02].", "cannot be read"),
    # Python's unpickler takes 64 GiB to keep a value under the largest number that a pickle can name.
    "all memory": (b"\x80\x02]r\xff\xff\xff\xff.", "it stores object 4,294,967,295, too many for 9 bytes"),
}  # fmt: skip


class Trap:
    """Makes a folder where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Path.mkdir, (self.path,)


@pytest.mark.parametrize("name", [*HOSTILE, "code"])
def test_a_hostile_pickle_is_refused(name: str, tmp_path: Path) -> None:
    code = (pickle.dumps(Trap(tmp_path / "sprung")), "which no CIFAR file does")
    content, message = HOSTILE.get(name, code)
    (tmp_path / "cifar-100-python").mkdir()
    (tmp_path / "cifar-100-python/train").write_bytes(content)
    with pytest.raises(DataDamagedError, match=message) as caught:
        Cifar100(tmp_path, official=False)
    assert str(tmp_path / "cifar-100-python/train") in str(caught.value)
    assert not (tmp_path / "sprung").exists()


def test_a_pickle_of_bytes_in_the_oldest_protocols_is_read(tmp_path: Path) -> None:
    pixels, labels = cifar_batch(np.random.default_rng(0), 100, 200)
    (tmp_path / "cifar-100-python").mkdir()
    for half, protocol in (("train", 0), ("test", 2)):  # which write bytes as a text and its encoding
        content = pickle.dumps({b"data": pixels, b"fine_labels": labels}, protocol)
        (tmp_path / "cifar-100-python" / half).write_bytes(content)
    cifar = Cifar100(tmp_path, official=False)
    assert torch.equal(cifar.train.images, cifar.test.images)
    assert torch.equal(cifar.train.images[7].flatten(), torch.from_numpy(pixels[7]))


# Packs


def pack(root: Path, options: Mapping[str, Any] | None = None, **arrays: Any) -> Any:
    np.savez(root / "mine.npz", **arrays)
    part = Part.model_validate({"name": "packed", "file": "mine.npz", **(options or {})})
    return build("dataset", part, root=root, scratch=root / "scratch")


def jpeg_arrays(root: Path, count: int) -> dict[str, Any]:
    contents = []
    for number in range(count):
        trees.picture(root / "one.jpg", number * 10, mode="L" if number == 1 else "RGB")
        contents.append((root / "one.jpg").read_bytes())
    offset = np.cumsum([0, *map(len, contents)])
    return {"jpeg": np.frombuffer(b"".join(contents), np.uint8), "offset": offset}


def test_packed_jpegs(tmp_path: Path) -> None:
    arrays = jpeg_arrays(tmp_path, 6)
    packed = pack(tmp_path, **arrays, label=np.array([7, 7, 3, 3, 9, 9]), split=np.array([0, 0, 0, 0, 1, 1]))
    assert packed.train.images.shape == (4, 3, 30, 40)  # kept as they are
    assert close(shades(packed.train), [[20, 30], [0, 10]])
    assert packed.test.labels.tolist() == [0, 0]
    assert images.faults(packed) == []


def test_packed_pixels_without_a_split(tmp_path: Path) -> None:
    pixels = np.arange(6, dtype=np.uint8)[:, None, None].repeat(4, 1).repeat(4, 2)
    packed = pack(tmp_path, image=pixels, label=np.array([5, 5, 1, 1, 8, 8]))
    assert packed.train.images.shape == (2, 1, 4, 4)
    assert packed.train.images[:, 0, 0, 0].tolist() == [2, 3]
    assert packed.test.labels.tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="holds pixels"):
        pack(tmp_path, {"side": 8}, image=pixels, label=np.arange(6))


def test_packs_of_another_form(tmp_path: Path) -> None:
    label = np.array([0, 0, 1, 1])
    arrays = jpeg_arrays(tmp_path, 4)
    for wrong, message in (
        ({}, "no array 'label'"),
        ({"label": label}, "no array 'image'"),
        ({"label": label, "image": np.zeros((3, 4, 4), np.uint8)}, "expected 4 images of bytes"),
        ({"label": label, "split": np.array([0, 1, 2, 0])}, "expected a split of 0"),
        ({"label": label, "split": np.zeros(4)}, "one of the splits has no images"),
        ({"label": label * 0.5}, "expected integers as labels"),
        ({**arrays, "label": label, "offset": arrays["offset"][::-1]}, "to increase from 0"),
    ):
        with pytest.raises(DataDamagedError, match=message):
            pack(tmp_path, **wrong)
    broken = arrays["jpeg"].copy()
    broken[: arrays["offset"][1]] = 0
    with pytest.raises(DataDamagedError, match=r"image 0 of .*mine.npz cannot be read"):
        pack(tmp_path, **{**arrays, "jpeg": broken}, label=label)


def test_names_go_with_their_classes() -> None:
    labels = torch.tensor([0, 1, 2, 0, 2])
    whole = Images(labels[:, None, None, None].to(torch.uint8), labels, names=("a", "b", "c"))
    kept = whole.of_classes(torch.tensor([True, False, True])).to(torch.device("cpu"))
    assert [kept.names[label] for label in kept.labels] == ["a", "c", "a", "c"]
    assert replace(whole, names=None).of_classes(torch.ones(3, dtype=torch.bool)).names is None
