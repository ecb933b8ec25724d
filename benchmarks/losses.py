"""The cost of a batch's loss and gradient, compared with pytorch-metric-learning: processor seconds, and memory.

    python -m benchmarks.losses [--batches 120 512 2048] [--only nt_xent angular] [--width 512]

Each loss that both have, with the same value (it is compared, but where each draws its own): of random embeddings, in
blocks of four images of a class, or of two; of 100 classes where a loss learns their vectors. Each is a process of its
own, in one thread, which computes for two seconds and prints the least time, and the peak of its memory above what it
held before. A loss that needs more than 12 GB or more than 30 s is reported as such. The ratios at the end compare the
largest costs over all batches that the library can compute; memory below 16 MB counts as equal.
"""

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from pytorch_metric_learning import __version__ as library
from pytorch_metric_learning import distances, losses, miners, reducers
from torch import Tensor, nn

from benchmarks.memory import peak, resident
from workers import registry
from workers.contract import Part

CLASSES: Final = 100
MEMORY: Final = 12 * 2**30
SECONDS: Final = 30.0
LEAST_MIB: Final = 16.0
SIDES: Final = ("ours", "theirs")

Loss = Callable[[Tensor, Tensor], Tensor]
Told = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """A loss of ours with its options, the library's of the same value, and the layout of a batch."""

    theirs: Callable[[int], nn.Module]
    """By the width of the embeddings."""
    options: Mapping[str, Any] = field(default_factory=dict)
    miner: Callable[[], nn.Module] | None = None
    per_class: int = 4
    learned: bool = False
    """It has a vector for each of 100 classes."""
    same: bool = True
    """Whether the values can be compared: both draw the same."""
    unit: bool = False
    """Their loss gets unit embeddings, since it does not normalize them itself."""

    def of_ours(self, name: str, width: int) -> Loss:
        """The loss of raw embeddings [b, width] with labels [b]."""
        offers = {"classes": CLASSES, "dim": width, "images": CLASSES * self.per_class}
        built: nn.Module = registry.build("loss", Part(name=name, **self.options), None, **offers)
        return built

    def of_theirs(self, width: int) -> Loss:
        """As `of_ours`."""
        loss, miner = self.theirs(width), self.miner and self.miner()

        def value(embeddings: Tensor, labels: Tensor) -> Tensor:
            rows = torch.nn.functional.normalize(embeddings) if self.unit else embeddings
            found: Tensor = loss(rows, labels, miner(rows, labels) if miner else None)
            return found

        return value


def _angles(made: Callable[..., nn.Module], **options: Any) -> Callable[[int], nn.Module]:
    return lambda width: made(num_classes=CLASSES, embedding_size=width, **options)


PAIRS: Final[Mapping[str, Pair]] = {
    "triplet": Pair(
        lambda _: losses.TripletMarginLoss(
            margin=1.0, distance=distances.LpDistance(power=2), reducer=reducers.MeanReducer()
        )
    ),
    "batch_hard": Pair(
        lambda _: losses.TripletMarginLoss(margin=0.2, reducer=reducers.MeanReducer()), miner=miners.BatchHardMiner
    ),
    "multi_similarity": Pair(
        lambda _: losses.MultiSimilarityLoss(alpha=2, beta=40, base=0.5), miner=miners.MultiSimilarityMiner
    ),
    "lifted_structure": Pair(lambda _: losses.LiftedStructureLoss(neg_margin=1, pos_margin=0)),
    "normalized_npair": Pair(
        # Its own distance normalizes and has no scale.
        lambda _: losses.NPairsLoss(distance=_Scaled(25.0)), per_class=2,
    ),
    "nt_xent": Pair(lambda _: losses.NTXentLoss(temperature=0.5), per_class=2),
    "tuplet": Pair(lambda _: losses.TupletMarginLoss(margin=0, scale=25)),
    "tuplet_margin": Pair(lambda _: losses.TupletMarginLoss(margin=math.degrees(0.1), scale=64), {"intra": 0.0}),
    "angular": Pair(lambda _: losses.AngularLoss(alpha=45), {"pairs": "all"}, unit=True),
    "margin": Pair(
        lambda _: losses.MarginLoss(margin=0.2, nu=0.0, beta=1.2, learn_beta=True),
        miner=partial(miners.DistanceWeightedMiner, cutoff=0.5, nonzero_loss_cutoff=1.4),
        learned=True, same=False,  # each draws its own negatives
    ),
    "proxy_anchor": Pair(_angles(losses.ProxyAnchorLoss, margin=0.1, alpha=32), learned=True),
    "proxy_nca": Pair(_angles(losses.ProxyNCALoss, softmax_scale=9), {"positive": "included"}, learned=True),
    "soft_triple": Pair(_angles(losses.SoftTripleLoss, centers_per_class=10), {"tau": 0.0}, learned=True),
    "normface": Pair(_angles(losses.NormalizedSoftmaxLoss, temperature=1 / 64), learned=True),
    "cosface": Pair(_angles(losses.CosFaceLoss, margin=0.35, scale=64), learned=True),
    "arcface": Pair(  # the same numbers are drawn for other places of its class vectors
        _angles(losses.ArcFaceLoss, margin=math.degrees(0.45), scale=64), learned=True, same=False,
    ),
    "sphereface": Pair(_angles(losses.SphereFaceLoss, margin=3, scale=64), learned=True, unit=True),
}  # fmt: skip
"""By the name of ours. Left out are those of which the library has no form: the two of Proxy-ISA, Proxy-GML, semihard
triplets, SVMax's contrastive pairs, and softmax."""


class _Scaled(distances.DotProductSimilarity):  # type: ignore[misc]  # the library has no types
    """Cosines times a scale."""

    def __init__(self, scale: float) -> None:
        super().__init__(normalize_embeddings=True)
        self.scale = scale

    def compute_mat(self, query: Tensor, ref: Tensor) -> Tensor:
        """Similarities [q, r] of rows."""
        found: Tensor = self.scale * super().compute_mat(query, ref)
        return found


def batch(size: int, width: int, per_class: int) -> tuple[Tensor, Tensor]:
    """Random embeddings in blocks of a class, whose numbers go round."""
    drawn = torch.Generator().manual_seed(0)
    labels = torch.arange(size) // per_class
    means = torch.randn(int(labels[-1]) + 1, width, generator=drawn)
    return torch.randn(size, width, generator=drawn) + 0.3 * means[labels], labels


def one(name: str, side: str, size: int, width: int) -> Told:
    """The least milliseconds of CPU of a value with its gradient, and the most MiB that it held."""
    pair = PAIRS[name]
    torch.manual_seed(0)
    loss = pair.of_ours(name, width) if side == "ours" else pair.of_theirs(width)
    rows, labels = batch(size, width, pair.per_class)
    if pair.learned:
        labels = labels % CLASSES
    embeddings = rows.requires_grad_()

    def step() -> float:
        embeddings.grad = None
        value = loss(embeddings, labels)
        value.sum().backward()  # type: ignore[no-untyped-call]
        return float(value.detach().sum())

    before = _before()
    value, times, began = step(), list[float](), time.perf_counter()
    held = max(0.0, peak() - before)
    while not times or (time.perf_counter() - began < 2 and len(times) < 200):
        at = time.process_time()
        step()
        times.append(time.process_time() - at)
    return {"ms": round(1000 * min(times), 3), "MiB": round(held, 1), "value": value}


def _before() -> float:
    # Libraries that a first gradient loads are no memory of this loss.
    torch.nn.functional.normalize(torch.ones(8, 8, requires_grad=True)).sum().backward()  # type: ignore[no-untyped-call]
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    return resident()


def apart(name: str, side: str, size: int, width: int) -> Told:
    """As `one` in a process of its own, or why it gave nothing."""
    command = [sys.executable, "-m", "benchmarks.losses", "--only", name, "--side", side, "--batches", str(size)]
    limit = partial(resource.setrlimit, resource.RLIMIT_DATA, (MEMORY, MEMORY))
    try:
        done = subprocess.run(
            [*command, "--width", str(width)], env={**os.environ, "OMP_NUM_THREADS": "1"}, preexec_fn=limit,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"none": f"not done in {SECONDS:g} s"}
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        if "memory" not in said[0].lower():
            raise SystemExit(done.stderr)
        return {"none": f"asks for more than {MEMORY // 2**30} GB"}
    told: Told = json.loads(done.stdout)
    return told


def compared(name: str, sizes: Sequence[int], width: int) -> dict[str, Told]:
    """Both sides of a loss at each batch, with ours in ratio to theirs."""
    found: dict[str, Told] = {}
    for size in sizes:
        both: Told = {side: apart(name, side, size, width) for side in SIDES}
        ours, theirs = both["ours"], both["theirs"]
        if "none" not in ours and "none" not in theirs:
            same = abs(ours["value"] - theirs["value"]) <= 1e-3 * abs(theirs["value"])
            if PAIRS[name].same and not same:
                raise SystemExit(f"{name} of {size}: {ours['value']} is not the library's {theirs['value']}")
            both["CPU"] = round(ours["ms"] / theirs["ms"], 3)
            both["memory"] = round(max(ours["MiB"], LEAST_MIB) / max(theirs["MiB"], LEAST_MIB), 3)
        print(name, size, both, file=sys.stderr, flush=True)
        found[str(size)] = both
    return found


def main() -> None:
    """Print what each took, and the greatest ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[120, 512, 2048])
    parser.add_argument("--only", nargs="+", choices=list(PAIRS), default=list(PAIRS))
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.side:
        print(json.dumps(one(given.only[0], given.side, given.batches[0], given.width)))
        return
    found = {name: compared(name, given.batches, given.width) for name in given.only}
    done = [both for sizes in found.values() for both in sizes.values() if "CPU" in both]
    facts: Told = {
        "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version(),
        "torch": torch.__version__, "pytorch-metric-learning": library, "width": given.width,
        "ours / theirs, CPU, most": max(both["CPU"] for both in done),
        "ours / theirs, memory, most": max(both["memory"] for both in done),
    }  # fmt: skip
    print(json.dumps({**facts, "losses": found}, indent=2))


if __name__ == "__main__":
    main()
