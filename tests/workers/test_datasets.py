"""Data sets: their counts, their splits, and what is said of files that are missing or damaged."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.contract import ClassHoldout, DataDamagedError, DataMissingError, Part
from workers.data import batches, images, pictures
from workers.data.images import Images
from workers.datasets.digits import Digits
from workers.datasets.digits_halves import DigitsHalves
from workers.datasets.mnist import Mnist
from workers.datasets.mnist_halves import MnistHalves
from workers.datasets.omniglot import Omniglot


@pytest.fixture
def data(shared: Path) -> Path:
    folder = shared / "data"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data is not here")
    return folder


def well_formed(split: Images, side: int) -> None:
    assert split.images.dtype == torch.uint8
    assert split.images.shape[1:] == (1, side, side)
    assert split.labels.dtype == torch.int64
    assert sorted(set(split.labels.tolist())) == list(range(split.classes))
    assert int(split.images.max()) == 255


def test_digits() -> None:
    digits = Digits()
    assert images.faults(digits) == []
    well_formed(digits.train, 8)
    well_formed(digits.test, 8)
    assert torch.bincount(digits.train.labels).tolist() == [178, 182, 177, 183, 181, 182]
    assert torch.bincount(digits.test.labels).tolist() == [181, 179, 174, 180]
    assert len(set(digits.train.images.flatten().tolist())) == 17  # grey values 0 to 16


def test_the_halves_of_digits_have_all_ten() -> None:
    halves = DigitsHalves()
    assert images.faults(halves) == []
    well_formed(halves.train, 8)
    well_formed(halves.test, 8)
    assert min(torch.bincount(halves.test.labels)) == 55
    assert len(halves.train) + len(halves.test) == 1797


def test_mnist(data: Path) -> None:
    mnist = Mnist(data)
    assert images.faults(mnist) == []
    well_formed(mnist.train, 28)
    well_formed(mnist.test, 28)
    assert torch.bincount(mnist.train.labels).tolist() == [5923, 6742, 5958, 6131, 5842]
    assert torch.bincount(mnist.test.labels).tolist() == [892, 958, 1028, 974, 1009]


def test_the_official_halves_of_mnist_have_all_ten_digits(data: Path) -> None:
    halves = MnistHalves(data)
    assert images.faults(halves) == []
    well_formed(halves.train, 28)
    well_formed(halves.test, 28)
    assert torch.bincount(halves.train.labels).tolist()[:5] == [5923, 6742, 5958, 6131, 5842]
    assert torch.bincount(halves.test.labels).tolist()[5:] == [892, 958, 1028, 974, 1009]


def test_omniglot(data: Path, tmp_path: Path) -> None:
    omniglot = Omniglot(data, tmp_path)
    assert images.faults(omniglot) == []
    well_formed(omniglot.train, 28)
    well_formed(omniglot.test, 28)
    assert set(torch.bincount(omniglot.train.labels).tolist()) == {20}
    assert set(torch.bincount(omniglot.test.labels).tolist()) == {20}


@pytest.mark.parametrize("packed", [False, True])
def test_mnist_from_idx_files_is_the_same(data: Path, tmp_path: Path, packed: bool) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for half, prefix in (("train", "train"), ("test", "t10k")):
        with np.load(data / f"mnist_{half}.npz") as pack:
            for array, kind in ((pack["image"], "images-idx3"), (pack["label"], "labels-idx1")):
                header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
                content = header + array.tobytes()
                name = f"{prefix}-{kind}-ubyte"
                if packed:
                    (raw / f"{name}.gz").write_bytes(gzip.compress(content, 1))
                else:
                    (raw / name).write_bytes(content)
    assert images.content_hash(Mnist(tmp_path)) == Mnist.manifest


@pytest.mark.parametrize(("name", "file"), [("mnist", "mnist_train.npz"), ("omniglot", "omniglot28.npz")])
def test_a_missing_file(name: str, file: str, tmp_path: Path) -> None:
    with pytest.raises(DataMissingError) as caught:
        images.load(Part(name=name), tmp_path, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{file} is missing")
    assert str(tmp_path) in message
    assert "METRICSWEEP_DATA" in message
    assert "\n" not in message
    assert isinstance(caught.value, FileNotFoundError)


def test_missing_labels_beside_the_images(tmp_path: Path) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "train-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3]) + np.array([0, 28, 28], ">u4").tobytes())
    with pytest.raises(DataMissingError, match="train-labels-idx1-ubyte is missing"):
        Mnist(tmp_path)


def small_omniglot(path: Path, **changes: object) -> None:
    arrays = {
        "image": np.zeros((4, 28, 28), np.uint8), "label": np.arange(4), "split": np.array([0, 0, 1, 1]), **changes,
    }  # fmt: skip
    np.savez(path / "omniglot28.npz", **{name: value for name, value in arrays.items() if value is not None})  # type: ignore[arg-type]


def test_a_truncated_pack(tmp_path: Path) -> None:
    small_omniglot(tmp_path)
    path = tmp_path / "omniglot28.npz"
    for kept in (0, 10, len(path.read_bytes()) - 30):
        path.write_bytes(path.read_bytes()[:kept])
        with pytest.raises(DataDamagedError, match=f"{path} cannot be read"):
            Omniglot(tmp_path, tmp_path)


def test_a_flipped_byte_in_a_pack(tmp_path: Path) -> None:
    small_omniglot(tmp_path)
    path = tmp_path / "omniglot28.npz"
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataDamagedError, match="cannot be read"):
        Omniglot(tmp_path, tmp_path)


def test_a_pack_of_another_kind(tmp_path: Path) -> None:
    small_omniglot(tmp_path, split=None)
    with pytest.raises(DataDamagedError, match="no array 'split'; it holds image, label"):
        Omniglot(tmp_path, tmp_path)
    small_omniglot(tmp_path, image=np.zeros((4, 14, 14), np.uint8))
    with pytest.raises(DataDamagedError, match="expected 4 images of 28x28 bytes"):
        Omniglot(tmp_path, tmp_path)
    small_omniglot(tmp_path, label=np.array([{}] * 4, dtype=object))
    with pytest.raises(DataDamagedError, match="cannot be read"):  # and nothing was unpickled
        Omniglot(tmp_path, tmp_path)


def test_other_content_than_declared(tmp_path: Path) -> None:
    small_omniglot(tmp_path)
    with pytest.raises(DataDamagedError, match="train has 2 classes, expected 964; test has 2 classes"):
        images.load(Part(name="omniglot"), tmp_path, tmp_path)
    digits = Digits()
    digits.train.images[0, 0, 0, 0] += 1
    assert images.faults(digits) == [f"the content is {images.content_hash(digits)}, expected {Digits.manifest}"]


def test_damaged_idx_files(tmp_path: Path) -> None:
    path = tmp_path / "x-ubyte"
    for content in (b"", b"\0\0\x0d\1", bytes([0, 0, 8, 1]) + np.array([5], ">u4").tobytes() + b"1234"):
        path.write_bytes(content)
        with pytest.raises(DataDamagedError, match="cannot be read"):
            pictures.read_idx(path)
    (tmp_path / "x-ubyte.gz").write_bytes(gzip.compress(b"some text")[:-4])
    with pytest.raises(DataDamagedError, match="cannot be read"):
        pictures.read_idx(tmp_path / "x-ubyte.gz")


def test_a_process_loads_a_data_set_once(tmp_path: Path) -> None:
    first = images.load(Part(name="digits"), tmp_path, tmp_path)
    assert images.load(Part(name="digits"), tmp_path, tmp_path) is first


@given(classes=st.integers(2, 40), folds=st.integers(2, 8), data=st.data())
def test_a_hold_out_divides_the_classes(classes: int, folds: int, data: st.DataObject) -> None:
    labels = torch.tensor(data.draw(st.permutations([*range(classes)] * 2)))
    whole = Images(labels[:, None, None, None].to(torch.uint8), labels)  # each image shows its class
    seen: list[int] = []
    for fold in range(folds):
        held = ClassHoldout(folds=folds, fold=fold).held_out(classes)
        train, validation = batches.hold_out(whole, held)
        assert sorted(set(validation.images.flatten().tolist())) == list(held)
        assert sorted(set(train.images.flatten().tolist())) == [c for c in range(classes) if c not in held]
        assert len(train) + len(validation) == len(whole)
        for split in (train, validation):
            # Contiguous labels, in the order of the classes.
            assert split.labels.tolist() == [
                sorted(set(split.images.flatten().tolist())).index(c) for c in split.images.flatten().tolist()
            ]
        seen += held
    assert seen == list(range(classes))


@given(sizes=st.lists(st.integers(1, 9), min_size=2, max_size=12), folds=st.integers(2, 8), data=st.data())
def test_a_hold_out_of_images_takes_an_equal_share_of_each_class(
    sizes: list[int], folds: int, data: st.DataObject
) -> None:
    every = [label for label, size in enumerate(sizes) for _ in range(size)]
    labels = torch.tensor(data.draw(st.permutations(every)))
    whole = Images(torch.arange(len(labels), dtype=torch.uint8)[:, None, None, None], labels)
    alone = sizes.count(1)
    seen: list[int] = []
    for fold in range(folds):
        held = batches.dealt(labels, folds, fold)
        assert torch.equal(held, batches.dealt(labels, folds, fold))
        train, validation = whole.of_images(~held), whole.of_images(held)
        assert sorted(set(train.labels.tolist())) == [*range(len(sizes))]
        assert torch.equal(train.labels, labels[train.images.flatten().long()])
        shared = len(labels) - alone
        assert shared // folds <= len(validation) <= -(-shared // folds)
        for label, size in enumerate(sizes):
            share = int((validation.labels == label).sum())
            assert size == 1 > share or (size > 1 and size // folds <= share <= -(-size // folds))
        seen += validation.images.flatten().tolist()
    assert len(set(seen)) == len(seen) == len(labels) - alone
