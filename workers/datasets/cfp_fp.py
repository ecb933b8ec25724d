"""CFP-FP: pairs of a face from the front and one in profile, to verify."""

from workers.datasets._shared import FacePairs


class CfpFp(FacePairs):
    """7,000 pairs of a frontal and a profile photograph in ten folds, half of them of one person; none of them train.

    Read from InsightFace's `cfp_fp.bin`, in the data root or next to `train.rec`, else from `cfp_fp/` with `pairs.txt`
    in LFW's format and `PERSON/PERSON_0001.jpg`. Faces must be aligned as InsightFace aligns them, to 112x112 pixels;
    others are resized to `side`, without keeping their aspect. `official: false` accepts another number of pairs.
    """

    label = "CFP-FP"
    paper = "Sengupta et al. 2016"
    pairs = {"test": 7000}
    _files = ("cfp_fp.bin",)
    _folders = ("cfp_fp",)
