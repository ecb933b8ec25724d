"""Labeled Faces in the Wild: pairs of faces to verify, of people who did not train."""

from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from workers.data import faces


class Lfw:
    """6,000 pairs of photographs in ten folds, half of them of one person; none of them train.

    Read from InsightFace's `lfw.bin`, in the data root or next to `train.rec`, else from `lfw/` with `pairs.txt` and
    `PERSON/PERSON_0001.jpg`. Faces must be aligned as InsightFace aligns them, to 112x112 pixels; others are resized to
    `side`, without keeping their aspect. `official: false` accepts another number of pairs.
    """

    label = "LFW"
    paper = "Huang et al. 2007"
    version = 1
    classes = {"train": 0}
    images = {"train": 0}
    pairs = {"test": 6000}
    channels = 3
    side = 112
    manifest = None

    def __init__(
        self,
        root: Path,
        scratch: Path,
        *,
        side: Annotated[int, Ge(1)] = 112,
        official: bool = True,
        content: str | None = None,
    ) -> None:
        self.official, self.expected = official, content
        self.train = faces.none(side)
        self.test, self.content = faces.load("lfw", root, scratch, side, official)
