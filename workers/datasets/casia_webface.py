"""CASIA-WebFace: the faces that SEC's recognition trains on."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from annotated_types import Ge

from workers.contract import DataDamagedError
from workers.data import listing
from workers.data.class_folders import class_folders
from workers.data.faces import Record, read_records
from workers.data.file_content import missing
from workers.data.listing import Listed, Source
from workers.data.pictures import Form, Picture, read_text
from workers.datasets._shared import FacePairs
from workers.datasets.agedb30 import AgeDb30
from workers.datasets.cfp_fp import CfpFp
from workers.datasets.lfw import Lfw
from workers.datasets.megaface import Megaface

_RECORDS: Final = ("faces_webface_112x112", "faces_webface", ".")
_FOLDERS: Final = ("casia_webface", "CASIA-WebFace", "casia-112x112", "webface_112x112")
_TESTS: Final[Mapping[str, type[FacePairs | Megaface]]] = {
    "lfw": Lfw,
    "agedb30": AgeDb30,
    "cfp_fp": CfpFp,
    "megaface": Megaface,
}


class CasiaWebface:
    """490,623 photographs of 10,572 people, aligned to 112x112 pixels; all of them train.

    Read from InsightFace's `faces_webface_112x112/` with `train.rec`, `train.idx` and `property`, else from
    `casia_webface/` with a folder for each person (`official: false`, since packs differ in their number). `test` names
    the pairs to verify: `lfw`, `agedb30` or `cfp_fp`, which are in the same folder; `tests` names further sets for the
    final weights, such as `test_agedb30`, of which one may be `megaface`.
    """

    label = "CASIA-WebFace"
    paper = "Yi et al. 2014"
    classes = {"train": 10572}
    images = {"train": 490623}
    channels = 3
    side = 112
    manifest = None
    added = ("tests",)

    def __init__(  # noqa: PLR0913 - each is one choice of which images are taken
        self,
        root: Path,
        scratch: Path,
        *,
        test: Literal["lfw", "agedb30", "cfp_fp"] = "lfw",
        tests: tuple[Literal["lfw", "agedb30", "cfp_fp", "megaface"], ...] = (),
        side: Annotated[int, Ge(1)] = 112,
        official: bool = True,
        on_error: Literal["stop", "skip"] = "stop",
        content: str | None = None,
    ) -> None:
        self.official, self.expected = official, content
        self.notes: tuple[str, ...] = ()
        listed = _recorded(root)
        if not listed:
            listed, self.notes = _foldered(root)
        source = Source("casia_webface", Form("square", side), scratch, type(self), official, on_error)
        self.train, trained = listing.load_half(source, "train", listed)
        tested = _TESTS[test](root, scratch, side=side, official=official)
        self.test = tested.test
        self.tests = {name: _TESTS[name](root, scratch, side=side, official=official).test for name in tests}
        self.content = f"sha256:{hashlib.sha256(f'{trained} {tested.content}'.encode()).hexdigest()}"


def _recorded(root: Path) -> list[Listed] | None:
    """The faces of InsightFace's records; None if they do not exist."""
    folder = next((root / name for name in _RECORDS if (root / name / "train.rec").exists()), None)
    if folder is None:
        return None
    path = folder / "train.rec"
    listed = []
    for face in _faces(path, read_records(path)):
        picture = Picture(path, face.content, f"record {face.number} (byte {face.offset:,}) of {path}")
        listed.append(Listed(picture, _person(path, face)))
    _compare(folder / "property", listed)
    return listed


def _faces(path: Path, records: list[Record]) -> list[Record]:
    """The records of images: all, or those before the number in an empty record 0.

    After these InsightFace has a record for each person, with the range of their images.
    """
    first, *others = records
    if first.number != 0 or first.content or len(first.labels) < 2:
        return records
    past = first.labels[0]
    if not (past.is_integer() and 1 < past <= 2**31):
        raise _damaged(path, first, f"it says that images end before record {past}")
    faces = [record for record in others if record.number < past]
    if len(faces) != int(past) - 1:
        raise _damaged(path, first, f"it declares {int(past) - 1:,} images, but the index lists {len(faces):,} of them")
    return faces


def _person(path: Path, record: Record) -> int:
    label = record.labels[0]
    if not (label.is_integer() and 0 <= label < 2**31):
        raise _damaged(path, record, f"expected the number of a person, found {label}")
    if not record.content:
        raise _damaged(path, record, "it has no image")
    return int(label)


def _damaged(path: Path, record: Record, why: str) -> DataDamagedError:
    return DataDamagedError(f"{path}: at byte {record.offset:,}: record {record.number}: {why}; fetch it again")


def _compare(path: Path, listed: Sequence[Listed]) -> None:
    """Raise DataDamagedError if the number of people differs from that in the file `property`, `10572,112,112`."""
    text = read_text(path, ": it says how many people there are; fetch it again").strip()
    people = len({face.label for face in listed})
    fields = text.split(",")
    if len(fields) != 3 or not all(field.isascii() and field.isdecimal() for field in fields):
        raise DataDamagedError(f"{path}: expected people, height and width, as `10572,112,112`; found {text[:40]!r}")
    if int(fields[0][:9]) != people:
        raise DataDamagedError(f"{path} says {fields[0]} people, and train.rec has {people:,}; fetch both again")


def _foldered(root: Path) -> tuple[list[Listed], tuple[str, ...]]:
    """The faces in a folder for each person, and what was skipped."""
    folder = next((root / name for name in _FOLDERS if (root / name).is_dir()), None)
    if folder is None:
        looked = f"looked in {root.absolute()} for it and for {' or '.join(_FOLDERS)}"
        raise missing(f"{_RECORDS[0]}/train.rec is missing: {looked}", "the data set")
    classes, notes = class_folders(folder)
    return [image for images in classes.values() for image in images], notes
