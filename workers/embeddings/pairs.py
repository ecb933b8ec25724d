"""Which images of a batch form pairs, told from their labels, and the softmax over negatives that pair losses share."""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Masks(NamedTuple):
    """Which ordered pairs of a batch are of one class and which of two, bool [b, b]; no image pairs with itself."""

    positive: Tensor
    negative: Tensor


def masks(labels: Tensor) -> Masks:
    """The pairs of a batch with labels [b]."""
    same = labels[:, None] == labels[None, :]
    return Masks(same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device), ~same)


def places(labels: Tensor) -> Tensor:
    """How many earlier images of the batch are of the same class, [b]: 0 for the first of each class."""
    return (labels[:, None] == labels[None, :]).tril(-1).sum(dim=1)


def firsts(labels: Tensor) -> tuple[Tensor, Tensor]:
    """The indices of the first and of the second image of each class that has two, both [classes] in the same order."""
    place = places(labels)
    second = (labels[:, None] == labels[None, :]) & (place == 1)
    anchors = ((place == 0) & second.any(dim=1)).nonzero()[:, 0]
    return anchors, second[anchors].int().argmax(dim=1)


def negatives_among(labels: Tensor, members: Tensor) -> Tensor:
    """Which of the images `members` (indices [n]) are of another class, bool [b, b]: row by row of all images."""
    among = torch.zeros_like(labels, dtype=torch.bool)
    among[members] = True
    return masks(labels).negative & among


def over_negatives(logits: Tensor, own: Tensor, labels: Tensor) -> Tensor:
    """Mean over the ordered positive pairs (a, p) of log(1 + sum_n exp(logits[a, n] - own[a, p])), n negatives of a.

    `logits` and `own` are [b, b]. Zero without positive pairs or without negatives. Unlike lists of pairs this needs
    memory for b^2 numbers only, does not wait for the device, and loses nothing where the difference is large.
    """
    positive, negative = masks(labels)
    crowd = logits.masked_fill(~negative, -math.inf).logsumexp(dim=1, keepdim=True)
    terms = torch.logaddexp(crowd - own, torch.zeros_like(own))
    return (terms * positive).sum() / positive.sum().clamp(min=1)
