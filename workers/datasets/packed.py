"""Packed: a data set in one NumPy file, such as a subset that someone put together."""

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from annotated_types import Ge

from workers.contract import DataDamagedError, DataOptionError
from workers.data import listing
from workers.data.images import Images, content_hash
from workers.data.listing import Listed, Source
from workers.data.pictures import Form, find, inside, names, read_jpegs, read_labels, read_npz


class Packed:
    """A `.npz` file under the data root, with `label` [n], perhaps `split` [n] (0: train, 1: test), and the images.

    These are `jpeg` (all files one after another) with `offset` [n + 1], or `image`, uint8 [n, h, w] or [n, h, w, 3].
    Without `split` the first half of the classes train. `side` brings the shorter side of JPEG images to that many
    pixels; none keeps them as they are. With `content` other images than those with this hash are refused.
    """

    label = "Packed"
    version = 2
    manifest = None

    def __init__(
        self,
        root: Path,
        scratch: Path,
        *,
        file: str,
        side: Annotated[int, Ge(1)] | None = None,
        on_error: Literal["stop", "skip"] = "stop",
        content: str | None = None,
    ) -> None:
        self.expected = content
        path = find(root, [inside(file)])
        held = names(path)
        labels, tests = _divided(path, held)
        if "jpeg" in held:
            every = [*map(Listed, read_jpegs(path, len(labels)), labels.tolist())]
            form = Form("keep") if side is None else Form("shorter", side)
            source = Source(f"packed-{path.stem}", form, scratch, on_error=on_error)
            train, test = ([every[place] for place in np.flatnonzero(tests == half)] for half in (False, True))
            self.train, self.test, self.content, self.notes = listing.load(source, train, test)
            return
        if side is not None:
            raise DataOptionError(f"dataset.side: {file} holds pixels, which stay as they are; leave it out")
        images = _pixels(path, len(labels))
        self.train, self.test = (
            Images(images[torch.from_numpy(tests == half)], listing.contiguous(labels[tests == half]))
            for half in (False, True)
        )
        self.content = content_hash(self)
        digests = [
            (hashlib.sha256(image.numpy().data).hexdigest(), f"image {place} of {path}")
            for place, image in enumerate(images)
        ]
        halves = ([digests[place] for place in np.flatnonzero(tests == half)] for half in (False, True))
        self.notes = tuple(listing.shared(*halves))


def _divided(path: Path, held: list[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The label of each image, and whether it is a test image."""
    labels = read_labels(path)
    if "split" in held:
        (split,) = read_npz(path, ["split"])
        if split.shape != labels.shape or not np.isin(split, (0, 1)).all():
            raise DataDamagedError(f"{path}: expected a split of 0 (train) or 1 (test) for each of its labels")
        tests = split == 1
    else:
        classes = np.unique(labels)
        tests = np.isin(labels, classes[len(classes) // 2 :])
    if not len(labels) or tests.all() or not tests.any():
        raise DataDamagedError(f"{path}: one of the splits has no images")
    return labels, tests


def _pixels(path: Path, count: int) -> torch.Tensor:
    """The images of a pack of pixels, uint8 [n, c, h, w]."""
    (image,) = read_npz(path, ["image"])
    image = image[..., None] if image.ndim == 3 else image
    if image.dtype != np.uint8 or image.ndim != 4 or len(image) != count or image.shape[3] not in (1, 3):
        raise DataDamagedError(f"{path}: expected {count:,} images of bytes, [n, h, w] or [n, h, w, 3]")
    return torch.from_numpy(np.ascontiguousarray(image.transpose(0, 3, 1, 2)))
