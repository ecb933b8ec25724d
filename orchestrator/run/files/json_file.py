"""A file of JSON that is replaced whole, and read as what its other side writes, or as damaged."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from orchestrator.host.disk import replacing

MOST_BYTES: Final = 16 * 2**20
"""Of a file that one side writes: an order with its recipe and an inspection of thousands of data sets take a tenth."""
T = TypeVar("T")


class DamagedFileError(OSError):
    """A file does not hold what the other side writes there."""


def write(file: Path, content: Mapping[str, Any]) -> None:
    """Replace a file whole, on disk before anybody sees it; raises OSError."""
    with replacing(file, mode=0o600) as made:
        made.write(json.dumps(content).encode())
    settle(file.parent)


def read(file: Path) -> dict[str, Any]:
    """What stands in a file; raises OSError, DamagedFileError where that is no object of JSON."""
    with file.open("rb") as opened_file:
        content = opened_file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DamagedFileError(f"{file} is damaged: it is larger than {MOST_BYTES // 2**20} MiB")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{file} is damaged: {error}") from error
    if not isinstance(found, dict):
        raise DamagedFileError(f"{file} is damaged: expected an object, found {str(found)[:80]}")
    return found


def read_as(reader: TypeAdapter[T], file: Path) -> T:
    """What stands in a file as what its other side writes; raises OSError, DamagedFileError where it is not."""
    return valid(reader, read(file), file)


def valid(reader: TypeAdapter[T], found: Mapping[str, Any], file: Path) -> T:
    """What was read, as that; raises DamagedFileError."""
    try:
        return reader.validate_python(found)
    except ValueError as error:
        raise DamagedFileError(f"{file} is damaged: {' '.join(str(error).split())[:500]}") from error


def settle(folder: Path) -> None:
    """Have the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
