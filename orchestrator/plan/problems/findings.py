"""What is wrong with a spec: as many problems as anybody reads, and how many more there are."""

from collections.abc import Iterable
from typing import Any, Final, Self

from workers.catalog import Problem

MOST_TOLD: Final = 200
"""Problems that are told; the rest is counted."""

_KEPT: Final = 1_000
_UNTOLD: Final = Problem("", "one of many more problems")


class Findings(list[Problem]):
    """A list of problems that holds the first thousand, and of all further ones no more than that they exist."""

    def append(self, one: Problem) -> None:
        """Add a problem."""
        super().append(one if len(self) < _KEPT else _UNTOLD)

    def extend(self, several: Iterable[Problem]) -> None:
        """Add several."""
        for one in several:
            self.append(one)

    def __iadd__(self, several: Iterable[Problem]) -> Self:  # type: ignore[override,misc]
        self.extend(several)
        return self

    def told(self, order: Any = None) -> list[Problem]:
        """Each problem once, in `order` (a sort key) or as they were noted, with the number of those left out."""
        kept = self[:_KEPT]
        unlike = list(dict.fromkeys(kept))
        ordered = unlike if order is None else sorted(unlike, key=order)
        more = len(ordered[MOST_TOLD:]) + len(self) - len(kept)
        return [*ordered[:MOST_TOLD], *([Problem("", f"and {more:,} more problems")] if more else [])]
