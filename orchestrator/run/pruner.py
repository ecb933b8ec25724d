"""What prunes the candidates of a cell while they train."""

from typing import Protocol


class Pruner(Protocol):
    """One competition: what it is told in the same order gives the same decisions."""

    def report(self, candidate: int, number: int, value: float) -> None:
        """Evaluation `number` (1, 2, 3 ...) of a candidate's training; NaN where it was not a number."""

    def decision(self, candidate: int) -> str | None:
        """Why the candidate is to be pruned at its latest evaluation, with numbers; none: it goes on."""

    def finish(self, candidate: int, score: float) -> None:
        """The candidate's training ended well, with this score."""
