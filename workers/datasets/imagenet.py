"""ImageNet: the photographs of a thousand classes, the same in both halves."""

from pathlib import Path
from typing import Annotated, Final, Literal

from annotated_types import Ge

from workers.data import listing
from workers.data.class_folders import class_folders
from workers.data.listing import Source
from workers.data.pictures import Form

_FOLDERS: Final = ("imagenet", "ILSVRC2012", "ImageNet", "ILSVRC/Data/CLS-LOC")


class Imagenet:
    """1,331,167 photographs of 1,000 classes: the official halves, the validation images as test.

    Read from `imagenet/` with `train/` and `val/`, each with a folder for each class (`n01440764/`). Decoded they are
    250 GB: where that is more than METRICSWEEP_DECODED_GB, 32 unless it is set, they stay JPEG. `official: false`
    takes a part of the data set.
    """

    label = "ImageNet"
    paper = "Russakovsky et al. 2015"
    version = 1
    classes = {"train": 1000, "test": 1000}
    images = {"train": 1281167, "test": 50000}
    same_classes = True
    channels = 3
    side = 256
    manifest = None

    def __init__(
        self,
        root: Path,
        scratch: Path,
        *,
        side: Annotated[int, Ge(1)] = 256,
        resize: Literal["shorter", "square"] = "shorter",
        official: bool = True,
        on_error: Literal["stop", "skip"] = "stop",
        content: str | None = None,
    ) -> None:
        self.official, self.expected = official, content
        folder = listing.folder(root, _FOLDERS, "train")
        read = [class_folders(folder / half) for half in ("train", "val")]
        halves = [[image for images in half.classes.values() for image in images] for half in read]
        source = Source("imagenet", Form(resize, side), scratch, type(self), official, on_error)
        self.train, self.test, self.content, repeated = listing.load(source, *halves)
        self.notes = tuple(note for half in read for note in half.notes) + repeated
