"""Accuracy of verification by InsightFace's rule, which papers on faces report."""

import torch

from workers.evaluation.verification import Scores

_GRID = torch.arange(400, dtype=torch.float64) / 100


class VerificationAccuracy:
    """The mean over the folds of the share of right pairs, by the threshold that is best for all other folds.

    Pairs are of one class if the squared distance of their directions, 0 to 4, is below the threshold: one of 0, 0.01,
    ..., 3.99, the least of equally good ones. `accuracy` takes any threshold.
    """

    label = "Accuracy"
    paper = "Huang et al. 2007 (Labeled Faces in the Wild), by InsightFace's code"
    better = "higher"
    reads = "pairs"
    caption = "by thresholds of 0 to 4 in steps of 0.01 on the squared distance"

    def __call__(self, evaluation: Scores) -> float:
        cosine, same, fold = (values.cpu() for values in evaluation)
        distance = (2 - 2 * cosine.double()).clamp(min=0)
        right = (distance[:, None] < _GRID) == same[:, None]
        shares = []
        for number in fold.unique():  # type: ignore[no-untyped-call]
            here = fold == number
            best = right[~here].sum(dim=0).argmax()  # the first of equal ones
            shares.append(right[here, best].double().mean())
        return torch.stack(shares).mean().item()
