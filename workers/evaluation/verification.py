"""Verification and identification: pairs, ROC curves, and rates among distractors."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import torch
from torch import Tensor

from workers import geometry
from workers.data import megaface
from workers.data.images import PairSet
from workers.data.megaface import FeatureFiles, Probe, every
from workers.evaluation import neighbours

FOLDS: Final = 10
MOST: Final = 3_000
"""The maximal number of pairs of one class, and of two, as in Labeled Faces in the Wild."""
_SEED: Final = 0  # the same pairs in all trainings

CHUNK: Final = 2**25
"""Cosines in memory: 128 MiB of float32."""


def identified(
    probes: Tensor, identity: Tensor, distractors: Iterable[tuple[Tensor, Tensor]], among: Mapping[int, Tensor]
) -> dict[int, Tensor]:
    """Searches the mates of probes, with unit embeddings [p, d] and identities [p], among distractors.

    `distractors` gives numbers [b] and unit embeddings [b, d] of some at a time, each number once; `among` gives the
    numbers in each gallery by its size. Returns by this size the probability of each search to have the mate first,
    float64 [s]: what metrics of `identification` read. A search ranks the mate and the distractors by their cosine to
    the probe. Distractors that are tied with the mate, up to rounding, are in random order. Memory is needed only for a
    block and `CHUNK` cosines.
    """
    searches = _MateSearches.of(probes, identity)
    galleries = {size: _Gallery(searches) for size in among}
    past = max((int(numbers.max()) + 1 for numbers in among.values() if len(numbers)), default=0)
    everyone = torch.zeros(past, dtype=torch.bool)
    members = {size: everyone.index_fill(0, numbers, True) for size, numbers in among.items()}
    for numbers, embeddings in distractors:
        for places in torch.split(torch.arange(len(numbers)), max(1, CHUNK // max(1, len(probes)))):
            cosine = probes @ embeddings[places.to(embeddings.device)].T
            for size, gallery in galleries.items():
                inside = members[size][numbers[places]].nonzero()[:, 0]
                if len(inside) == len(places):
                    gallery.search(cosine)
                elif len(inside):
                    gallery.search(cosine[:, inside.to(cosine.device)])
    return {size: gallery.first for size, gallery in galleries.items()}


class _MateSearches(NamedTuple):
    """All searches of a probe for a mate, another image of its identity."""

    probe: Tensor  # int64 [s]
    cosine: Tensor  # [s], between probe and mate

    @classmethod
    def of(cls, probes: Tensor, identity: Tensor) -> "_MateSearches":
        """Lists the searches among unit embeddings [p, d] of identities [p], ordered by probe."""
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


def pairs(labels: Tensor) -> PairSet:
    """Draws up to 3,000 verification pairs of one class and as many of two, in ten folds, by a fixed seed.

    Raises ValueError if there are fewer pairs of one class than folds, or only one class.
    """
    labels, drawn = labels.cpu(), torch.Generator().manual_seed(_SEED)
    members = [(labels == one).nonzero()[:, 0] for one in labels.unique()]  # type: ignore[no-untyped-call]
    alike = torch.cat([torch.combinations(group) for group in members])
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


def _rows(values: Tensor, size: int) -> Iterator[Tensor]:
    return iter(torch.split(values, max(1, size)) if len(values) else ())


class _Gallery:
    """The searches among the distractors of a list, as far as these were seen."""

    def __init__(self, searches: _MateSearches) -> None:
        self._searches = searches
        self._lost = torch.zeros_like(searches.probe, dtype=torch.bool)
        self._tied = torch.zeros_like(searches.probe)
        self._tolerance = neighbours.tie_tolerance(searches.cosine.dtype)

    def search(self, cosine: Tensor) -> None:
        """Add some distractors, by their cosines [p, b] to the probes."""
        best = cosine.amax(dim=1)[self._searches.probe]
        self._lost |= best > self._searches.cosine + self._tolerance
        near = (~self._lost & (best >= self._searches.cosine - self._tolerance)).nonzero()[:, 0]
        for some in _rows(near, CHUNK // cosine.shape[1]):
            least = self._searches.cosine[some, None] - self._tolerance
            self._tied[some] += (cosine[self._searches.probe[some]] >= least).sum(dim=1)

    @property
    def first(self) -> Tensor:
        """The probability of each search to have the mate first."""
        return torch.where(self._lost, 0.0, 1 / (1 + self._tied.double()))


def checked(drawn: PairSet, images: int) -> PairSet:
    """Checks the verification pairs that a data set defines for this number of images.

    Raises ValueError if a pair is of no image, if all are of one class or of two, or if there is only one fold.
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
            "verification: expected two folds of pairs at least, since each is judged by the others; found 1"
        )
    return drawn


class Scores(NamedTuple):
    """The cosines of verification pairs, with whether each pair is of one class."""

    cosine: Tensor  # [p]
    same: Tensor  # bool [p]
    fold: Tensor  # int64 [p]


class Roc(NamedTuple):
    """The ROC curve of verification: the results of all thresholds, from accepting no pairs to accepting all.

    A threshold accepts the pairs whose cosine reaches it; pairs with equal cosines are accepted together.
    """

    false: Tensor  # int64 [m], the pairs of two classes that each accepts, from 0 on
    true: Tensor  # int64 [m], the pairs of one class

    @classmethod
    def of(cls, scores: Scores) -> "Roc":
        """Computes the ROC curve from the cosines of pairs, at least one of one class and one of two."""
        cosine, place = scores.cosine.cpu().sort(descending=True)
        same = scores.same.cpu()[place]
        last = torch.cat([cosine[1:] < cosine[:-1], torch.ones(1, dtype=torch.bool)])  # of those with its cosine
        none = torch.zeros(1, dtype=torch.int64)
        accepted = ((~same).cumsum(0), same.cumsum(0))
        return cls(*(torch.cat([none, counts[last]]) for counts in accepted))

    @property
    def far(self) -> Tensor:
        """The false accept rate at each threshold: the share of accepted pairs of two classes, float64 [m]."""
        return self.false.double() / self.false[-1]

    @property
    def tar(self) -> Tensor:
        """The true accept rate at each threshold: the share of accepted pairs of one class, float64 [m]."""
        return self.true.double() / self.true[-1]


BLOCK: Final = 32_768
"""Features read at a time."""


def rank1(
    files: FeatureFiles, probes: Sequence[Probe], strangers: Mapping[int, Sequence[str]], device: torch.device
) -> dict[int, float]:
    """The share of searches that have the probe's mate first, by the number of distractors of each list.

    All files are read and checked before anything is computed. Raises DataMissingError, DataDamagedError, and
    ValueError if no person has two probes.
    """
    names = every(strangers)
    faces, others = files.of_probes(probes), files.of_strangers(names)
    megaface.checked([*faces, *others])
    identity = torch.tensor([probe.label for probe in probes], dtype=torch.int64)
    if int(identity.bincount().max()) < 2:
        raise ValueError("no person has two probes, so that no probe has a mate to find")
    place = {name: number for number, name in enumerate(names)}
    places = {size: [place[path] for path in paths] for size, paths in strangers.items()}
    among = {size: torch.tensor(numbers, dtype=torch.int64) for size, numbers in places.items()}

    def directions() -> Iterator[tuple[Tensor, Tensor]]:
        for numbers, features in megaface.blocks(others, BLOCK):
            yield numbers, geometry.unit(features.to(device))

    unit = geometry.unit(megaface.read(faces).to(device))
    found = identified(unit, identity.to(device), directions(), among)
    return {size: first.mean().item() for size, first in found.items()}
