"""Files of data sets that are empty, cut off or something else: named by the data set and by a node's look."""

import gzip
import io
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from tests.workers import faces, trees
from workers import registry
from workers.catalog import Need
from workers.contract import DataDamagedError, Part
from workers.data import pictures
from workers.data.inspection import inspect
from workers.data.pictures import check_expansion, read_idx, read_npz

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
            if found.state == "ok" or not found.said:
                faults.append(f"{file} {damage}: a node says {found}")
        path.write_bytes(whole)
    assert faults == []


def test_an_error_that_nobody_expected_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> None:
        raise RuntimeError("the disk spoke in tongues")

    trees.cub(tmp_path)
    monkeypatch.setattr("workers.data.listing.read_text", fail)
    (found,) = inspect([Need(dataset=Part(name="cub200"))], tmp_path, tmp_path / "scratch")
    assert (found.state, found.said) == ("wrong", "cub200: RuntimeError: the disk spoke in tongues")


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
    for name, said in (("a-ubyte.gz", "declares 822,083,584 bytes"), ("b-ubyte.gz", "10 bytes and has more")):
        with pytest.raises(DataDamagedError, match=said):
            read_idx(tmp_path / name)
    mat = io.BytesIO()
    scipy.io.savemat(mat, {"annotations": np.zeros(most // 8 + 1)}, do_compression=True)
    with pytest.raises(ValueError, match="expand to more than"):
        check_expansion(mat.getvalue())
