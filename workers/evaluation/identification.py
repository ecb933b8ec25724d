"""Identification among distractors, as in MegaFace's first challenge: exact, and in chunks that bound the memory."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import torch
from torch import Tensor

from workers.evaluation import ties

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
        self._tolerance = ties.tolerance(searches.cosine.dtype)

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
