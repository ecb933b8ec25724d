"""The pickles in which InsightFace keeps faces and pairs, read by rules of our own: nothing in them is ever run."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from workers.contract import DataDamagedError
from workers.data.packs import mapped

_MOST_STEPS: Final = 1_000_000  # CFP-FP takes 42,000
_MOST_LINE: Final = 64  # characters of a number that is written as text


class PairFile(NamedTuple):
    """What a `.bin` file holds."""

    images: list[memoryview]
    """The files of images, two for each pair."""
    same: list[bool]
    """Whether both show one person."""


def read(path: Path) -> PairFile:
    """The images and pairs of a file that Python 2 or 3 pickled, as (list of bytes, list of booleans).

    Bytes, lists, tuples and booleans are made, by an interpreter that knows no other step; images are views of the
    file. Raises DataMissingError, and DataDamagedError that names the file and the byte of anything else.
    """
    return _pairs(path, _Reading(path, mapped(path)).result())


def _pairs(path: Path, found: Any) -> PairFile:
    wanted = "expected (list of images as bytes, list of booleans, one for each two images)"
    if not isinstance(found, tuple | list) or len(found) != 2 or not all(isinstance(one, list) for one in found):
        raise DataDamagedError(f"{path}: {wanted}, found something else")
    images, same = found
    for place, image in enumerate(images):
        if not isinstance(image, memoryview):
            raise DataDamagedError(f"{path}: {wanted}; image {place} is no bytes")
    for place, answer in enumerate(same):
        if not isinstance(answer, bool):
            raise DataDamagedError(f"{path}: {wanted}; pair {place} has no boolean")
    if not same or len(images) != 2 * len(same):
        raise DataDamagedError(f"{path}: {wanted}; found {len(images):,} images and {len(same):,} booleans")
    return PairFile(images, same)


class _Reading:
    """A pickle read step by step: time and memory grow with the steps, of which there are only so many."""

    def __init__(self, path: Path, content: memoryview) -> None:
        self._path, self._content, self._at = path, content, 0
        self._stack: list[Any] = []  # the values since the last mark
        self._before: list[list[Any]] = []  # those before each mark
        self._memo: dict[int, Any] = {}

    def result(self) -> Any:
        """The one value that is left at the end."""
        for _ in range(_MOST_STEPS):
            start = self._at
            step = bytes(self._take(1))
            if step == b".":
                if len(self._stack) != 1 or self._before:
                    raise self._refusal(start, "it ends with more or less than one value")
                return self._stack[0]
            work = _STEPS.get(step)
            if work is None:
                raise self._refusal(start, f"step {step!r} makes something else than bytes, lists, tuples and booleans")
            try:
                work(self)
            except DataDamagedError:
                raise
            except (IndexError, KeyError, ValueError) as error:
                raise self._refusal(start, f"step {step!r} has nothing to work on") from error
        raise self._refusal(self._at, f"it takes more than {_MOST_STEPS:,} steps")

    def _refusal(self, at: int, why: str) -> DataDamagedError:
        made = "InsightFace's are pickled as (list of bytes, list of booleans)"
        return DataDamagedError(f"{self._path}: at byte {at:,}: {why}; {made}")

    def _take(self, count: int) -> memoryview:
        past = self._at + count
        if past > len(self._content):
            raise self._refusal(self._at, f"the file of {len(self._content):,} bytes is cut off")
        taken, self._at = self._content[self._at : past], past
        return taken

    def number(self, form: str) -> int:
        """A number of the file, by the letter that `struct` has for its form."""
        found: int = struct.unpack(f"<{form}", self._take(struct.calcsize(f"<{form}")))[0]
        return found

    def line(self) -> bytes:
        """What stands before the end of a line."""
        ahead = bytes(self._content[self._at : self._at + _MOST_LINE])
        return bytes(self._take(ahead.index(b"\n") + 1))[:-1]

    def bytes(self, form: str) -> None:
        """So many bytes as the number before them says."""
        self._stack.append(self._take(self.number(form)))

    def push(self, value: Any) -> None:
        """A value that needs nothing."""
        self._stack.append(value)

    def truth(self) -> None:
        """How the oldest form writes booleans."""
        self._stack.append({b"00": False, b"01": True}[self.line()])

    def tuple(self, count: int) -> None:
        """The last `count` values as a tuple."""
        values = [self._stack.pop() for _ in range(count)]
        self._stack.append((*reversed(values),))

    def mark(self) -> None:
        """Where values begin that go together."""
        self._before.append(self._stack)
        self._stack = []

    def marked(self) -> list[Any]:
        """The values since the last mark, which go with it."""
        values, self._stack = self._stack, self._before.pop()
        return values

    def append(self) -> None:
        """The last value to the list before it."""
        value = self._stack.pop()
        self._list().append(value)

    def extend(self) -> None:
        """The values since the last mark to the list before it."""
        values = self.marked()
        self._list().extend(values)

    def _list(self) -> list[Any]:
        found = self._stack[-1]
        if not isinstance(found, list):
            raise ValueError
        return found

    def keep(self, key: int) -> None:
        """The last value under a number."""
        self._memo[key] = self._stack[-1]

    def keep_next(self) -> None:
        """The last value under the next number."""
        self.keep(len(self._memo))

    def get(self, key: int) -> None:
        """The value under a number."""
        self._stack.append(self._memo[key])


_STEPS: Final[dict[bytes, Callable[[_Reading], object]]] = {
    b"\x80": lambda one: one.number("B"),  # which form of pickle: the steps say it themselves
    b"\x95": lambda one: one.number("Q"),  # the length of a frame
    b"(": lambda one: one.mark(),
    b"]": lambda one: one.push([]),
    b"l": lambda one: one.push(one.marked()),
    b"a": lambda one: one.append(),
    b"e": lambda one: one.extend(),
    b")": lambda one: one.push(()),
    b"t": lambda one: one.push(tuple(one.marked())),
    b"\x85": lambda one: one.tuple(1),
    b"\x86": lambda one: one.tuple(2),
    b"\x87": lambda one: one.tuple(3),
    b"\x88": lambda one: one.push(True),
    b"\x89": lambda one: one.push(False),
    b"I": lambda one: one.truth(),
    b"C": lambda one: one.bytes("B"),
    b"B": lambda one: one.bytes("I"),
    b"\x8e": lambda one: one.bytes("Q"),
    b"U": lambda one: one.bytes("B"),  # a text of Python 2, which has bytes for it
    b"T": lambda one: one.bytes("I"),
    b"q": lambda one: one.keep(one.number("B")),
    b"r": lambda one: one.keep(one.number("I")),
    b"p": lambda one: one.keep(int(one.line())),
    b"\x94": lambda one: one.keep_next(),
    b"h": lambda one: one.get(one.number("B")),
    b"j": lambda one: one.get(one.number("I")),
    b"g": lambda one: one.get(int(one.line())),
}
