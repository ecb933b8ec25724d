"""The error of verification where it is as often wrong about one class as about two."""

from workers.evaluation.verification import Roc, Scores


class EqualErrorRate:
    """Where the share of pairs of two classes that are accepted equals that of pairs of one class that are not.

    Between two thresholds both are taken to move evenly, so that pairs of equal cosines count as in random order: an
    embedding that has collapsed has 0.5.
    """

    label = "EER"
    version = 1
    better = "lower"
    reads = "pairs"

    def __call__(self, evaluation: Scores) -> float:
        """The rate, 0 to 1."""
        roc = Roc.of(evaluation)
        far, tar = roc.far.tolist(), roc.tar.tolist()
        past = next(place for place, both in enumerate(zip(far, tar, strict=True)) if sum(both) >= 1)
        before, after = far[past - 1] + tar[past - 1] - 1, far[past] + tar[past] - 1
        share = before / (before - after)
        rate: float = far[past - 1] + share * (far[past] - far[past - 1])
        return rate
