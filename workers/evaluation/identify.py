"""MegaFace's rates of features that other programs computed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import torch
from torch import Tensor

from workers import geometry
from workers.data import megaface
from workers.data.megaface import FeatureFiles, SoughtFace, every
from workers.evaluation.verification import Identification

BLOCK: Final = 32_768
"""Features read at a time."""


def rank1(
    files: FeatureFiles, probes: Sequence[SoughtFace], strangers: Mapping[int, Sequence[str]], device: torch.device
) -> dict[int, float]:
    """The share of searches for a probe's mate that have it first, by the number of distractors of each list.

    All files are read and checked before anything is computed. Raises DataMissingError, DataDamagedError, and
    ValueError where no person has two probes.
    """
    names = every(strangers)
    faces, others = files.of_probes(probes), files.of_strangers(names)
    megaface.checked([*faces, *others])
    identity = torch.tensor([one.label for one in probes], dtype=torch.int64)
    if int(identity.bincount().max()) < 2:
        raise ValueError("no person has two probes, so that there is no mate to be found")
    place = {name: number for number, name in enumerate(names)}
    among = {size: torch.tensor([place[one] for one in paths], dtype=torch.int64) for size, paths in strangers.items()}

    def directions() -> Iterator[tuple[Tensor, Tensor]]:
        for numbers, features in megaface.blocks(others, BLOCK):
            yield numbers, geometry.unit(features.to(device))

    unit = geometry.unit(megaface.read(faces).to(device))
    searches = Identification.of(unit, identity.to(device), directions(), among)
    rates = {size: searches.first(size) for size in strangers}
    return {size: first.mean().item() for size, first in rates.items() if first is not None}
