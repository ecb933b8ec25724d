"""What proposes candidates within a cell, and is told their scores."""

from collections.abc import Mapping
from typing import Protocol

Values = Mapping[str, str | float]
"""By axis: the label of an alternative, or the number drawn from a range."""


class Study(Protocol):
    """The search within one cell: the same questions and answers in the same order give the same suggestions."""

    def ask(self, recorded: Values | None = None) -> tuple[int, Values] | None:
        """The next suggestion, or a recorded one, and its number from 0; none when nothing is left to suggest."""

    def tell(self, number: int, score: float | None, pruned: int | None = None) -> None:
        """The score of a suggestion; none when it failed, diverged or was cancelled.

        One that was pruned after evaluation `pruned` has what it had there; none where that was not a number.
        """

    def learn(self, values: Values, score: float | None, pruned: int | None = None) -> None:
        """Take up a recorded suggestion with its score, where asking anew does not give the same."""
