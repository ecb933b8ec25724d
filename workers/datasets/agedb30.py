"""AgeDB-30: pairs of faces to verify, thirty years apart."""

from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from workers.data import faces


class AgeDb30:
    """6,000 pairs of photographs in ten folds, half of them of one person at two ages; none of them train.

    Read from InsightFace's `agedb_30.bin`, in the data root or next to `train.rec`, else from `agedb_30/` with
    `pairs.txt` in LFW's format and `PERSON/PERSON_0001.jpg`. Faces must be aligned as InsightFace aligns them, to
    112x112 pixels; others are resized to `side`, without keeping their aspect. `official: false` accepts another number
    of pairs.
    """

    label = "AgeDB-30"
    paper = "Moschoglou et al. 2017"
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
        self.test, self.content = faces.load("agedb30", root, scratch, side, official)
