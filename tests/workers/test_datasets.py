"""Data sets: counts, splits, content that recipes are held to, and files that are missing or damaged."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.workers import recipes
from tests.workers.recipes import DIGITS, place
from workers.contract import CheckpointError, ClassHoldout, DataDamagedError, Part, Place, Progress, Recipe, Stopped
from workers.data import batches, images
from workers.data.images import Images
from workers.datasets.digits import Digits
from workers.datasets.digits_halves import DigitsHalves
from workers.datasets.mnist import Mnist
from workers.datasets.mnist_halves import MnistHalves
from workers.datasets.omniglot import Omniglot
from workers.train import train


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
    for data_set, sides in ((Digits(), 8), (DigitsHalves(), 8)):
        assert images.faults(data_set) == []
        well_formed(data_set.train, sides)
        well_formed(data_set.test, sides)
    digits, halves = Digits(), DigitsHalves()
    assert torch.bincount(digits.train.labels).tolist() == [178, 182, 177, 183, 181, 182]
    assert torch.bincount(digits.test.labels).tolist() == [181, 179, 174, 180]
    assert len(set(digits.train.images.flatten().tolist())) == 17  # grey values 0 to 16
    assert min(torch.bincount(halves.test.labels)) == 55
    assert len(halves.train) + len(halves.test) == 1797
    digits.train.images[0, 0, 0, 0] += 1
    assert images.faults(digits) == [f"the content is {images.content_hash(digits)}, expected {Digits.manifest}"]


def test_real_data(data: Path, tmp_path: Path) -> None:
    mnist, halves, omniglot = Mnist(data), MnistHalves(data), Omniglot(data, tmp_path)
    for data_set in (mnist, halves, omniglot):
        assert images.faults(data_set) == []
        well_formed(data_set.train, 28)
        well_formed(data_set.test, 28)
    train, test = [5923, 6742, 5958, 6131, 5842], [892, 958, 1028, 974, 1009]
    assert (torch.bincount(mnist.train.labels).tolist(), torch.bincount(mnist.test.labels).tolist()) == (train, test)
    assert torch.bincount(halves.train.labels).tolist()[:5] == train
    assert torch.bincount(halves.test.labels).tolist()[5:] == test
    assert {*torch.bincount(omniglot.train.labels).tolist(), *torch.bincount(omniglot.test.labels).tolist()} == {20}


def test_mnist_from_idx_files_is_the_same(data: Path, tmp_path: Path) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for half, prefix in (("train", "train"), ("test", "t10k")):
        with np.load(data / f"mnist_{half}.npz") as pack:
            for array, kind in ((pack["image"], "images-idx3"), (pack["label"], "labels-idx1")):
                header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
                content, name = header + array.tobytes(), f"{prefix}-{kind}-ubyte"
                if half == "test":
                    (raw / f"{name}.gz").write_bytes(gzip.compress(content, 1))
                else:
                    (raw / name).write_bytes(content)
    assert images.content_hash(Mnist(tmp_path)) == Mnist.manifest


def small_omniglot(path: Path, **changes: object) -> None:
    arrays = {
        "image": np.zeros((4, 28, 28), np.uint8), "label": np.arange(4), "split": np.array([0, 0, 1, 1]), **changes,
    }  # fmt: skip
    np.savez(path / "omniglot28.npz", **{name: value for name, value in arrays.items() if value is not None})  # type: ignore[arg-type]


def test_a_pack_of_another_form(tmp_path: Path) -> None:
    """tests/workers/test_damaged_files.py has files that are cut off or overwritten."""
    for changes, said in (
        ({"split": None}, "no array 'split'; it holds image, label"),
        ({"image": np.zeros((4, 14, 14), np.uint8)}, "expected 4 images of 28x28 bytes"),
        ({"label": np.array([{}] * 4, dtype=object)}, "cannot be read"),  # and nothing was unpickled
        ({}, "train has 2 classes, expected 964; test has 2 classes"),
    ):
        small_omniglot(tmp_path, **changes)
        with pytest.raises(DataDamagedError, match=said):
            images.load(Part(name="omniglot"), tmp_path, tmp_path)


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


PART = {"name": "packed", "file": "mine.npz"}


def pack(root: Path, shade: int = 0) -> Path:
    """A pack of eight classes with six images each, one of which has another shade; gives its folder."""
    root.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 200, (48, 8, 8)).astype(np.uint8)
    pixels[0] += np.uint8(shade)
    np.savez(root / "mine.npz", image=pixels, label=np.arange(48) // 6)
    return root


def content(root: Path, **options: Any) -> str:
    return images.content_hash(images.load(Part(**PART, **options), root, root / "scratch"))


def completed(**changes: Any) -> Recipe:
    sampler = {"name": "balanced", "classes": 2, "per_class": 4}
    raw = {**DIGITS, "dataset": PART, "sampler": sampler, "validation": "none", "select": {"split": "last"}}
    return recipes.completed({**raw, **changes})


def on(data: Path, out: Path, **changes: Any) -> Place:
    return replace(place(out, **changes), data_root=data)


def test_another_content_is_refused_and_named(tmp_path: Path) -> None:
    before, after = pack(tmp_path / "before"), pack(tmp_path / "after", shade=1)
    known = content(before)
    assert content(before, content=known) == known != content(after)
    with pytest.raises(DataDamagedError, match=f"the content is {content(after)}, expected {known}"):
        images.load(Part(**PART, content=known), after, after / "scratch")
    what = completed(dataset={**PART, "content": known})
    assert train(what, on(before, tmp_path / "one"), [].append).provenance["manifest"] == known
    with pytest.raises(DataDamagedError, match="the content is"):
        train(what, on(after, tmp_path / "two"), [].append)


@pytest.mark.parametrize("validation", ["none", {"name": "cross_validation", "folds": 2}])
def test_a_training_does_not_go_on_with_other_images(validation: Any, tmp_path: Path) -> None:
    before, after = pack(tmp_path / "before"), pack(tmp_path / "after", shade=1)
    what = completed(validation=validation, sampler={"name": "shuffle", "batch": 4})
    turns = iter([False] * 5 + [True])
    with pytest.raises(Stopped):
        train(what, on(before, tmp_path / "out", stop=lambda: next(turns)), [].append)
    checkpoint = tmp_path / "out/last.pt"
    with pytest.raises(CheckpointError, match=f"does not fit: it was trained on {content(before)}, and the data set"):
        train(what, on(after, tmp_path / "out"), [].append, checkpoint)
    reports: list[Progress] = []
    assert train(what, on(before, tmp_path / "out"), reports.append, checkpoint).outcome == "ok"
    assert "from step 5 " in reports[0].log
