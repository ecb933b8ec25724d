"""`python -m workers identify`: MegaFace's rates of features that other programs computed."""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor

from workers.data import megaface
from workers.data.megaface import FeatureFiles, SoughtFace, every
from workers.embeddings import geometry
from workers.evaluation.verification import Identification

if TYPE_CHECKING:
    import torch


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


Placed = Callable[[argparse.Namespace, "Callable[[torch.device], dict[int, float]]"], dict[int, float]]
"""Computes on the device and with the threads that were chosen."""

_SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)


def add(
    commands: Any,
    shared: argparse.ArgumentParser,
    positive: Callable[[str], int],
    root: Callable[[argparse.Namespace], Path],
    placed: Placed,
) -> argparse.ArgumentParser:
    """Its parser among `commands`; `root` tells the data folder that was chosen, `placed` computes where was chosen."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "identify", parents=[shared], help="judge the feature files of MegaFace's probes and distractors: rank-1",
        description="MegaFace, challenge 1, of features that any program computed: a folder with facescrub/ and "
        "megaface/, a file for each image as the devkit has them. The lists are those of megaface/ in the data folder.",
    )  # fmt: skip
    parser.add_argument("features", type=Path, help="the folder of facescrub/ and megaface/")
    parser.add_argument("--ending", metavar="TEXT", help="what follows an image's name (default: as it is found)")
    parser.add_argument(
        "--size", type=positive, action="append", metavar="N",
        help="a list of so many distractors; may stand several times (default: 1000, 10000, 100000, 1000000)",
    )  # fmt: skip
    parser.add_argument("--draw", type=positive, default=1, metavar="N", help="the lists' last number (default: 1)")
    parser.add_argument(
        "--noise", choices=["dropped", "kept"], default="dropped", help="images that InsightFace found to be wrong"
    )
    parser.add_argument("--part", action="store_true", help="take other than the official 3,530 probes")
    parser.add_argument("--json", action="store_true", help="print an object of sizes and rates")
    parser.set_defaults(command=lambda chosen: _identify(chosen, root(chosen), placed))
    return parser


def _identify(chosen: argparse.Namespace, root: Path, placed: Placed) -> int:
    # torch takes seconds to import, which the other commands need not wait for.
    from workers.data import megaface
    from workers.data.megaface import DevkitLists

    lists = DevkitLists.of(root)
    probes = lists.probes(chosen.noise, official=not chosen.part)
    strangers = lists.strangers(sorted(set(chosen.size or _SIZES)), chosen.draw, chosen.noise)
    ending = megaface.ending(chosen.features, probes[0]) if chosen.ending is None else chosen.ending
    files = megaface.FeatureFiles(chosen.features, ending)
    rates = placed(chosen, lambda device: rank1(files, probes, strangers, device))
    if chosen.json:
        print(json.dumps(rates, indent=2))
        return 0
    for size, rate in rates.items():
        print(f"rank-1 among {size:>9,} distractors  {rate:.6g}")
    return 0
