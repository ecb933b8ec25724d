"""The files of the figures that a recipe asks for: data as `.npz`, and what is of images as a picture too."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from workers.data.images import Images
from workers.figures import feature_maps
from workers.figures.arrays import Arrays, packed
from workers.figures.contact_sheet import RetrievalRow, contact_sheet
from workers.figures.options import FeatureMaps, Panels
from workers.training.session import Session


def drawn(session: Session) -> dict[str, bytes]:
    """The content of each file by its name, of the present weights and of what was followed on the way."""
    drawn = session.task.draw(session.recipe.figures)
    files: dict[str, bytes] = {}
    for figure in session.recipe.figures:
        files[f"{figure.file}.npz"] = packed(drawn[figure.file])
        if isinstance(figure, Panels | FeatureMaps) and session.batches:
            images = session.batches.pictures.named(figure.split)
            made = sheet if isinstance(figure, Panels) else _maps
            files[f"{figure.file}.png"] = made(images, drawn[figure.file], figure.side)
    return files


def write(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write files into `folder`, each aside and renamed; gives their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        aside = folder / f".{name}.{os.getpid()}"
        try:
            aside.write_bytes(content)
            aside.replace(folder / name)
        finally:
            aside.unlink(missing_ok=True)
    return [*files]


def sheet(images: Images, arrays: Arrays, side: int) -> bytes:
    """The picture of a split's `panels`, as the data set has its images and with the names of classes that it has."""

    def pixels(index: int) -> NDArray[np.uint8]:
        batch, sizes = images.take(torch.tensor([index]))
        height, width = sizes[0].tolist()
        found: NDArray[np.uint8] = batch[0, :, :height, :width].permute(1, 2, 0).cpu().numpy()
        return found[:, :, 0] if found.shape[2] == 1 else found

    columns = (arrays[key].tolist() for key in RetrievalRow._fields)
    return contact_sheet([RetrievalRow(*row) for row in zip(*columns, strict=True)], pixels, _names(images), side)


def _maps(images: Images, arrays: Arrays, side: int) -> bytes:
    return feature_maps.sheet(arrays, _names(images), side)


def _names(images: Images) -> Callable[[int], str]:
    """The name of the class of an image by its index."""

    def name(index: int) -> str:
        label = int(images.labels[index])
        return f"class {label}" if images.names is None else images.names[label]

    return name
