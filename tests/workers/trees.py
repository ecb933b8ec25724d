"""Small data sets in the layouts of the real data sets, for tests: images that show their class, and the lists."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy.io
from PIL import Image

CUB = {"001.Albatross": 3, "002.Auklet": 2, "100.Pelican": 4, "101.Pelican": 3, "200.Yellowthroat": 2}
CARS = {1: 3, 2: 2, 98: 2, 99: 3, 196: 2}


def picture(path: Path, shade: int, size: tuple[int, int] = (40, 30), mode: str = "RGB") -> None:
    """A JPEG of one shade, `size` (width, height); the shade is all that survives compression exactly enough."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, shade if mode == "L" else (shade, 255 - shade, shade // 2)).save(path, quality=95)


def cub(root: Path, classes: Mapping[str, int] = CUB) -> Path:
    """`CUB_200_2011/`: classes by folder with their number of images; one JPEG is grey, and sizes differ."""
    folder = root / "CUB_200_2011"
    names: list[str] = []
    labels: list[str] = []
    for name, count in classes.items():
        for number in range(count):
            file = f"{name}/{name}_{number:04}.jpg"
            shade = int(name.partition(".")[0])
            picture(folder / "images" / file, shade, (40 + number, 30), "L" if number == 1 else "RGB")
            names.append(f"{len(names) + 1} {file}")
            labels.append(f"{len(names)} {shade}")
    for file, lines in (("images.txt", names), ("image_class_labels.txt", labels)):
        (folder / file).write_text("\n".join(lines) + "\n")
    # The official halves, which retrieval ignores.
    (folder / "train_test_split.txt").write_text("\n".join(f"{n + 1} {n % 2}" for n in range(len(names))) + "\n")
    return folder


def cars(root: Path, layout: str, classes: Mapping[int, int] = CARS) -> Path:
    """Cars196 in the layout `original`, `devkit` or `folders`; images are divided at random as officially."""
    folder = root / "cars196"
    every = [label for label, count in classes.items() for _ in range(count)]
    halves = {"train": every[::2], "test": every[1::2]}
    if layout == "original":
        names = [f"car_ims/{number + 1:06}.jpg" for number in range(len(every))]
        for name, label in zip(names, every, strict=True):
            picture(folder / name, label)
        _mat(folder / "cars_annos.mat", "relative_im_path", names, every)
        return folder
    rows = []
    for half, labels in halves.items():
        names = [f"{number + 1:05}.jpg" for number in range(len(labels))]
        if layout == "devkit":
            test = "cars_test_annos_withlabels.mat"
            _mat(folder / "devkit" / ("cars_train_annos.mat" if half == "train" else test), "fname", names, labels)
            for name, label in zip(names, labels, strict=True):
                picture(folder / f"cars_{half}" / name, label)
            continue
        rows = [[name, 1, 2, 3, 4, label] for name, label in zip(names, labels, strict=True)]
        for name, label in zip(names, labels, strict=True):
            picture(folder / "car_data/car_data" / half / f"Model {label}" / name, label)
        with (folder / f"anno_{half}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return folder


def _mat(path: Path, key: str, names: Sequence[str], labels: Sequence[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    records = np.empty((1, len(names)), dtype=[("bbox_x1", object), ("class", object), (key, object)])
    for number, (name, label) in enumerate(zip(names, labels, strict=True)):
        records[0, number] = (1, label, name)
    scipy.io.savemat(path, {"annotations": records})


def sop(root: Path) -> Path:
    """`Stanford_Online_Products/` with classes 1, 2 and 11318 to train and 11319, 22634 to test."""
    folder = root / "Stanford_Online_Products"
    for half, classes in (("train", {1: 2, 2: 3, 11318: 1}), ("test", {11319: 2, 22634: 3})):
        lines = ["image_id class_id super_class_id path"]
        for label, count in classes.items():
            for number in range(count):
                file = f"chair_final/{label}_{number}.JPG"
                picture(folder / file, label % 250, (30, 40))
                lines.append(f"{len(lines)} {label} 1 {file}")
        (folder / f"Ebay_{half}.txt").write_text("\n".join(lines) + "\n")
    return folder


def inshop(folder: Path, eval_folder: str = "Eval", image_folder: str = "Img") -> Path:
    """In-Shop: two classes train, one of them with one image; two test, with queries and a gallery."""
    lines = []
    for item, statuses in {
        "id_00000002": ["train", "train"],
        "id_00000003": ["train"],
        "id_00000007": ["query", "gallery", "gallery"],
        "id_00000001": ["query", "gallery"],
    }.items():
        for number, status in enumerate(statuses):
            name = f"img/WOMEN/Dresses/{item}/0{number}_1_front.jpg"
            picture(folder / image_folder / name, int(item[-1]) * 20)
            lines.append(f"{name:<60} {item} {status}")
    path = folder / eval_folder / "list_eval_partition.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{len(lines)}\nimage_name item_id evaluation_status\n" + "\n".join(lines) + "\n")
    return path


def omniglot(root: Path, side: int = 105) -> dict[str, np.ndarray]:
    """`omniglot-py/` with two alphabets in each half and three drawings of a character, by path: True is a stroke."""
    drawn: dict[str, np.ndarray] = {}
    generator = np.random.default_rng(0)
    alphabets = {"background": ("Greek", "Anglo-Saxon_Futhorc"), "evaluation": ("ULOG", "Angelic")}
    for half, names in alphabets.items():
        for place in (f"{name}/character0{character}" for name in names for character in (2, 1)):
            for number in range(1, 4):
                strokes = generator.random((side, side)) < 0.3
                path = root / "omniglot-py" / f"images_{half}" / place / f"0709_{number:02}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(~strokes).save(path)  # one bit a pixel, and paper is 1
                drawn[f"{half}/{place}/{number}"] = strokes
    return drawn


def class_folders(folder: Path, classes: Mapping[str, int]) -> None:
    """A folder of class folders."""
    for shade, (name, count) in enumerate(classes.items(), 1):
        for number in range(count):
            picture(folder / name / f"{number}.jpg", shade * 20)
