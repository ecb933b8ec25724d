"""Verification and identification: pairs, ROC curves, and rates among distractors."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import torch
from torch import Tensor

from workers.data.images import PairSet
from workers.evaluation import neighbours

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


class Roc(NamedTuple):
    """Every threshold that tells pairs apart, from one that accepts none of them to one that accepts all.

    A threshold accepts the pairs whose cosine reaches it; pairs of equal cosines are accepted together.
    """

    false: Tensor  # int64 [m], the pairs of two classes that each accepts, from 0 on
    true: Tensor  # int64 [m], the pairs of one class

    @classmethod
    def of(cls, scores: Scores) -> "Roc":
        """Of the cosines of pairs, of which at least one is of one class and one of two."""
        cosine, place = scores.cosine.cpu().sort(descending=True)
        same = scores.same.cpu()[place]
        last = torch.cat([cosine[1:] < cosine[:-1], torch.ones(1, dtype=torch.bool)])  # of those with its cosine
        none = torch.zeros(1, dtype=torch.int64)
        accepted = ((~same).cumsum(0), same.cumsum(0))
        return cls(*(torch.cat([none, counts[last]]) for counts in accepted))

    @property
    def far(self) -> Tensor:
        """The share of the pairs of two classes that each threshold accepts, float64 [m]."""
        return self.false.double() / self.false[-1]

    @property
    def tar(self) -> Tensor:
        """The share of the pairs of one class, float64 [m]."""
        return self.true.double() / self.true[-1]


CHUNK: Final = 2**25
"""Cosines held at a time: 128 MiB of float32."""


class MateSearches(NamedTuple):
    """Every search of a probe for a mate, another image of its identity."""

    probe: Tensor  # int64 [s]
    cosine: Tensor  # [s], between probe and mate

    @classmethod
    def of(cls, probes: Tensor, identity: Tensor) -> "MateSearches":
        """Those among unit embeddings [p, d] of identities [p], by the number of the probe."""
        mated = []
        for person in identity.unique():  # type: ignore[no-untyped-call]
            place = (identity == person).nonzero()[:, 0]
            pair = torch.cartesian_prod(place, place)
            mated.append(pair[pair[:, 0] != pair[:, 1]])
        pairs = torch.cat(mated) if mated else identity.new_empty(0, 2)
        pairs = pairs[pairs[:, 0].argsort(stable=True)]
        cosine = torch.cat(
            [(probes[some[:, 0]] * probes[some[:, 1]]).sum(dim=1) for some in _rows(pairs, CHUNK // probes.shape[1])]
            or [probes.new_empty(0)]
        )
        return cls(pairs[:, 0], cosine)


class Identification:
    """What metrics of `identification` read: for each number of distractors, how searches for a mate among them end.

    A search ranks the mate and the distractors by their cosine to the probe. Distractors whose cosine differs from the
    mate's by no more than rounding are tied with it, and count as in random order.
    """

    def __init__(self, found: Mapping[int, Tensor]) -> None:
        self._found = found

    @classmethod
    def of(
        cls,
        probes: Tensor,
        identity: Tensor,
        distractors: Iterable[tuple[Tensor, Tensor]],
        among: Mapping[int, Tensor],
        chunk: int = CHUNK,
    ) -> "Identification":
        """Of probes with unit embeddings [p, d] and identities [p].

        `distractors` gives numbers [b] and unit embeddings [b, d] of some at a time, each number once; `among` says
        which of them, by their numbers, are in each gallery. What is held is a block, `chunk` cosines and little else.
        """
        searches = MateSearches.of(probes, identity)
        galleries = {size: _Gallery(searches, len(probes)) for size in among}
        members = _members(among)
        for numbers, embeddings in distractors:
            for places in torch.split(torch.arange(len(numbers)), max(1, chunk // max(1, len(probes)))):
                cosine = probes @ embeddings[places.to(embeddings.device)].T
                for size, gallery in galleries.items():
                    inside = members[size][numbers[places]].nonzero()[:, 0]
                    if len(inside) == len(places):
                        gallery.search(cosine, chunk)
                    elif len(inside):
                        gallery.search(cosine[:, inside.to(cosine.device)], chunk)
        return cls({size: gallery.first for size, gallery in galleries.items()})

    def first(self, size: int) -> Tensor | None:
        """How likely each search among `size` distractors has the mate first, float64 [s]; none without such a list."""
        return self._found.get(size)


class _Gallery:
    """The searches among the distractors of one list, as far as these were seen."""

    def __init__(self, searches: MateSearches, probes: int) -> None:
        self._searches = searches
        self._lost = torch.zeros_like(searches.probe, dtype=torch.bool)
        self._tied = torch.zeros_like(searches.probe)
        self._tolerance = neighbours.tie_tolerance(searches.cosine.dtype)

    def search(self, cosine: Tensor, chunk: int) -> None:
        """Look at some more distractors, by their cosines [p, b] to the probes."""
        best = cosine.amax(dim=1)[self._searches.probe]
        self._lost |= best > self._searches.cosine + self._tolerance
        near = (~self._lost & (best >= self._searches.cosine - self._tolerance)).nonzero()[:, 0]
        for some in _rows(near, chunk // cosine.shape[1]):
            least = self._searches.cosine[some, None] - self._tolerance
            self._tied[some] += (cosine[self._searches.probe[some]] >= least).sum(dim=1)

    @property
    def first(self) -> Tensor:
        """How likely each search has the mate first."""
        return torch.where(self._lost, 0.0, 1 / (1 + self._tied.double()))


def _members(among: Mapping[int, Tensor]) -> Mapping[int, Tensor]:
    """Whether a number is in each list, bool [largest number + 1]."""
    past = max((int(numbers.max()) + 1 for numbers in among.values() if len(numbers)), default=0)
    return {size: torch.zeros(past, dtype=torch.bool).index_fill_(0, one, True) for size, one in among.items()}


def _rows(values: Tensor, size: int) -> Iterator[Tensor]:
    return iter(torch.split(values, max(1, size)) if len(values) else ())
