"""Pairs of images that are verified: which they are, and what metrics of `pairs` read of them."""

from typing import Final, NamedTuple

import torch
from torch import Tensor

from workers.data.pair_set import PairSet

FOLDS: Final = 10
MOST: Final = 3_000
"""Pairs of one class at most, as Labeled Faces in the Wild has; and as many of two."""
_SEED: Final = 0  # the same pairs in all trainings


class Scores(NamedTuple):
    """What an embedding says of pairs."""

    cosine: Tensor  # [p]
    same: Tensor  # bool [p]
    fold: Tensor  # int64 [p]


def checked(drawn: PairSet, images: int) -> PairSet:
    """The pairs that a data set drew up of so many images.

    Raises ValueError where one of them is of no image, all are of one class or of two, or all are in one fold.
    """
    ends = torch.cat([drawn.first, drawn.second])
    if bool(((ends < 0) | (ends >= images)).any()):
        worst = int(ends[(ends < 0) | (ends >= images)][0])
        raise ValueError(f"verification: a pair names image {worst}, and there are {images:,}, counted from 0")
    alike, every = int(drawn.same.sum()), len(drawn.same)
    if not 0 < alike < every:
        raise ValueError(f"verification: expected pairs of one class and of two, found {alike} and {every - alike}")
    if len(drawn.fold.unique()) < 2:  # type: ignore[no-untyped-call]
        raise ValueError(
            "verification: expected two folds of pairs at least, since each is told by the others; found 1"
        )
    return drawn


def pairs(labels: Tensor) -> PairSet:
    """All pairs of one class, of more than 3,000 so many, and as many of two, each kind dealt to ten folds.

    Drawn by a fixed seed. Raises ValueError where there are fewer of one class than folds, or one class alone.
    """
    labels, drawn = labels.cpu(), torch.Generator().manual_seed(_SEED)
    members = [(labels == one).nonzero()[:, 0] for one in labels.unique()]  # type: ignore[no-untyped-call]
    alike = torch.cat([torch.combinations(one) for one in members])
    if len(members) < 2 or len(alike) < FOLDS:
        counts = f"found {len(members)} and {len(alike)}"
        raise ValueError(f"verification: expected two classes and {FOLDS} pairs of one class at least; {counts}")
    alike = alike[torch.randperm(len(alike), generator=drawn)[:MOST]]
    apart = alike.new_empty(0, 2)
    while len(apart) < len(alike):
        more = torch.randint(len(labels), (2 * len(alike), 2), generator=drawn)
        apart = torch.cat([apart, more[labels[more[:, 0]] != labels[more[:, 1]]]])[: len(alike)]
    both = torch.cat([alike, apart])
    place = torch.arange(len(alike))
    return PairSet(both[:, 0], both[:, 1], torch.cat([place >= 0, place < 0]), torch.cat([place, place]) % FOLDS)
