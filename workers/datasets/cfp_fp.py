"""CFP-FP: pairs of a face from the front and one in profile, to verify."""

from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from workers.data import faces


class CfpFp:
    """7,000 pairs of a frontal and a profile photograph in ten folds, half of them of one person; none of them train.

    Read from InsightFace's `cfp_fp.bin`, in the data root or next to `train.rec`, else from `cfp_fp/` with `pairs.txt`
    in LFW's format and `PERSON/PERSON_0001.jpg`. Faces must be aligned as InsightFace aligns them, to 112x112 pixels;
    others are resized to `side`, without keeping their aspect. `official: false` accepts another number of pairs.
    """

    label = "CFP-FP"
    paper = "Sengupta et al. 2016"
    version = 1
    classes = {"train": 0}
    images = {"train": 0}
    pairs = {"test": 7000}
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
        self.test, self.content = faces.load("cfp_fp", root, scratch, side, official)
