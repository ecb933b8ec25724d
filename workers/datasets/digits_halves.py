"""scikit-learn's digits as classification has them: all ten digits train, and all ten are tested."""

from workers.data.images import Images
from workers.datasets.digits import all_digits


class DigitsHalves:
    """1,797 handwritten digits of 8x8 pixels, bundled with scikit-learn: the first 1,200 train, the last 597 test.

    So the test split shows digits that were trained; `digits` is retrieval of classes never seen.
    """

    label = "Digits, both halves"
    paper = "Alpaydin & Kaynak 1998, Optical Recognition of Handwritten Digits"
    classes = {"train": 10, "test": 10}
    images = {"train": 1200, "test": 597}
    same_classes = True
    channels = 1
    side = 8
    manifest = "sha256:926fe8228b055f671fbc6feffb1111d79f2381c2ce66df1bf4789a6164ba24a5"

    def __init__(self) -> None:
        every, number = all_digits(), self.images["train"]
        self.train, self.test = (_part(every, which) for which in (slice(number), slice(number, None)))


def _part(every: Images, which: slice) -> Images:
    return Images(every.images[which], every.labels[which], names=every.names)
