"""Accuracy of verification by InsightFace's rule, which papers on faces report."""

import torch

from workers.evaluation.verification import Scores

_GRID = torch.arange(400, dtype=torch.float64) / 100


class VerificationAccuracy:
    """The mean over the folds of the share of pairs told right by the threshold that is best for all other folds.

    Of one class are pairs whose directions' squared distance, 0 to 4, is below the threshold: one of 0, 0.01, ...,
    3.99, of equally good ones the least. `accuracy` takes any threshold.
    """

    label = "Accuracy"
    paper = "Huang et al. 2007 (Labeled Faces in the Wild), by InsightFace's code"
    version = 1
    better = "higher"
    reads = "pairs"
    caption = "by thresholds of 0 to 4 in steps of 0.01 on the squared distance"

    def __call__(self, evaluation: Scores) -> float:
        """The accuracy, 0 to 1."""
        cosine, same, fold = (one.cpu() for one in evaluation)
        distance = (2 - 2 * cosine.double()).clamp(min=0)
        right = (distance[:, None] < _GRID) == same[:, None]
        told = []
        for number in fold.unique():  # type: ignore[no-untyped-call]
            here = fold == number
            best = right[~here].sum(dim=0).argmax()  # the first of equal ones
            told.append(right[here, best].double().mean())
        return torch.stack(told).mean().item()
