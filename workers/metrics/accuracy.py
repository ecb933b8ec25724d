"""Accuracy of verification: whether two images are of one class, told by a threshold that others chose."""

import torch
from torch import Tensor

from workers.evaluation.verification import Scores


class Accuracy:
    """The mean over the folds, mostly ten, of the share of pairs told right by the threshold best for all others.

    Of one class are pairs whose cosine reaches the threshold: a cosine of those folds, of equally good ones the
    least, or more than all of them.
    """

    label = "Accuracy"
    paper = "Huang et al. 2007 (Labeled Faces in the Wild)"
    version = 1
    better = "higher"
    reads = "pairs"

    def __call__(self, evaluation: Scores) -> float:
        """The accuracy, 0 to 1."""
        cosine, same, fold = (one.cpu() for one in evaluation)
        told = []
        for number in fold.unique():  # type: ignore[no-untyped-call]
            here = fold == number
            right = (cosine[here] >= _threshold(cosine[~here], same[~here])) == same[here]
            told.append(right.double().mean())
        return torch.stack(told).mean().item()


def _threshold(cosine: Tensor, same: Tensor) -> Tensor:
    """The least threshold that tells most of these pairs right."""
    ordered, place = cosine.sort()
    known = same[place]
    # Told right by a threshold at place k: those of two classes before it, and those of one class from it on.
    before = torch.cat([torch.zeros(1, dtype=torch.int64), (~known).cumsum(0)])
    right = before + known.sum() - torch.cat([torch.zeros(1, dtype=torch.int64), known.cumsum(0)])
    # Within equal cosines only the first is a threshold that tells them apart from those before.
    first = torch.cat([torch.ones(1, dtype=torch.bool), ordered[1:] > ordered[:-1], torch.ones(1, dtype=torch.bool)])
    best = int(torch.where(first, right, -1).argmax())
    return ordered[best] if best < len(ordered) else ordered.new_tensor(torch.inf)
