"""Labeled Faces in the Wild: pairs of faces to verify, of people who did not train."""

from workers.datasets._shared import FacePairs


class Lfw(FacePairs):
    """6,000 pairs of photographs in ten folds, half of them of one person; none of them train.

    Read from InsightFace's `lfw.bin`, in the data root or next to `train.rec`, else from `lfw/` with `pairs.txt` and
    `PERSON/PERSON_0001.jpg`. Faces must be aligned as InsightFace aligns them, to 112x112 pixels; others are resized to
    `side`, without keeping their aspect. `official: false` accepts another number of pairs.
    """

    label = "LFW"
    paper = "Huang et al. 2007"
    pairs = {"test": 6000}
    _files = ("lfw.bin",)
    _folders = ("lfw", "lfw_112x112", "lfw-deepfunneled")
