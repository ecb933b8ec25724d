"""CUB-200-2011: birds, the first hundred species train, the others test."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge

from workers.data import listing
from workers.data.listing import Listed, Source
from workers.data.pictures import Form, Picture


class Cub200:
    """11,788 photographs of 200 species of birds: classes 1 to 100 train, 101 to 200 test.

    Read from `CUB_200_2011/` with `images.txt`, `image_class_labels.txt` and `images/`. Its `train_test_split.txt`
    divides the images of every class and is not for retrieval. `official: false` takes a part of the data set.
    """

    label = "CUB-200-2011"
    paper = "Wah et al. 2011"
    version = 1
    classes: ClassVar[Mapping[str, int]] = {"train": 100, "test": 100}
    images: ClassVar[Mapping[str, int]] = {"train": 5864, "test": 5924}
    channels = 3
    side = 256
    metrics = (
        "recall@1", "recall@2", "recall@4", "recall@8", "map@r", "r_precision", "nmi", "nmi@geometric", "f1",
        "norm_mean", "norm_var", "s_mu", "s_mu_upper",
    )  # fmt: skip
    manifest = None

    def __init__(
        self,
        root: Path,
        scratch: Path,
        *,
        side: Annotated[int, Ge(1)] = 256,
        resize: Literal["shorter", "square"] = "shorter",
        official: bool = True,
        content: str | None = None,
    ) -> None:
        self.official, self.expected = official, content
        folder = listing.folder(root, ["CUB_200_2011"], "images.txt")
        path = folder / "image_class_labels.txt"
        names = dict(listing.rows(folder / "images.txt", 2))
        labels = dict(listing.rows(path, 2))
        every = [
            Listed(Picture(folder / "images" / name), label, name=_species(name))
            for name, label in listing.joined(path, labels, names)
        ]
        source = Source("cub200", Form(resize, side), scratch, type(self), official)
        self.train, self.test, self.content, self.notes = listing.load(
            source, [one for one in every if int(one.label) <= 100], [one for one in every if int(one.label) > 100]
        )


def _species(path: str) -> str:
    """`Crested Auklet` of `006.Crested_Auklet/Crested_Auklet_0001.jpg`."""
    return path.partition("/")[0].partition(".")[2].replace("_", " ")
