"""AgeDB-30: pairs of faces to verify, thirty years apart."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

from annotated_types import Ge

from workers.data import faces


class AgeDb30:
    """6,000 pairs of photographs in ten folds, half of them of one person at two ages; nothing of it trains.

    Read from InsightFace's `agedb_30.bin`, in the data root or beside `train.rec`, else from `agedb_30/` with
    `pairs.txt`, as LFW prints its own, and `PERSON/PERSON_0001.jpg`. Faces must be aligned as InsightFace aligns them,
    to 112x112 pixels; others are brought to `side`, squashed. `official: false` takes another number of pairs.
    """

    label = "AgeDB-30"
    paper = "Moschoglou et al. 2017"
    version = 1
    classes: ClassVar[Mapping[str, int]] = {"train": 0}
    images: ClassVar[Mapping[str, int]] = {"train": 0}
    pairs: ClassVar[Mapping[str, int]] = {"test": 6000}
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
