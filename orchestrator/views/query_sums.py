"""What the test queries of a training scored, summed up by class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class QuerySums:
    """Of one training and one split; the arrays are numpy's, [classes], in the order of the classes' numbers."""

    identity: str  # of the queries, their classes and the data: only equal ones are paired
    checkpoint: str  # `best` or `last`: which weights answered
    counts: Any  # queries of each class, int64
    sums: Mapping[str, Any]  # by metric, such as `recall@1`, the sum of their scores, float64


class QuerySource(Protocol):
    """Where they come from; asked only for what a table compares."""

    def __call__(self, trials: Sequence[int], split: str) -> tuple[Mapping[int, QuerySums], Mapping[int, str]]:
        """By trial its sums on a split, and for each trial without them why that is."""
        ...


def nowhere(trials: Sequence[int], split: str) -> tuple[Mapping[int, QuerySums], Mapping[int, str]]:
    """The source of who has only metrics."""
    return {}, dict.fromkeys(trials, "scores per query are not at hand here")
