"""AgeDB-30: pairs of faces to verify, thirty years apart."""

from workers.datasets._shared import FacePairs


class AgeDb30(FacePairs):
    """6,000 pairs of photographs in ten folds, half of them of one person at two ages; none of them train.

    Read from InsightFace's `agedb_30.bin`, in the data root or next to `train.rec`, else from `agedb_30/` with
    `pairs.txt` in LFW's format and `PERSON/PERSON_0001.jpg`. Faces must be aligned as InsightFace aligns them, to
    112x112 pixels; others are resized to `side`, without keeping their aspect. `official: false` accepts another number
    of pairs.
    """

    label = "AgeDB-30"
    paper = "Moschoglou et al. 2017"
    pairs = {"test": 6000}
    _files = ("agedb_30.bin", "agedb30.bin")
    _folders = ("agedb_30", "agedb30")
