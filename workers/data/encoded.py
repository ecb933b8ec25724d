"""Data sets that are too large to lie decoded: their images stay as they are, and are decoded ahead of each step."""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from tqdm import tqdm  # type: ignore[import-untyped]

from workers.data import looking
from workers.data.decoded import HASHED, Decoded, decoded, sketched
from workers.data.disk_limit import disk_limit
from workers.data.file_content import note
from workers.data.images import Images
from workers.data.picture import UNREADABLE, Broken, Form, Picture, key, processors, shapes_of, unreadable
from workers.data.scratch import UnsafeFolderError, built, named, opened, private

SETTING: Final = "METRICSWEEP_DECODED_GB"
"""The environment variable that says from which size on the images of a data set stay as they are."""
USUAL: Final = 32.0
"""Where it says nothing: what the photographs of SOP need at 256 pixels fits, those of ImageNet do not."""

_MEASURED: Final = 1_000  # headers by which the size of all images is estimated
_TOGETHER: Final = 32  # images of a thread that are decoded before they are hashed


@dataclass(frozen=True)
class Encoded:
    """All images of a data set in order, as they lie on disk."""

    pictures: Sequence[Picture]
    form: Form
    shapes: torch.Tensor  # int64 [n, 4]: first byte if they were decoded, channels, height, width
    digest: str  # of pixels and shapes, as of the same images decoded

    def split(self, rows: range, labels: torch.Tensor, query: torch.Tensor | None = None) -> Images:
        """The images at `rows` as a split."""
        shapes = self.shapes[rows.start : rows.stop].clone()
        shapes[:, 0] = torch.arange(rows.start, rows.stop)
        return Images(torch.zeros(0, dtype=torch.uint8), labels, shapes, query, undecoded=self)

    def decode(self, number: int, into: torch.Tensor) -> None:
        """Write the pixels of an image to `into`, uint8 [channels, height, width]; raises DataDamagedError."""
        try:
            self.form.decode(self.pictures[number], into.numpy())
        except UNREADABLE as error:  # it was not so when all of them were looked at
            raise unreadable([Broken(self.pictures[number], error)]) from error


def stored(name: str, pictures: Sequence[Picture], form: Form, scratch: Path) -> Decoded | Encoded:
    """The `pictures` decoded once per machine, or as they are where that would take more than METRICSWEEP_DECODED_GB.

    Raises what `decoded` raises, and ValueError where the setting is no number. The pixels are the same either way.
    """
    note(*{picture.path for picture in pictures})
    return (encoded if _size(pictures, form) > limit() else decoded)(name, pictures, form, scratch)


def limit() -> float:
    """The bytes that decoded images of a data set may take; raises ValueError."""
    return disk_limit(SETTING, USUAL, "from 0 on", lambda gigabytes: gigabytes >= 0)


def _size(pictures: Sequence[Picture], form: Form) -> float:
    """About how many bytes the decoded images take, by the headers of some of them; 0 where these cannot be read."""
    some = pictures[:: math.ceil(len(pictures) / _MEASURED) or 1]
    try:
        return sum(form.channels * math.prod(form.shape(one)) for one in some) / max(1, len(some)) * len(pictures)
    except UNREADABLE:  # which is told with all others that are missing or damaged
        return 0


def encoded(name: str, pictures: Sequence[Picture], form: Form, scratch: Path) -> Encoded | Decoded:
    """The `pictures` as they are, once each of them was decoded on this machine: what is damaged is told before a step.

    What that found, shapes and a hash, is kept in `scratch`. Raises what `decoded` raises. While somebody only looks at
    the data set nothing is decoded.
    """
    folder = private(scratch / "encoded") / named(name, key(pictures, form, scratch))
    images = _read(folder, pictures, form)
    if images is not None:
        return images
    if (look := looking.current()) is not None:
        return sketched(pictures, form, look)
    return built(folder, lambda: _read(folder, pictures, form), lambda aside: _write(aside, pictures, form))


def _read(folder: Path, pictures: Sequence[Picture], form: Form) -> Encoded | None:
    """What was found of the pictures before; None where nothing is there, or something else."""
    try:
        with opened(folder / "about.json") as file:
            about: dict[str, Any] = json.load(file)
        with opened(folder / "shapes.npy") as file:
            shapes = np.load(file, allow_pickle=False)
    except UnsafeFolderError:
        raise
    except (OSError, ValueError):
        return None
    if shapes.shape != (len(pictures), 4) or about.get("shapes") != hashlib.sha256(shapes.tobytes()).hexdigest():
        return None
    return Encoded(pictures, form, torch.from_numpy(shapes), about["digest"])


def _write(folder: Path, pictures: Sequence[Picture], form: Form) -> None:
    """Decode every picture once and keep what is known then."""
    shapes = shapes_of(pictures, form)
    about = {"digest": _digest(pictures, form, shapes), "shapes": hashlib.sha256(shapes.tobytes()).hexdigest()}
    np.save(folder / "shapes.npy", shapes)
    (folder / "about.json").write_text(json.dumps({**about, "images": len(pictures), **asdict(form)}), "utf-8")


def _digest(pictures: Sequence[Picture], form: Form, shapes: np.ndarray) -> str:
    """What `workers.data.decoded.digest` gives of the same images, with few of them in memory at a time."""
    whole, chunk, room = hashlib.sha256(shapes.astype("<i8").tobytes()), hashlib.sha256(), HASHED
    for pixels in _pixels(pictures, form, shapes):
        left = pixels.data
        while len(left) >= room:
            chunk.update(left[:room])
            whole.update(chunk.digest())
            left, chunk, room = left[room:], hashlib.sha256(), HASHED
        chunk.update(left)
        room -= len(left)
    if room < HASHED:
        whole.update(chunk.digest())
    return f"sha256:{whole.hexdigest()}"


def _pixels(pictures: Sequence[Picture], form: Form, shapes: np.ndarray) -> Iterator[np.ndarray]:
    """The pixels of each picture in order, flat; raises DataDamagedError that says which cannot be decoded."""
    broken: list[Broken] = []

    def one(number: int) -> np.ndarray:
        pixels = np.zeros(shapes[number, 1:], np.uint8)
        try:
            form.decode(pictures[number], pixels)
        except UNREADABLE as error:
            broken.append(Broken(pictures[number], error))
        return pixels.reshape(-1)

    together = _TOGETHER * processors()
    with ThreadPoolExecutor(processors()) as threads, tqdm(total=len(pictures), desc="decoding", disable=None) as bar:
        for first in range(0, len(pictures), together):
            block = range(first, min(first + together, len(pictures)))
            yield from threads.map(one, block)
            bar.update(len(block))
    if broken:
        raise unreadable(broken)
