"""How near nmi_sec and f1_sec are to scikit-learn's own k-means, and how much faster, on the same embeddings.

    python -m benchmarks.clustering [--birds DATA] [--seeds N] [--threads N] [--device cuda] [--no-peer]
                                    [--images 5924] [--classes 100] [--width 512]

Classes that overlap are drawn, of CUB's size by default. With `--birds` the points are real: the ImageNet features that
the pretrained MobileNetV2 of a data folder gives its birds of unseen classes, as benchmarks/untrained.py has them.
SOP's size is `--images 60502 --classes 11316`. With `--device cuda` ours runs on the GPU, and scikit-learn where it
can. Both run in this process with as many threads, one after the other for each seed. On a busy machine compare the
seconds of the processor (`cpu`) with `--threads 1`: more threads wait for one another, and waiting counts too.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmarks import turns, untrained
from workers import registry
from workers.embeddings import geometry
from workers.evaluation.evaluate import Contingency
from workers.evaluation.k_means import k_means


def drawn(options: argparse.Namespace) -> tuple[Tensor, Tensor]:
    """Unit embeddings in classes that overlap, of far fewer directions than their width, as trained ones are."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(options.images) % options.classes
    spread = [torch.randn(rank, options.width, generator=generator) / rank**0.5 for rank in (32, 48)]
    means = torch.randn(options.classes, 32, generator=generator) @ spread[0]
    scatter = torch.randn(options.images, 48, generator=generator) @ spread[1]
    noise = torch.randn(options.images, options.width, generator=generator)
    return geometry.unit(means[labels] + 2.5 * scatter + 0.5 * noise), labels


def real(root: Path) -> tuple[Tensor, Tensor]:
    """The unit features of birds that no training has seen."""
    birds, labels = untrained.images(root, 1)
    side = untrained.SIDE["v2"]
    backbone = registry.build("backbone", untrained.PARTS["v2"], channels=3, side=side, root=root).eval()
    shown = untrained.Variant("ours", untrained.resized(side))
    return geometry.unit(untrained.pooled(backbone.get_submodule("net"), birds, shown)[0].clone()), labels


def scores(labels: Tensor, clusters: Tensor) -> tuple[float, float]:
    """NMI and F1 in percent."""
    nmi = normalized_mutual_info_score(labels.numpy(), clusters.numpy())
    return 100 * float(nmi), 100 * Contingency.of(labels, clusters).pair_f1


def timed(work: Callable[[], Tensor]) -> tuple[Tensor, float, float]:
    began, worked = time.perf_counter(), time.process_time()
    found = work().cpu()  # a GPU is waited for
    return found, time.perf_counter() - began, time.process_time() - worked


def _spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def main() -> None:
    """Print the scores' means and deviations over the seeds, their differences, and both ratios of time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--birds", type=Path, metavar="DATA")
    parser.add_argument("--images", type=int, default=5924)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--device", default="cpu", help="of ours")
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    points, labels = real(options.birds) if options.birds else drawn(options)
    labels = torch.unique(labels, return_inverse=True)[1]
    count = int(labels.max()) + 1

    def theirs(seed: int) -> Tensor:
        with threadpool_limits(options.threads):
            peer = KMeans(count, init="k-means++", n_init=10, max_iter=300, algorithm="lloyd", random_state=seed)
            return torch.from_numpy(peer.fit(points.numpy()).labels_).long()

    lying = points.to(options.device)
    k_means(lying[:200], 5, 0)  # whatever is only loaded once
    ways: dict[str, Callable[[int], Tensor]] = {"ours": lambda seed: k_means(lying, count, seed), "sklearn": theirs}
    if options.no_peer:
        del ways["sklearn"]
    runs: dict[str, list[tuple[float, ...]]] = {name: [] for name in ways}
    for seed in range(options.seeds):
        for name, way in ways.items():
            found, wall, cpu = timed(lambda way=way, seed=seed: way(seed))  # type: ignore[misc]
            runs[name].append((*scores(labels, found), wall, cpu))
    columns = {name: list(zip(*rows, strict=True)) for name, rows in runs.items()}
    report: dict[str, Any] = {
        **turns.facts(options.device, options.threads, 1), "load": round(os.getloadavg()[0], 1),
        "images x classes x width": f"{len(points)} x {count} x {points.shape[1]}", "seeds": options.seeds,
    }  # fmt: skip
    for name, (nmi, f1, walls, cpus) in columns.items():
        said = {"nmi": mean(nmi), "nmi std": _spread(nmi), "f1": mean(f1), "f1 std": _spread(f1)}
        said |= {"seconds": min(walls), "cpu": min(cpus)}
        report[name] = {key: round(value, 2) for key, value in said.items()}
    if options.no_peer:
        print(json.dumps(report, indent=2))
        return
    for at, key in enumerate(("nmi", "f1")):
        report[f"ours - sklearn, {key}"] = round(mean(columns["ours"][at]) - mean(columns["sklearn"][at]), 2)
    for at, key in enumerate(("seconds", "cpu"), start=2):
        report[f"sklearn / ours, {key}"] = round(min(columns["sklearn"][at]) / min(columns["ours"][at]), 1)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
