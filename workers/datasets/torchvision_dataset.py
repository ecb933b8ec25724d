"""Data sets of torchvision by the names of its classes."""

import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import torch
from annotated_types import Ge
from torchvision import datasets

from workers.contract import DataDamagedError, DataMissingError, DataOptionError
from workers.data import listing
from workers.data.decoded import Decoded
from workers.data.file_content import below, note, note_folder
from workers.data.images import Images, content_hash
from workers.data.listing import Listed, Source
from workers.data.pictures import Form, Picture, inside

Options = Mapping[str, Any]
_ARCHIVES: Final = (".zip", ".tgz", ".tar", ".gz")  # what torchvision keeps of a download and does not read again
_PHOTOGRAPH: Final = 256


class _Known(NamedTuple):
    """What torchvision's class reads, and its arguments for each part of the official halves."""

    reads: tuple[str, ...]  # files and folders below its `root`
    train: tuple[Options, ...]
    test: tuple[Options, ...] = ()  # empty without official halves
    side: int = 0  # the default; 0 keeps images as they are


def _split(*reads: str, train: Sequence[str] = ("train",), test: str = "test", side: int = 0, **more: Any) -> _Known:
    return _Known(reads, tuple({"split": split, **more} for split in train), ({"split": test, **more},), side)


def _train(*reads: str, **more: Any) -> _Known:
    return _Known(reads, ({"train": True, **more},), ({"train": False, **more},))


_VALIDATED: Final = ("train", "val")
_KNOWN: Final[Mapping[str, _Known]] = {
    "CIFAR10": _train("cifar-10-batches-py"),
    "CIFAR100": _train("cifar-100-python"),
    "CLEVRClassification": _split("clevr", test="val", side=_PHOTOGRAPH),
    "Caltech101": _Known(("caltech101",), ({},), side=_PHOTOGRAPH),
    "Caltech256": _Known(("caltech256",), ({},), side=_PHOTOGRAPH),
    "CelebA": _split("celeba", train=("train", "valid"), target_type="identity"),
    "Country211": _split("country211", train=("train", "valid"), side=_PHOTOGRAPH),
    "DTD": _split("dtd", train=_VALIDATED, side=_PHOTOGRAPH),
    "EMNIST": _train("EMNIST/raw", split="balanced"),
    "EuroSAT": _Known(("eurosat",), ({},)),
    "FER2013": _split("fer2013"),
    "FGVCAircraft": _split("fgvc-aircraft-2013b", train=("trainval",), side=_PHOTOGRAPH),
    "FashionMNIST": _train("FashionMNIST/raw"),
    "Flowers102": _split("flowers-102", train=_VALIDATED, side=_PHOTOGRAPH),
    "Food101": _split("food-101", side=_PHOTOGRAPH),
    "GTSRB": _split("gtsrb", side=48),
    "INaturalist": _Known(
        ("2021_train", "2021_valid"), ({"version": "2021_train"},), ({"version": "2021_valid"},), _PHOTOGRAPH
    ),
    "Imagenette": _split("imagenette2", test="val", side=_PHOTOGRAPH),
    "KMNIST": _train("KMNIST/raw"),
    "LFWPeople": _split("lfw-py"),
    "MNIST": _train("MNIST/raw"),
    "OxfordIIITPet": _split("oxford-iiit-pet", train=("trainval",), side=_PHOTOGRAPH),
    "Places365": _split(
        "data_256_standard", "val_256", "categories_places365.txt", "places365_train_standard.txt",
        "places365_val.txt", train=("train-standard",), test="val", small=True, side=_PHOTOGRAPH,
    ),
    "QMNIST": _train("QMNIST/raw"),
    "RenderedSST2": _split("rendered-sst2", train=_VALIDATED),
    "SEMEION": _Known(("semeion.data",), ({},)),
    "STL10": _split("stl10_binary"),
    "SUN397": _Known(("SUN397",), ({},), side=_PHOTOGRAPH),
    "SVHN": _split("train_32x32.mat", "test_32x32.mat"),
    "StanfordCars": _split("stanford_cars", side=_PHOTOGRAPH),
    "USPS": _train("usps.bz2", "usps.t.bz2"),
}  # fmt: skip


class TorchvisionDataset:
    """The data set that torchvision's class `of` reads from `folder` below the data root, by default the root itself.

    `split: classes` trains on the first half of all classes, or the first `train_classes`, and tests on the others;
    `official` takes the official halves, with the validation images in training. `side` is the shorter side; by default
    256 for photographs, 48 for GTSRB, and that of the images where all have one size. Nothing is downloaded.
    """

    label = "torchvision"
    manifest = None
    only_where = {"train_classes": {"split": "classes"}}

    def __init__(  # noqa: PLR0913 - hyper-parameters
        self,
        root: Path,
        scratch: Path,
        *,
        of: Literal[
            "CIFAR10", "CIFAR100", "CLEVRClassification", "Caltech101", "Caltech256", "CelebA", "Country211", "DTD",
            "EMNIST", "EuroSAT", "FER2013", "FGVCAircraft", "FashionMNIST", "Flowers102", "Food101", "GTSRB",
            "INaturalist", "Imagenette", "KMNIST", "LFWPeople", "MNIST", "OxfordIIITPet", "Places365", "QMNIST",
            "RenderedSST2", "SEMEION", "STL10", "SUN397", "SVHN", "StanfordCars", "USPS",
        ],
        folder: str | None = None,
        split: Literal["classes", "official"] = "classes",
        train_classes: Annotated[int, Ge(1)] | None = None,
        side: Annotated[int, Ge(1)] | None = None,
        resize: Literal["shorter", "square"] = "shorter",
        on_error: Literal["stop", "skip"] = "stop",
        content: str | None = None,
    ) -> None:  # fmt: skip
        self.expected = content
        place = root if folder is None else root / inside(folder)
        known = _KNOWN[of]
        if split == "official" and not known.test:
            raise DataOptionError(f"dataset.split: torchvision's {of} has no official halves; write `split: classes`")
        reading = below(place, known.reads)
        note(*(Path(file) for file in reading.files if not file.endswith(_ARCHIVES)))
        for listed in reading.folders:
            note_folder(listed)
        side = side or known.side
        form = Form(resize, side) if side else Form("keep")
        halves = [
            [item for options in parts for item in _items(of, place, options, form)]
            for parts in (known.train, known.test)
        ]
        if split == "classes":
            halves = _by_classes([*halves[0], *halves[1]], train_classes)
        if all(isinstance(item.image, Path) for half in halves for item in half):
            source = Source(f"torchvision-{of}", form, scratch, on_error=on_error)
            listed_halves = [
                [Listed(Picture(item.image), item.label, name=item.name) for item in half] for half in halves
            ]
            self.train, self.test, self.content, self.notes = listing.load(source, *listed_halves)
            return
        self.train, self.test = (_images(half, form) for half in halves)
        self.content = content_hash(self)
        named = ([(hashlib.sha256(item.image.data).hexdigest(), item.where) for item in half] for half in halves)
        self.notes = tuple(listing.shared(*named))


class _Item(NamedTuple):
    image: Any  # the path of its file; or its pixels, uint8 [channels, h, w], if torchvision gives no file
    label: int
    name: str | None  # of the class
    where: str


def _items(of: str, place: Path, options: Options, form: Form) -> Iterator[_Item]:
    """The images of a part of a data set. Raises DataMissingError or DataDamagedError for what torchvision raises."""
    made = getattr(datasets, of)
    accepted = inspect.signature(made).parameters
    usual = {name: value for name, value in (("loader", Path), ("download", False)) if name in accepted}
    what = f"torchvision.datasets.{of}({', '.join([repr(str(place)), *(f'{k}={v!r}' for k, v in options.items())])})"
    try:
        dataset = made(str(place), **options, **usual)
        names = getattr(dataset, "classes", getattr(dataset, "categories", ()))
        for number in range(len(dataset)):
            image, target = dataset[number]
            label = int(target)
            name = str(names[label]) if label < len(names) else None
            yield _Item(_picture(image, form), label, name, f"image {number} of {what}")
    except (DataDamagedError, DataMissingError):
        raise
    except Exception as error:  # damaged files can make each reader raise anything
        if isinstance(error, FileNotFoundError) or "not found" in str(error) or "download=True" in str(error):
            where = f"looked in {place.absolute()} (METRICSWEEP_DATA, --data)"
            raise DataMissingError(f"{what}: {error}; {where}") from error
        raise DataDamagedError(f"{what} cannot be read ({type(error).__name__}: {error}); fetch it again") from error


def _picture(image: Any, form: Form) -> Any:
    """The file of an image, or its pixels. torchvision gives `loader` a path; where it has none, it may open a file."""
    if isinstance(image, Path):
        return image
    if path := getattr(image, "filename", ""):
        image.close()
        return Path(path)
    return np.ascontiguousarray(replace(form, mode="L" if image.mode == "L" else "RGB").pixels(image))


def _by_classes(items: Sequence[_Item], train_classes: int | None) -> list[list[_Item]]:
    """The images of the first classes, and those of the others; raises DataOptionError if one of these has none."""
    classes = sorted({item.label for item in items})
    if len(classes) < 2:
        raise DataDamagedError(f"torchvision found {len(items):,} images of {len(classes)} classes; fetch them again")
    first = len(classes) // 2 if train_classes is None else train_classes
    if not 0 < first < len(classes):
        raise DataOptionError(f"dataset.train_classes: expected 1 to {len(classes) - 1}, found {first}")
    trained = {*classes[:first]}
    return [[item for item in items if (item.label in trained) is train] for train in (True, False)]


def _images(items: Sequence[_Item], form: Form) -> Images:
    """A split in memory, ordered by class."""
    items = sorted(items, key=lambda item: item.label)
    numbers = {label: number for number, label in enumerate(dict.fromkeys(item.label for item in items))}
    sizes = np.array([item.image.shape for item in items], np.int64)
    past = sizes.prod(axis=1).cumsum()
    shapes = torch.from_numpy(np.column_stack([past - sizes.prod(axis=1), sizes]))
    pixels = torch.from_numpy(np.concatenate([item.image.reshape(-1) for item in items]))
    labels = torch.tensor([numbers[item.label] for item in items])
    names = tuple({item.label: item.name or str(item.label) for item in items}.values())
    form = replace(form, mode="RGB" if sizes[0, 0] == 3 else "L")
    return replace(Decoded(pixels, shapes, "").split(range(len(items)), labels), names=names, form=form)
