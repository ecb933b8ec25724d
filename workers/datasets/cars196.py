"""Cars196: car models, the first 98 train, the others test; in any of the three layouts that circulate."""

import csv
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from workers.contract import DataDamagedError, DataMissingError
from workers.data import listing
from workers.data.listing import Listed
from workers.data.pictures import Picture, check_expansion, reading
from workers.datasets._shared import Photographs


class Cars196(Photographs):
    """16,185 photographs of 196 car models: classes 1 to 98 train, 99 to 196 test.

    Read from any of `car_ims/` with `cars_annos.mat`; `cars_train/`, `cars_test/` and `devkit/` with
    `cars_train_annos.mat` and `cars_test_annos_withlabels.mat`; `car_data/car_data/{train,test}/MODEL/` with
    `anno_train.csv` and `anno_test.csv`. The official test flag divides the images of every class and is not for
    retrieval. `official: false` takes a part of the data set.
    """

    label = "Cars196"
    paper = "Krause et al. 2013"
    classes = {"train": 98, "test": 98}
    images = {"train": 8054, "test": 8131}
    metrics = (
        "recall@1", "recall@2", "recall@4", "recall@8", "map@r", "r_precision", "nmi", "nmi@geometric", "f1",
        "norm_mean", "norm_var", "s_mu",
    )  # fmt: skip

    def _halves(self, root: Path) -> list[list[Listed]]:
        every = _every(root)
        return [[image for image in every if (int(image.label) <= 98) is half] for half in (True, False)]


def _every(root: Path) -> list[Listed]:
    """All images with their official class numbers, from the first layout that exists."""
    for folder in (root / "cars196", root / "CARS_196", root / "stanford_cars", root):
        if (folder / "cars_annos.mat").is_file():
            return _original(folder)
        if (folder / "devkit").is_dir() and (folder / "cars_train").is_dir():
            return _devkit(folder)
        if (folder / "anno_train.csv").is_file():
            return _folders(folder)
    raise DataMissingError(
        f"Cars196 is missing: looked in {root.absolute()} and its folder cars196 for cars_annos.mat (with car_ims/), "
        "devkit/ (with cars_train/ and cars_test/) or anno_train.csv (with car_data/); set METRICSWEEP_DATA (or --data)"
    )


def _original(folder: Path) -> list[Listed]:
    path = folder / "cars_annos.mat"
    pairs = zip(_field(path, "relative_im_path"), _field(path, "class"), strict=True)
    models = _models(path)
    return [_listed(folder / str(name), _class(path, label), models) for name, label in pairs]


def _devkit(folder: Path) -> list[Listed]:
    found = []
    for half, file in (("train", "cars_train_annos.mat"), ("test", "cars_test_annos_withlabels.mat")):
        places = [folder / "devkit" / file, folder / file]
        path = next((place for place in places if place.is_file()), places[0])
        pairs = zip(_field(path, "fname"), _field(path, "class"), strict=True)
        images = _images(folder / f"cars_{half}", f"cars_{half}")
        models = _models(folder / "devkit" / "cars_meta.mat")
        found += [_listed(images / str(name), _class(path, label), models) for name, label in pairs]
    return found


def _images(folder: Path, name: str) -> Path:
    """The folder of images, which some packs have twice: `cars_train/cars_train/`."""
    return folder / name if (folder / name).is_dir() else folder


def _folders(folder: Path) -> list[Listed]:
    found = []
    for half in ("train", "test"):
        path = folder / f"anno_{half}.csv"
        images = _images(folder / "car_data", "car_data") / half
        places = {image.name: image for image in images.glob("*/*.jpg")}
        # A file that no folder holds is named as one of the half's, for the message that says it is missing.
        every = ((places.get(name, images / name), label) for name, label in _csv(path))
        found += [Listed(Picture(place), label, name=place.parent.name) for place, label in every]
    return found


def _listed(image: Path, label: int, models: Sequence[str]) -> Listed:
    return Listed(Picture(image), label, name=models[label - 1] if label <= len(models) else None)


def _models(path: Path) -> list[str]:
    """The names of the car models in order, if a MATLAB file has them."""
    return [str(name) for name in np.atleast_1d(_mat(path).get("class_names", []))] if path.is_file() else []


def _csv(path: Path) -> list[tuple[str, int]]:
    """File names and class numbers of `name,x1,y1,x2,y2,class`."""
    with reading(path), path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        raise DataDamagedError(f"{path} is empty; fetch it again")
    if short := next((row for row in rows if len(row) != 6), None):
        raise DataDamagedError(f"{path}: expected a name, a box and a class, found {','.join(short)!r}")
    return [(row[0], _class(path, row[-1])) for row in rows]


def _field(path: Path, name: str) -> list[Any]:
    """A field of all `annotations` in a MATLAB file."""
    held = _mat(path)
    try:
        return list(np.atleast_1d(held["annotations"])[name])
    except (KeyError, ValueError, TypeError, IndexError) as error:
        advice = "the test annotations without labels will not do" if name == "class" else "fetch it again"
        raise DataDamagedError(f"{path} has no annotations with {name!r}; {advice}") from error


def _mat(path: Path) -> dict[str, Any]:
    """The content of a MATLAB file; raises DataMissingError, DataDamagedError."""
    with reading(path):
        content = path.read_bytes()
        if content[:10] == b"MATLAB 7.3":
            raise DataDamagedError(f"{path} is in the format of MATLAB 7.3, which is not read; save it with `-v7`")
        check_expansion(content)
        held: dict[str, Any] = scipy.io.loadmat(BytesIO(content), squeeze_me=True)
        return held


def _class(path: Path, value: Any) -> int:
    number = listing.number(path, str(value))
    if not 1 <= number <= 196:
        raise DataDamagedError(f"{path}: classes are numbered 1 to 196, found {number}")
    return number
