"""In-Shop Clothes Retrieval: queries are searched in a gallery of other photographs."""

from pathlib import Path
from typing import Annotated, Final, Literal

from annotated_types import Ge

from workers.contract import DataDamagedError
from workers.data import listing
from workers.data.listing import Listed, Source
from workers.data.pictures import Form, Picture

_FOLDERS: Final = (
    "In-shop Clothes Retrieval Benchmark", "DeepFashion/In-shop Clothes Retrieval Benchmark", "Inshop_Clothes",
    "inshop",
)  # fmt: skip
_PARTITION: Final = "list_eval_partition.txt"


class InShop:
    """52,712 photographs of 7,982 garments: `train` trains; in `test` 14,218 queries are searched among 12,612 others.

    Read from `In-shop Clothes Retrieval Benchmark/` with `Eval/list_eval_partition.txt` and `Img/`, or from a folder
    `Inshop_Clothes` or `inshop` with the list and `img/` in it. `highres` takes `img_highres/`. Twelve of the training
    classes have one image. `official: false` takes a part of the data set.
    """

    label = "In-Shop"
    paper = "Liu et al., CVPR 2016 (DeepFashion)"
    classes = {"train": 3997, "test": 3985}
    images = {"train": 25882, "test": 26830}
    queries = {"test": 14218}
    channels = 3
    side = 256
    metrics = (
        "recall@1", "recall@10", "recall@20", "recall@30", "recall@40", "recall@50", "map@r", "r_precision",
        "norm_mean", "norm_var", "s_mu",
    )  # fmt: skip
    manifest = None

    def __init__(  # noqa: PLR0913 - each is one choice of which images are taken
        self,
        root: Path,
        scratch: Path,
        *,
        side: Annotated[int, Ge(1)] = 256,
        resize: Literal["shorter", "square"] = "shorter",
        highres: bool = False,
        official: bool = True,
        on_error: Literal["stop", "skip"] = "stop",
        content: str | None = None,
    ) -> None:
        self.official, self.expected = official, content
        train, test = _halves(root, "img_highres" if highres else "img")
        source = Source("inshop", Form(resize, side), scratch, type(self), official, on_error)
        self.train, self.test, self.content, self.notes = listing.load(source, train, test)


def _halves(root: Path, images: str) -> tuple[list[Listed], list[Listed]]:
    folder = listing.folder(root, _FOLDERS, f"Eval/{_PARTITION}", _PARTITION)
    path = next(path for path in (folder / "Eval" / _PARTITION, folder / _PARTITION) if path.exists())
    holder = folder / "Img" if (folder / "Img" / images).is_dir() else folder
    header, lines = listing.rows(path, 1)[:1], listing.rows(path, 3, skip=2)
    if header and header[0][0].strip() != str(len(lines)):
        raise DataDamagedError(f"{path}: its first line declares {header[0][0]} images, but {len(lines):,} follow")
    halves: dict[str, list[Listed]] = {"train": [], "query": [], "gallery": []}
    for name, item, status in lines:
        if status.strip() not in halves:
            raise DataDamagedError(f"{path}: expected train, query or gallery, found {status!r}")
        picture = Picture(holder / images / name.removeprefix("img/"))
        halves[status.strip()].append(Listed(picture, item, None if status == "train" else status.strip() == "query"))
    return halves["train"], halves["query"] + halves["gallery"]
