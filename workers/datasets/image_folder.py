"""Any folder of class folders, split by classes."""

from pathlib import Path
from typing import Final, Literal

from workers.contract import DataDamagedError, DataMissingError
from workers.data import listing
from workers.data.decoded import Form, Picture
from workers.data.listing import Listed, Source
from workers.data.packs import inside

_SUFFIXES: Final = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff", ".gif"}


class ImageFolder:
    """A folder under the data root whose folders are the classes, with images at any depth in them.

    In the order of their names the first `train_classes` classes train and the others test; none: the first half.
    Hidden files and files with another suffix than that of an image are no images. With `content` other images than
    those with this hash are refused.
    """

    label = "Image folder"
    version = 1
    channels = 3
    manifest = None

    def __init__(
        self,
        root: Path,
        scratch: Path,
        *,
        folder: str,
        train_classes: int | None = None,
        side: int = 256,
        resize: Literal["shorter", "square"] = "shorter",
        content: str | None = None,
    ) -> None:
        self.expected = content
        place = root / inside(folder)
        classes = _classes(place)
        first = len(classes) // 2 if train_classes is None else train_classes
        if not 0 < first < len(classes):
            raise ValueError(f"dataset.train_classes: expected 1 to {len(classes) - 1}, found {first}")
        names = sorted(classes)
        halves = [[one for name in half for one in classes[name]] for half in (names[:first], names[first:])]
        source = Source(f"folder-{place.name}", Form(resize, side), scratch)
        self.train, self.test, self.content = listing.load(source, *halves)


def _classes(folder: Path) -> dict[str, list[Listed]]:
    """The images of each class, in the order of their paths."""
    if not folder.is_dir():
        raise DataMissingError(
            f"the folder {folder.name} is missing: looked in {folder.parent.absolute()}; put it there, or set "
            "METRICSWEEP_DATA (or --data) to the folder that holds it"
        )
    found: dict[str, list[Listed]] = {}
    for path in sorted(folder.glob("*/**/*")):
        inner = path.relative_to(folder).parts
        if path.suffix.lower() in _SUFFIXES and not any(part.startswith(".") for part in inner) and path.is_file():
            found.setdefault(inner[0], []).append(Listed(Picture(path), inner[0]))
    if len(found) < 2:
        raise DataDamagedError(f"{folder}: expected folders of images, one a class; found {len(found)}")
    return found
