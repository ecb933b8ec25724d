"""The names of classes, for people: where the data set has them, by the labels that it gets."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from tests.workers import trees
from workers.contract import Part
from workers.data.images import DataSet, Images
from workers.registry import build


def names(part: Part, root: Path) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    loaded: DataSet = build("dataset", part, root=root, scratch=root / "scratch")
    for split in (loaded.train, loaded.test):
        assert split.names is None or len(split.names) == split.classes
    return loaded.train.names, loaded.test.names


def test_species(tmp_path: Path) -> None:
    trees.cub(tmp_path)
    found = names(Part(name="cub200", official=False), tmp_path)
    assert found == (("Albatross", "Auklet", "Pelican"), ("Pelican", "Yellowthroat"))


@pytest.mark.parametrize("layout", ["original", "devkit"])
def test_car_models(layout: str, tmp_path: Path) -> None:
    part = Part(name="cars196", official=False)
    folder = trees.cars(tmp_path, layout)
    assert names(part, tmp_path) == (("1", "2", "98"), ("99", "196"))  # the numbers, where no file has names
    models = np.array([f"Model {number}" for number in range(1, 197)], dtype=object)
    file = folder / ("cars_annos.mat" if layout == "original" else "devkit/cars_meta.mat")
    held = scipy.io.loadmat(file) if file.exists() else {}
    scipy.io.savemat(file, {key: value for key, value in held.items() if key[0] != "_"} | {"class_names": models})
    assert names(part, tmp_path) == (("Model 1", "Model 2", "Model 98"), ("Model 99", "Model 196"))


def test_car_models_by_folders(tmp_path: Path) -> None:
    trees.cars(tmp_path, "folders")
    found = names(Part(name="cars196", official=False), tmp_path)
    assert found == (("Model 1", "Model 2", "Model 98"), ("Model 99", "Model 196"))


def test_things_on_sale_clothes_and_folders(tmp_path: Path) -> None:
    trees.sop(tmp_path)
    assert names(Part(name="sop", official=False), tmp_path)[1] == ("chair 11319", "chair 22634")
    trees.inshop(tmp_path / "inshop", image_folder=".")
    assert names(Part(name="inshop", official=False), tmp_path)[1] == ("id_00000001", "id_00000007")
    trees.class_folders(tmp_path / "zoo", {"bear": 2, "ant": 2, "cow": 2, "dog": 2})
    assert names(Part(name="image_folder", folder="zoo"), tmp_path) == (("ant", "bear"), ("cow", "dog"))


def test_names_go_with_their_classes() -> None:
    labels = torch.tensor([0, 1, 2, 0, 2])
    whole = Images(labels[:, None, None, None].to(torch.uint8), labels, names=("a", "b", "c"))
    kept = whole.of_classes(torch.tensor([True, False, True])).to(torch.device("cpu"))
    assert kept.names == ("a", "c")
    assert [kept.names[label] for label in kept.labels] == ["a", "c", "a", "c"]
    assert replace(whole, names=None).of_classes(torch.ones(3, dtype=torch.bool)).names is None
