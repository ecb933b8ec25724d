"""RecordIO, in which InsightFace keeps its faces: records of labels and bytes in one file, read without MXNet."""

import struct
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from workers.contract import DataDamagedError, DataMissingError
from workers.data.file_content import note
from workers.data.packs import mapped

MAGIC: Final = 0xCED7230A
"""What stands at the beginning of each part of a record; in its content it divides parts."""

_PART: Final = struct.Struct("<II")  # the magic number; the kind of part in three bits, its length in the others
_HEADER: Final = struct.Struct("<IfQQ")  # how many labels follow (0: none but this one), the label, two numbers
_LENGTH: Final = 2**29 - 1
_WHOLE, _FIRST, _BETWEEN, _LAST = range(4)  # the kinds of parts
_MOST_LABELS: Final = 1024
_LEAST: Final = _PART.size + _HEADER.size  # bytes of a record


class Record(NamedTuple):
    """What the file holds under one number."""

    number: int
    offset: int
    """The byte where it begins."""
    labels: tuple[float, ...]
    content: memoryview


def read(path: Path) -> list[Record]:
    """The records of `path` that the index beside it (`.idx`) lists, in the order of their numbers.

    The file is mapped: a content is a view of it, and all of the file is looked at here but these. Raises
    DataMissingError, and DataDamagedError that names the file and the byte where it is not as it must be.
    """
    whole = mapped(path)
    records, end = [], 0
    for offset, number in sorted(_index(path.with_suffix(".idx"), len(whole))):
        if offset < end:
            _refuse(path, offset, f"record {number} begins within the one before it, which ends at byte {end:,}")
        record, end = _record(path, whole, offset, number)
        records.append(record)
    return sorted(records, key=lambda record: record.number)


def _index(path: Path, size: int) -> list[tuple[int, int]]:
    """(offset, number) of each record, of a file of `size` bytes."""
    note(path)
    try:
        with path.open("rb") as file:
            content = file.read(size + 2**20)  # a line of the index is shorter than the record that it lists
    except FileNotFoundError as error:
        raise DataMissingError(f"{path} is missing: it says where the records begin; fetch it again") from error
    except OSError as error:
        raise DataDamagedError(f"{path} cannot be read; fetch it again ({error})") from error
    offsets: dict[int, int] = {}
    at = 0
    for row, line in enumerate(content.split(b"\n"), 1):
        fields = line.split()
        if fields:
            if len(fields) != 2 or not (fields[0].isdigit() and fields[1].isdigit()) or len(line) > 64:
                _refuse(path, at, f"line {row} is not the number and the byte of a record: {line[:40]!r}")
            number, offset = int(fields[0]), int(fields[1])
            if number in offsets:
                _refuse(path, at, f"line {row} lists record {number} a second time")
            if offset + _LEAST > size:
                _refuse(path, at, f"record {number} would begin at byte {offset:,} of a file of {size:,}")
            offsets[number] = offset
        at += len(line) + 1
    if not offsets:
        _refuse(path, 0, "it lists no records")
    return [(offset, number) for number, offset in offsets.items()]


def _record(path: Path, whole: memoryview, offset: int, number: int) -> tuple[Record, int]:
    """The record that begins at a byte, and the byte where it ends."""
    content, end = _content(path, whole, offset)
    if len(content) < _HEADER.size:
        _refuse(path, offset, f"record {number} has {len(content)} bytes, and its header {_HEADER.size}")
    count, label, _, _ = _HEADER.unpack_from(content)
    if count > _MOST_LABELS or _HEADER.size + 4 * count > len(content):
        _refuse(path, offset, f"record {number} of {len(content):,} bytes promises {count:,} labels")
    labels = struct.unpack_from(f"<{count}f", content, _HEADER.size) if count else (label,)
    return Record(number, offset, labels, content[_HEADER.size + 4 * count :]), end


def _content(path: Path, whole: memoryview, offset: int) -> tuple[memoryview, int]:
    """The bytes of a record, its parts joined by the magic number that divided them, and where it ends."""
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
            _refuse(path, at, f"found part {kind} of a record, where {'it goes on' if parts else 'one begins'}")
        if first + length > len(whole):
            _refuse(path, at, f"a record of {length:,} bytes is cut off: the file has {len(whole):,}")
        parts.append(whole[first : first + length])
        at = first + (length + 3) // 4 * 4
        if kind in {_WHOLE, _LAST}:
            joined = parts[0] if len(parts) == 1 else memoryview(MAGIC.to_bytes(4, "little").join(parts))
            return joined, at


def _refuse(path: Path, at: int, why: str) -> NoReturn:
    raise DataDamagedError(f"{path}: at byte {at:,}: {why}; fetch it again")
