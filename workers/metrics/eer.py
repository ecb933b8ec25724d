"""The error rate of verification at which false accepts are as frequent as false rejects."""

from workers.evaluation.verification import Roc, Scores


class EqualErrorRate:
    """The share of accepted pairs of two classes at the threshold where it equals the share of rejected pairs of one
    class.

    Both shares are interpolated linearly between two thresholds, so that pairs with equal cosines count in random
    order: a collapsed embedding has 0.5.
    """

    label = "EER"
    better = "lower"
    reads = "pairs"

    def __call__(self, evaluation: Scores) -> float:
        roc = Roc.of(evaluation)
        far, tar = roc.far.tolist(), roc.tar.tolist()
        past = next(place for place, both in enumerate(zip(far, tar, strict=True)) if sum(both) >= 1)
        before, after = far[past - 1] + tar[past - 1] - 1, far[past] + tar[past] - 1
        share = before / (before - after)
        rate: float = far[past - 1] + share * (far[past] - far[past - 1])
        return rate
