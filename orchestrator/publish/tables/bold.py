"""Which numbers are bold: every best printed value of a block, once the block is complete."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Contender:
    """A printed number, or the place of one, in its block."""

    place: tuple[int, ...]
    block: Hashable
    better: str  # higher, lower or none
    text: str | None  # the printed mean; none where there is none
    settled: bool  # whether it can no longer change


def best(contenders: Iterable[Contender]) -> set[tuple[int, ...]]:
    """The places to print bold: all that tie on the best printed value of a settled block of two or more."""
    blocks: dict[Hashable, list[Contender]] = defaultdict(list)
    for one in contenders:
        if one.better != "none":
            blocks[one.block].append(one)
    return {place for block in blocks.values() for place in _best_of(block)}


def _best_of(block: list[Contender]) -> list[tuple[int, ...]]:
    values = [(Decimal(one.text), one.place) for one in block if one.text is not None]
    if len(block) < 2 or not values or not all(one.settled for one in block):
        return []
    numbers = [value for value, _ in values]
    top = max(numbers) if block[0].better == "higher" else min(numbers)
    return [place for value, place in values if value == top]
