"""Stanford Online Products: many classes of very few photographs each."""

from pathlib import Path

from workers.data import listing
from workers.data.listing import Listed
from workers.data.pictures import Picture
from workers.datasets._shared import Photographs


class Sop(Photographs):
    """120,053 photographs of 22,634 things on sale, 2 to 12 of each: `Ebay_train.txt` trains, `Ebay_test.txt` tests.

    Read from `Stanford_Online_Products/` with these two lists and the folders `*_final/`. Half of the training classes
    have fewer than 5 images. `official: false` takes a part of the data set.
    """

    label = "SOP"
    paper = "Oh Song et al., CVPR 2016"
    classes = {"train": 11318, "test": 11316}
    images = {"train": 59551, "test": 60502}
    metrics = (
        "recall@1", "recall@8", "recall@10", "recall@100", "recall@1000", "map@r", "r_precision", "nmi",
        "nmi@geometric", "f1", "norm_mean", "norm_var", "s_mu",
    )  # fmt: skip

    def _halves(self, root: Path) -> list[list[Listed]]:
        folder = listing.folder(root, ["Stanford_Online_Products"], "Ebay_train.txt")
        return [_listed(folder, folder / f"Ebay_{half}.txt") for half in listing.HALVES]


def _listed(folder: Path, path: Path) -> list[Listed]:
    """The images of a list, which begins with `image_id class_id super_class_id path`."""
    lines = listing.rows(path, 4, skip=1)
    return [
        Listed(Picture(folder / name), listing.number(path, label), name=f"{name.partition('_final/')[0]} {label}")
        for _, label, _, name in lines
    ]
