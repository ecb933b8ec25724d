"""What an evaluation costs: ours against pytorch-metric-learning's AccuracyCalculator, on the same random embeddings.

    python -m benchmarks.evaluation [--images 5924] [--classes 100] [--width 512] [--threads N]
                                    [--repeats 3] [--clusters] [--no-peer] [--points N] [--device cuda]

CUB's test split is the default; SOP's is `--images 60502 --classes 11316`, MNIST's halves by classes are about
`--images 15000 --classes 2`. The peer computes recall@1, map@r and r_precision with faiss; ours also recall@1000. With
`--clusters` both also compute nmi, each with its own k-means, ours in one thread. With `--points` all images lie on so
many points, as of a network that collapsed: all is tied, which the peer breaks by the order of the files. Each runs in
a process of its own, with `--device cuda` on the GPU, where the peer searches by its own code in torch: the faiss that
pip installs computes on CPUs. Its memory is then the peak of torch's memory there, less the embeddings. On a CPU its
memory is the peak of the process, which includes the making of the embeddings, less what it held before (Linux). On a
busy machine compare the seconds of the processor (`cpu`), of all threads together, and not those of the clock. The
`product` is the bare one of all embeddings with one another, in the chunks and the memory that ours takes for it.
"""

import argparse
import json
import math
import multiprocessing
import os
import platform
import resource
import time
from pathlib import Path

import faiss
import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import CustomKNN
from torch import Tensor

from workers.evaluation import neighbours
from workers.evaluation.evaluate import Evaluation
from workers.evaluation.measures import Measures
from workers.evaluation.neighbours import CHUNK, rows_of

OURS = ("recall@1", "recall@1000", "map@r", "r_precision")
PEERS = {"recall@1": "precision_at_1", "map@r": "mean_average_precision_at_r", "r_precision": "r_precision"}


def embeddings(options: argparse.Namespace) -> tuple[Tensor, Tensor]:
    """Unit embeddings in classes that overlap, float32, and their labels."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(options.images) % options.classes
    means = torch.randn(options.classes, options.width, generator=generator)
    if options.points:
        drawn = torch.randint(options.points, (options.images,), generator=generator)
        return torch.nn.functional.normalize(torch.randn(options.points, options.width, generator=generator))[
            drawn
        ], labels
    scatter = torch.randn(options.images, options.width, generator=generator)
    return torch.nn.functional.normalize(scatter.add_(means[labels], alpha=0.2)), labels


def ours(rows: Tensor, labels: Tensor, clusters: bool) -> dict[str, float]:
    names = [*OURS, *(["nmi"] if clusters else [])]
    return Measures(names).of(Evaluation(rows, labels), names)


def peer(rows: Tensor, labels: Tensor, clusters: bool) -> dict[str, float]:
    wanted = {**PEERS, **({"nmi": "NMI"} if clusters else {})}
    search = {"knn_func": CustomKNN(CosineSimilarity(), batch_size=4096)} if rows.is_cuda else {}
    calculator = AccuracyCalculator(include=tuple(wanted.values()), k="max_bin_count", device=rows.device, **search)
    found = calculator.get_accuracy(rows, labels)
    return {name: float(found[theirs]) for name, theirs in wanted.items()}


def product(rows: Tensor, labels: Tensor, clusters: bool) -> dict[str, float]:
    """The least that an exact evaluation computes: each cosine once."""
    size = max(1, rows_of(CHUNK, len(rows)))
    room = neighbours.scratch_room(min(size, len(rows)), rows, rows)
    for some in torch.split(rows, size):
        cosines = neighbours.cosines(some, rows, room)
    return {"last cosine": float(cosines[-1, -1])}


def measured(options: argparse.Namespace, which: str, answer: "multiprocessing.SimpleQueue[dict[str, float]]") -> None:
    """Seconds, MiB and values of one of the three."""
    torch.set_num_threads(options.threads)
    faiss.omp_set_num_threads(options.threads)
    rows, labels = (one.to(options.device) for one in embeddings(options))
    function = {"ours": ours, "product": product, "peer": peer}[which]
    few = min(200, options.images)
    function(rows[:few].clone(), labels.new_tensor(range(few)) % 5, options.clusters)  # whatever is only loaded once
    before, seconds, cpu = _held(rows), math.inf, math.inf
    for _ in range(options.repeats):
        began, worked = time.perf_counter(), time.process_time()
        values = function(rows, labels, options.clusters)  # numbers: a GPU was waited for
        seconds, cpu = min(seconds, time.perf_counter() - began), min(cpu, time.process_time() - worked)
    peak = _most(rows) - before
    found = {"seconds": round(seconds, 3), "cpu": round(cpu, 2), "MiB": round(peak / 1024)}
    answer.put({**found, **{name: round(value, 6) for name, value in values.items()}})


def _held(rows: Tensor) -> int:
    """KiB of memory in use where the embeddings lie."""
    if rows.is_cuda:
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated() // 1024
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


def _most(rows: Tensor) -> int:
    """The most KiB that were in use there."""
    return (
        torch.cuda.max_memory_allocated() // 1024
        if rows.is_cuda
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    )


def main() -> None:
    """Print seconds, memory, values and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5924)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=3, help="the fastest counts")
    parser.add_argument("--points", type=int, default=0, help="on which all images lie; 0: each has its own")
    parser.add_argument("--clusters", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    found: dict[str, dict[str, float]] = {}
    for which in ("ours", "product") if options.no_peer else ("ours", "product", "peer"):
        answer: multiprocessing.SimpleQueue[dict[str, float]] = context.SimpleQueue()
        process = context.Process(target=measured, args=(options, which, answer))
        process.start()
        process.join()
        found[which] = answer.get()
    report = {
        "cores": os.cpu_count(),
        "device": torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device,
        "load": round(os.getloadavg()[0], 1),
        "threads": options.threads,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "images x width": f"{options.images} x {options.width}",
        "classes": options.classes,
        **found,
    }
    for other in [name for name in ("product", "peer") if name in found]:
        for measure in ("seconds", "cpu"):
            report[f"ours / {other}, {measure}"] = round(found["ours"][measure] / found[other][measure], 3)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
