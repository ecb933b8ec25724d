"""ImageNet: the photographs of a thousand classes, the same in both halves."""

from pathlib import Path
from typing import Final

from workers.data import listing
from workers.data.class_folders import class_folders
from workers.data.listing import Listed
from workers.datasets._shared import Photographs

_FOLDERS: Final = ("imagenet", "ILSVRC2012", "ImageNet", "ILSVRC/Data/CLS-LOC")


class Imagenet(Photographs):
    """1,331,167 photographs of 1,000 classes: the official halves, the validation images as test.

    Read from `imagenet/` with `train/` and `val/`, each with a folder for each class (`n01440764/`). Decoded they are
    250 GB: where that is more than METRICSWEEP_DECODED_GB, 32 unless it is set, they stay JPEG. `official: false`
    takes a part of the data set.
    """

    label = "ImageNet"
    paper = "Russakovsky et al. 2015"
    classes = {"train": 1000, "test": 1000}
    images = {"train": 1281167, "test": 50000}
    same_classes = True

    def _halves(self, root: Path) -> list[list[Listed]]:
        folder = listing.folder(root, _FOLDERS, "train")
        read = [class_folders(folder / half) for half in ("train", "val")]
        self._passed = tuple(note for half in read for note in half.notes)
        return [[image for images in half.classes.values() for image in images] for half in read]
