"""Faces: InsightFace's records and `.bin` files, and pairs of images in LFW's format."""

import hashlib
import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import torch

from workers.contract import DataDamagedError, DataMissingError
from workers.data.decoded import stored
from workers.data.file_content import missing, note
from workers.data.images import Images, PairSet
from workers.data.pictures import Form, Picture, check_steps, mapped, read_text, reading

MAGIC: Final = 0xCED7230A
"""The magic number before each part of a record; parts are split where it occurs in the content."""

_PART: Final = struct.Struct("<II")  # the magic number; the kind of part in three bits, its length in the others
_HEADER: Final = struct.Struct("<IfQQ")  # how many labels follow (0: only the next field), the label, two numbers
_LENGTH: Final = 2**29 - 1
_WHOLE, _FIRST, _BETWEEN, _LAST = range(4)  # the kinds of parts
_MOST_LABELS: Final = 1024
_LEAST: Final = _PART.size + _HEADER.size  # bytes of a record


class Record(NamedTuple):
    """An image record of InsightFace's `train.rec`."""

    number: int
    offset: int  # the byte where it begins
    labels: tuple[float, ...]
    content: memoryview


def read_records(path: Path) -> list[Record]:
    """Reads the records of the file `path` that its index (`.idx`) lists, ordered by number.

    The file is mapped, and the contents are views of it. Raises DataMissingError, and DataDamagedError that names the
    file and the byte.
    """
    whole = mapped(path)
    records, end = [], 0
    for offset, number in sorted(_index(path.with_suffix(".idx"), len(whole))):
        if offset < end:
            _refuse(path, offset, f"record {number} begins within the previous record, which ends at byte {end:,}")
        record, end = _record(path, whole, offset, number)
        records.append(record)
    return sorted(records, key=lambda record: record.number)


def _index(path: Path, size: int) -> list[tuple[int, int]]:
    """(offset, number) of each record, for a file of `size` bytes."""
    note(path)
    try:
        with path.open("rb") as file:
            content = file.read(size + 2**20)  # a line of the index is shorter than the record that it lists
    except FileNotFoundError as error:
        raise DataMissingError(f"{path}, the index of the records, is missing; fetch the data set again") from error
    except OSError as error:
        raise DataDamagedError(f"{path} cannot be read; fetch the data set again ({error})") from error
    offsets: dict[int, int] = {}
    at = 0
    for row, line in enumerate(content.split(b"\n"), 1):
        fields = line.split()
        if fields:
            if len(fields) != 2 or not (fields[0].isdigit() and fields[1].isdigit()) or len(line) > 64:
                _refuse(path, at, f"line {row}: expected the number and the byte of a record, found {line[:40]!r}")
            number, offset = int(fields[0]), int(fields[1])
            if number in offsets:
                _refuse(path, at, f"line {row} lists record {number} a second time")
            if offset + _LEAST > size:
                _refuse(path, at, f"record {number} would begin at byte {offset:,}, but the file has {size:,} bytes")
            offsets[number] = offset
        at += len(line) + 1
    if not offsets:
        _refuse(path, 0, "the index lists no records")
    return [(offset, number) for number, offset in offsets.items()]


def _record(path: Path, whole: memoryview, offset: int, number: int) -> tuple[Record, int]:
    """The record at a byte, and the byte where it ends."""
    content, end = _content(path, whole, offset)
    if len(content) < _HEADER.size:
        _refuse(path, offset, f"record {number} has {len(content)} bytes, but its header needs {_HEADER.size}")
    count, label, _, _ = _HEADER.unpack_from(content)
    if count > _MOST_LABELS or _HEADER.size + 4 * count > len(content):
        _refuse(path, offset, f"record {number} of {len(content):,} bytes declares {count:,} labels")
    labels = struct.unpack_from(f"<{count}f", content, _HEADER.size) if count else (label,)
    return Record(number, offset, labels, content[_HEADER.size + 4 * count :]), end


def _content(path: Path, whole: memoryview, offset: int) -> tuple[memoryview, int]:
    """The content of a record, with its parts joined by the magic number, and the byte where it ends."""
    parts: list[memoryview] = []
    at = offset
    while True:
        if at + _PART.size > len(whole):
            _refuse(path, at, f"the file of {len(whole):,} bytes ends within a record")
        magic, rest = _PART.unpack_from(whole, at)
        kind, length = rest >> 29, rest & _LENGTH
        first = at + _PART.size
        if magic != MAGIC:
            _refuse(path, at, f"expected the magic number {MAGIC:#x}, found {magic:#x}")
        if kind not in ({_BETWEEN, _LAST} if parts else {_WHOLE, _FIRST}):
            _refuse(path, at, f"expected the {'next' if parts else 'first'} part of a record, found kind {kind}")
        if first + length > len(whole):
            _refuse(path, at, f"a record of {length:,} bytes is cut off: the file has {len(whole):,} bytes")
        parts.append(whole[first : first + length])
        at = first + (length + 3) // 4 * 4
        if kind in {_WHOLE, _LAST}:
            joined = parts[0] if len(parts) == 1 else memoryview(MAGIC.to_bytes(4, "little").join(parts))
            return joined, at


def _refuse(path: Path, at: int, why: str) -> NoReturn:
    raise DataDamagedError(f"{path}: at byte {at:,}: {why}; fetch the data set again")


_FOLDS: Final = 10
_LIST: Final = "pairs.txt"
_HOLDING: Final = (".", "faces_webface_112x112", "faces_webface", "faces_emore", "faces_vgg_112x112")
_SUFFIXES: Final = (".jpg", ".png", ".jpeg", ".bmp")
_MOST_TUPLES: Final = 1_000  # a pickle of bytes has one tuple; one of arrays has several for each array
_SAME, _APART = 3, 4  # fields of a line: a person and two numbers; a person and a number, twice


@dataclass(frozen=True)
class _Drawn:
    path: Path
    pictures: list[Picture]
    labels: list[int]
    pairs: PairSet


def load(
    name: str, root: Path, scratch: Path, side: int, files: Sequence[str], folders: Sequence[str], official: int | None
) -> tuple[Images, str]:
    """Loads the images and pairs of a verification set, and their hash; each image is loaded once.

    They are in one of `files` (a `.bin`), or in one of `folders` with `pairs.txt`. Raises DataMissingError, and
    DataDamagedError if the files are wrong or have other than `official` pairs, unless that is None.
    """
    drawn = _drawn(root, files, folders)
    pairs, same = len(drawn.pairs.same), int(drawn.pairs.same.sum())
    if official is not None and (pairs, same) != (official, official // 2):
        counts = f"has {pairs:,} pairs, {same:,} of them of the same person"
        wanted = f"expected {official:,} and {official // 2:,}"
        raise DataDamagedError(f"{drawn.path} {counts}; {wanted}, or set `official: false` to use these pairs")
    form = Form("square", side)
    pixels = stored(name, drawn.pictures, form, scratch)
    content = hashlib.sha256(pixels.digest.encode())
    for column in drawn.pairs:
        content.update(column.numpy().astype("<i8").tobytes())
    images = pixels.split(range(len(drawn.pictures)), torch.tensor(drawn.labels, dtype=torch.int64))
    return replace(images, pairs=drawn.pairs, form=form), f"sha256:{content.hexdigest()}"


def _drawn(root: Path, files: Sequence[str], folders: Sequence[str]) -> _Drawn:
    for place in (root / holding / file for holding in _HOLDING for file in files):
        if place.is_file():
            return _pickled(place)
    for folder in (root / name for name in folders):
        if (folder / _LIST).is_file():
            return _listed(folder)
    raise missing(
        f"{files[0]} is missing: {root.absolute()} has neither this file nor {folders[0]}/{_LIST}", "the file"
    )


def _pickled(path: Path) -> _Drawn:
    """The pairs of a `.bin` file; equal images become one image. It names no people: each image has its own label."""
    contents, same = _unpickled(path)
    places: dict[bytes, int] = {}
    pictures: list[Picture] = []
    shown = []
    for number, content in enumerate(contents):
        place = places.setdefault(hashlib.sha256(content).digest(), len(places))
        if place == len(pictures):
            pictures.append(Picture(path, content, f"image {number} of {path}"))
        shown.append(place)
    # Ten folds in the order of the file; the first folds have one more pair if the folds cannot be equal.
    folds = [fold for fold, part in enumerate(np.array_split(np.arange(len(same)), _FOLDS)) for _ in part]
    return _Drawn(path, pictures, [*range(len(pictures))], _pairs(shown, same, folds))


class _PlainUnpickler(pickle.Unpickler):
    """Loads bytes, lists, tuples and booleans, but never a class or function."""

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"it refers to {module_name}.{global_name}, but only plain data is loaded")


def _unpickled(path: Path) -> tuple[list[bytes], list[bool]]:
    """The images, two for each pair, and whether both show one person; from Python 2 or 3.

    Raises DataMissingError, and DataDamagedError for a file with other content.
    """
    wanted = "expected a list of images as bytes, and a list of one boolean for each two images"
    with reading(path, f"{wanted}, pickled as InsightFace does"):
        content = path.read_bytes()
        check_steps(content, _MOST_TUPLES)
        found: Any = _PlainUnpickler(BytesIO(content), encoding="bytes").load()
    if not isinstance(found, tuple | list) or len(found) != 2 or not all(isinstance(part, list) for part in found):
        raise DataDamagedError(f"{path}: {wanted}, found something else")
    images, same = found
    for what, values, kind in (("image", images, bytes), ("pair", same, bool)):
        for place, value in enumerate(values):
            if not isinstance(value, kind):
                raise DataDamagedError(f"{path}: {wanted}; {what} {place} is {type(value).__name__}")
    if not same or len(images) != 2 * len(same):
        raise DataDamagedError(f"{path}: {wanted}; found {len(images):,} images and {len(same):,} booleans")
    return images, same


def _pairs(shown: Sequence[int], same: Sequence[bool], fold: Sequence[int]) -> PairSet:
    first, second = torch.tensor(shown, dtype=torch.int64).view(-1, 2).T
    return PairSet(first, second, torch.tensor(same), torch.tensor(fold, dtype=torch.int64))


def _listed(folder: Path) -> _Drawn:
    """The pairs of a list: in each fold, pairs of the same person, then as many pairs of two persons."""
    path = folder / _LIST
    each, rows = _rows(path)
    places: dict[Path, int] = {}
    people: list[str] = []
    shown, same, absent = [], [], []
    for number, fields in enumerate(rows):
        alike = number % (2 * each) < each
        for person, picture in _named(path, number, fields, alike):
            file = _file(folder, person, picture)
            if file is None:
                absent.append(f"line {number + 2} lists picture {picture} of {person}")
                continue
            if file not in places:
                places[file] = len(places)
                people.append(person)
            shown.append(places[file])
        same.append(alike)
    if absent:
        more = f" (and {len(absent) - 1:,} more pictures are missing)" if len(absent) > 1 else ""
        wanted = f"expected files such as PERSON/PERSON_0001{_SUFFIXES[0]} in {folder}"
        raise DataMissingError(f"{path}: {absent[0]}, which is missing{more}; {wanted}")
    numbers = {person: number for number, person in enumerate(sorted(set(people)))}
    fold = [number // (2 * each) for number in range(len(rows))]
    labels = [numbers[person] for person in people]
    return _Drawn(path, [Picture(file) for file in places], labels, _pairs(shown, same, fold))


def _rows(path: Path) -> tuple[int, list[list[str]]]:
    """The number of pairs of each kind in a fold, and the fields of each line."""
    header, *rows = [line.split() for line in read_text(path).splitlines() if line.strip()] or [[]]
    if len(header) != 2 or not all(field.isascii() and field.isdecimal() and int(field[:9]) > 0 for field in header):
        raise DataDamagedError(
            f"{path}: line 1: expected the number of folds and the number of pairs of each kind in a fold, "
            f"such as `10 300`; found {' '.join(header)[:80]!r}"
        )
    folds, each = (int(field[:9]) for field in header)
    if len(rows) != 2 * folds * each:
        wanted = f"line 1 declares {folds} folds of {each} + {each} pairs"
        raise DataDamagedError(f"{path}: {wanted}, but {len(rows):,} lines follow")
    return each, rows


def _named(path: Path, number: int, fields: list[str], alike: bool) -> list[tuple[str, int]]:
    """Person and number of both pictures of a line."""
    numbers = fields[1:] if alike else fields[1::2]
    fits = len(fields) == (_SAME if alike else _APART) and all(text.isascii() and text.isdecimal() for text in numbers)
    if not fits or any("/" in field or field.startswith(".") for field in fields):
        wanted = "a person and the numbers of two pictures" if alike else "two persons, each with a picture's number"
        raise DataDamagedError(f"{path}: line {number + 2}: expected {wanted}, found {' '.join(fields)[:80]!r}")
    return [(fields[0], int(numbers[0][:9])), (fields[0] if alike else fields[2], int(numbers[1][:9]))]


def _file(folder: Path, person: str, number: int) -> Path | None:
    """The picture of a person with a number, with any suffix."""
    paths = (folder / person / f"{person}_{number:04}{suffix}" for suffix in _SUFFIXES)
    return next((path for path in paths if path.is_file()), None)
