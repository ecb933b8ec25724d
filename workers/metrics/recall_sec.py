"""Recall at k by the rule of SEC's code, in which a tie is a hit."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor

from workers.evaluation.evaluate import Evaluation


class SecRecall:
    """The share of images for which fewer than k others are strictly closer than the closest of their class.

    Exactly SEC's evaluation code: a network that maps all images to one point scores 1, and one to ten points .86,
    where `recall` gives the score of chance. A query has a cosine of 0 with itself and counts among its own class, so
    that only images with a positive cosine can be closer. Otherwise equal to `recall`. Images without another of their
    class do not count.
    """

    label = "SEC R"
    paper = "SEC's evaluation code"
    caption = "by the rule of SEC's code, where a tie is a hit"
    better = "higher"
    needs = "neighbours"
    over = "queries"

    def __init__(self, *, k: Annotated[int, Ge(1)] = 1) -> None:
        self.k = k

    def each(self, evaluation: Evaluation) -> Tensor:
        """Whether fewer than k others are closer, 1 or 0, float64 [queries]."""
        return evaluation.neighbours.sec_rank.le(self.k).double()

    def __call__(self, evaluation: Evaluation) -> float:
        return self.each(evaluation).mean().item()
