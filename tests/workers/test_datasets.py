"""Data sets: counts, splits, content that recipes are held to, and files that are missing or damaged."""

import gzip
import io
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.workers import faces, recipes, trees
from tests.workers.recipes import DIGITS, place
from workers import registry
from workers.catalog import Need
from workers.contract import CheckpointError, ClassHoldout, DataDamagedError, Part, Place, Progress, Recipe, Stopped
from workers.data import batches, images, pictures
from workers.data.file_content import inspected, noting
from workers.data.images import Images
from workers.data.inspection import inspect
from workers.data.pictures import check_expansion, read_idx, read_npz
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
    """A test below has files that are cut off or overwritten."""
    for changes, message in (
        ({"split": None}, "no array 'split'; it has image, label"),
        ({"image": np.zeros((4, 14, 14), np.uint8)}, "expected 4 images of 28x28 bytes"),
        ({"label": np.array([{}] * 4, dtype=object)}, "cannot be read"),  # and nothing was unpickled
        ({}, "train has 2 classes, expected 964; test has 2 classes"),
    ):
        small_omniglot(tmp_path, **changes)
        with pytest.raises(DataDamagedError, match=message):
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


GARBAGE = bytes(np.random.default_rng(0).integers(0, 256, 700, np.uint8))


def idx(root: Path, folder: str) -> None:
    (root / folder).mkdir(parents=True)
    for prefix in ("train", "t10k"):
        images = struct.pack(">BBBBIII", 0, 0, 8, 3, 20, 28, 28) + bytes(20 * 784)
        labels = struct.pack(">BBBBI", 0, 0, 8, 1, 20) + bytes([*range(10)] * 2)
        (root / folder / f"{prefix}-images-idx3-ubyte").write_bytes(images)
        (root / folder / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
        (root / folder / f"{prefix}-labels-idx1-ubyte").write_bytes(labels)


def mnist_npz(root: Path) -> None:
    for half in ("train", "test"):
        np.savez(root / f"mnist_{half}.npz", image=np.zeros((20, 28, 28), np.uint8), label=np.arange(20) % 10)


def omniglot(root: Path) -> None:
    image = np.zeros((8, 28, 28), np.uint8)
    np.savez(root / "omniglot28.npz", image=image, label=np.arange(8) // 2, split=np.arange(8) // 4)


def cifar(root: Path, folder: str, label: bytes, files: tuple[str, ...]) -> None:
    (root / folder).mkdir()
    for name in files:
        batch = {b"data": np.zeros((4, 3072), np.uint8), label: [0, 1, 2, 3]}
        (root / folder / name).write_bytes(pickle.dumps(batch, 2))


def jpegs(path: Path) -> None:
    files = [faces.face(10 * number) for number in range(8)]
    offset = np.cumsum([0, *map(len, files)])
    np.savez(path, jpeg=np.frombuffer(b"".join(files), np.uint8), offset=offset, label=np.arange(8) // 2)


def car_models(root: Path) -> None:
    folder = trees.cars(root, "devkit")
    scipy.io.savemat(folder / "devkit/cars_meta.mat", {"class_names": np.array(["one", "two"], object)})


TEN = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
LAYOUTS: list[tuple[str, dict[str, object], Callable[[Path], object], tuple[str, ...]]] = [
    ("cub200", {}, trees.cub, ("CUB_200_2011/images.txt", "CUB_200_2011/image_class_labels.txt")),
    ("cars196", {}, lambda root: trees.cars(root, "original"), ("cars196/cars_annos.mat",)),
    ("cars196", {}, car_models, (
        "cars196/devkit/cars_train_annos.mat", "cars196/devkit/cars_test_annos_withlabels.mat",
        "cars196/devkit/cars_meta.mat",
    )),
    ("cars196", {}, lambda root: trees.cars(root, "folders"), ("cars196/anno_train.csv", "cars196/anno_test.csv")),
    ("sop", {}, trees.sop, ("Stanford_Online_Products/Ebay_train.txt", "Stanford_Online_Products/Ebay_test.txt")),
    ("inshop", {}, lambda root: trees.inshop(root / "inshop"), ("inshop/Eval/list_eval_partition.txt",)),
    ("omniglot", {}, omniglot, ("omniglot28.npz",)),
    ("mnist", {}, mnist_npz, ("mnist_train.npz", "mnist_test.npz")),
    ("mnist_halves", {}, lambda root: idx(root, "MNIST/raw"), (
        "MNIST/raw/train-images-idx3-ubyte", "MNIST/raw/t10k-labels-idx1-ubyte",
    )),
    ("fashion_mnist", {}, lambda root: idx(root, "FashionMNIST/raw"), (
        "FashionMNIST/raw/train-labels-idx1-ubyte", "FashionMNIST/raw/t10k-images-idx3-ubyte",
    )),
    ("cifar10", {}, lambda root: cifar(root, "cifar-10-batches-py", b"labels", TEN), (
        "cifar-10-batches-py/data_batch_3", "cifar-10-batches-py/test_batch",
    )),
    ("cifar100", {}, lambda root: cifar(root, "cifar-100-python", b"fine_labels", ("train", "test")), (
        "cifar-100-python/train", "cifar-100-python/test",
    )),
    ("packed", {"file": "p.npz"}, lambda root: jpegs(root / "p.npz"), ("p.npz",)),
    ("lfw", {}, lambda root: faces.bin_file(root / "lfw.bin"), ("lfw.bin",)),
    ("agedb30", {}, lambda root: faces.pairs_txt(root / "agedb_30"), ("agedb_30/pairs.txt",)),
    ("megaface", {"sizes": [2, 5]}, faces.megaface, (
        "megaface/devkit/templatelists/facescrub_features_list.json",
        "megaface/devkit/templatelists/megaface_features_list.json_5_1",
    )),
    ("casia_webface", {}, lambda root: (faces.casia(root), faces.bin_file(root / "lfw.bin")), tuple(
        f"faces_webface_112x112/{name}" for name in ("train.rec", "train.idx", "property")
    )),
]  # fmt: skip


def damages(content: bytes) -> Iterator[tuple[str, bytes]]:
    """What may have become of a file."""
    yield "empty", b""
    yield "garbage", GARBAGE
    yield "zeros", bytes(700)
    yield "cut in half", content[: len(content) // 2]
    yield "cut early", content[:3]
    yield "another's beginning", content[:100] + GARBAGE


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: f"{one[0]}-{one[3][0]}")
def test_a_damaged_file_is_named(
    layout: tuple[str, dict[str, object], Callable[[Path], object], tuple[str, ...]], tmp_path: Path
) -> None:
    name, options, make, files = layout
    make(tmp_path)
    lenient = {"official": False} if name not in {"mnist", "mnist_halves", "omniglot", "packed"} else {}
    part, scratch = Part.model_validate({"name": name, **options, **lenient}), tmp_path / "scratch"
    need, faults = Need(dataset=part), []
    registry.build("dataset", part, root=tmp_path, scratch=scratch)
    for file in files:
        path = tmp_path / file
        whole = path.read_bytes()
        for damage, content in damages(whole):
            path.write_bytes(content)
            try:
                registry.build("dataset", part, root=tmp_path, scratch=scratch)
                faults.append(f"{file} {damage}: read as if nothing were wrong")
            except (DataDamagedError, FileNotFoundError) as error:
                text = path.suffix in {".txt", ".csv", ".idx"} and "cut" in damage  # a shorter list is a list
                if path.stem not in str(error) and not text:
                    faults.append(f"{file} {damage}: {error}")
            except Exception as error:
                faults.append(f"{file} {damage}: {type(error).__name__}: {error}")
            (found,) = inspect([need], tmp_path, scratch)
            if found.state == "ok" or not found.message:
                faults.append(f"{file} {damage}: a node says {found}")
        path.write_bytes(whole)
    assert faults == []


def test_a_reading_within_an_inspection_is_a_part_of_it() -> None:
    with noting(inspecting=True) as outer, noting() as inner:
        assert inspected() is inner
        inner.undecoded = True
    assert outer.undecoded
    with noting():
        assert inspected() is None


def test_an_error_that_nobody_expected_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> None:
        raise RuntimeError("the disk spoke in tongues")

    trees.cub(tmp_path)
    monkeypatch.setattr("workers.data.listing.read_text", fail)
    (found,) = inspect([Need(dataset=Part(name="cub200"))], tmp_path, tmp_path / "scratch")
    assert (found.state, found.message) == ("wrong", "cub200: RuntimeError: the disk spoke in tongues")


def test_a_small_file_does_not_expand_without_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_EXPANDED", most := 2**22)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (most * 2,)})
    zeros = bytes(2**20)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as pack, pack.open("image.npy", "w") as file:
        file.write(header.getvalue())
        for _ in range(most * 2 // len(zeros)):
            file.write(zeros)
    with pytest.raises(DataDamagedError, match=r"bomb.npz cannot be read.* would expand to"):
        read_npz(tmp_path / "bomb.npz", ["image"])
    huge = struct.pack(">BBBBIII", 0, 0, 8, 3, 2**20, 28, 28)
    (tmp_path / "a-ubyte.gz").write_bytes(gzip.compress(huge + zeros))
    (tmp_path / "b-ubyte.gz").write_bytes(gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 1, 10) + zeros * 64))
    for name, message in (("a-ubyte.gz", "declares 822,083,584 bytes"), ("b-ubyte.gz", "10 bytes, but has more")):
        with pytest.raises(DataDamagedError, match=message):
            read_idx(tmp_path / name)
    mat = io.BytesIO()
    scipy.io.savemat(mat, {"annotations": np.zeros(most // 8 + 1)}, do_compression=True)
    with pytest.raises(ValueError, match="expand to more than"):
        check_expansion(mat.getvalue())
