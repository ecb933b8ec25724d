"""Any folder of class folders, split by classes."""

from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge

from workers.contract import DataOptionError
from workers.data import listing
from workers.data.class_folders import class_folders
from workers.data.listing import Source
from workers.data.pictures import Form, inside


class ImageFolder:
    """A folder under the data root whose folders are the classes, with images at any depth in them.

    In the order of their names the first `train_classes` classes train and the others test; none: the first half.
    Links to files and folders count. What is hidden, what a NAS leaves and what has another suffix than that of an
    image is passed over, with a note. Images are turned as the orientation in their EXIF data says. With `content`
    other images than those with this hash are refused.
    """

    label = "Image folder"
    version = 2
    channels = 3
    manifest = None

    def __init__(  # noqa: PLR0913 - each is one choice of which images are taken
        self,
        root: Path,
        scratch: Path,
        *,
        folder: str,
        train_classes: Annotated[int, Ge(1)] | None = None,
        side: Annotated[int, Ge(1)] = 256,
        resize: Literal["shorter", "square"] = "shorter",
        on_error: Literal["stop", "skip"] = "stop",
        content: str | None = None,
    ) -> None:
        self.expected = content
        place = root / inside(folder)
        classes, notes = class_folders(place)
        first = len(classes) // 2 if train_classes is None else train_classes
        if not 0 < first < len(classes):
            raise DataOptionError(f"dataset.train_classes: expected 1 to {len(classes) - 1}, found {first}")
        names = sorted(classes)
        halves = [[image for name in half for image in classes[name]] for half in (names[:first], names[first:])]
        source = Source(f"folder-{place.name}", Form(resize, side, upright=True), scratch, on_error=on_error)
        self.train, self.test, self.content, repeated = listing.load(source, *halves)
        self.notes = notes + repeated
