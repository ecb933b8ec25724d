"""Accuracy of verification: whether two images are of one class, by a threshold that other pairs choose."""

import torch
from torch import Tensor

from workers.evaluation.verification import Scores


class Accuracy:
    """The mean over the folds, mostly ten, of the share of right pairs, by the threshold that is best for all others.

    Pairs whose cosine reaches the threshold are of one class. It is a cosine of the other folds, the least of equally
    good ones, or more than all of them.
    """

    label = "Accuracy"
    paper = "Huang et al. 2007 (Labeled Faces in the Wild)"
    better = "higher"
    reads = "pairs"

    def __call__(self, evaluation: Scores) -> float:
        cosine, same, fold = (values.cpu() for values in evaluation)
        shares = []
        for number in fold.unique():  # type: ignore[no-untyped-call]
            here = fold == number
            right = (cosine[here] >= _threshold(cosine[~here], same[~here])) == same[here]
            shares.append(right.double().mean())
        return torch.stack(shares).mean().item()


def _threshold(cosine: Tensor, same: Tensor) -> Tensor:
    """The least threshold by which most of these pairs are right."""
    ordered, place = cosine.sort()
    known = same[place]
    # Right by a threshold at place k: pairs of two classes before it, and pairs of one class from it on.
    before = torch.cat([torch.zeros(1, dtype=torch.int64), (~known).cumsum(0)])
    right = before + known.sum() - torch.cat([torch.zeros(1, dtype=torch.int64), known.cumsum(0)])
    # Of equal cosines only the first is a threshold.
    first = torch.cat([torch.ones(1, dtype=torch.bool), ordered[1:] > ordered[:-1], torch.ones(1, dtype=torch.bool)])
    best = int(torch.where(first, right, -1).argmax())
    return ordered[best] if best < len(ordered) else ordered.new_tensor(torch.inf)
