"""CUB-200-2011: birds, the first hundred species train, the others test."""

from pathlib import Path

from workers.data import listing
from workers.data.listing import Listed
from workers.data.pictures import Picture
from workers.datasets._shared import Photographs


class Cub200(Photographs):
    """11,788 photographs of 200 species of birds: classes 1 to 100 train, 101 to 200 test.

    Read from `CUB_200_2011/` with `images.txt`, `image_class_labels.txt` and `images/`. Its `train_test_split.txt`
    divides the images of every class and is not for retrieval. `official: false` takes a part of the data set.
    """

    label = "CUB-200-2011"
    paper = "Wah et al. 2011"
    classes = {"train": 100, "test": 100}
    images = {"train": 5864, "test": 5924}
    metrics = (
        "recall@1", "recall@2", "recall@4", "recall@8", "map@r", "r_precision", "nmi", "nmi@geometric", "f1",
        "norm_mean", "norm_var", "s_mu", "s_mu_upper",
    )  # fmt: skip

    def _halves(self, root: Path) -> list[list[Listed]]:
        folder = listing.folder(root, ["CUB_200_2011"], "images.txt")
        path, images = folder / "image_class_labels.txt", folder / "images"
        names = dict(listing.rows(folder / "images.txt", 2))
        labels = dict(listing.rows(path, 2))
        # `006.Crested_Auklet/Crested_Auklet_0001.jpg` shows a `Crested Auklet`.
        every = [
            Listed(Picture(images / name), label, name=name.split("/")[0].partition(".")[2].replace("_", " "))
            for name, label in listing.joined(path, labels, names)
        ]
        return [[image for image in every if (int(image.label) <= 100) is half] for half in (True, False)]
