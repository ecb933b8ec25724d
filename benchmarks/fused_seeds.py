"""Whether several seeds of a candidate are trained faster as one network whose channels lie side by side.

    python -m benchmarks.fused_seeds [--dataset digits|omniglot] [--loss triplet ...] [--seeds 3] [--threads 1|2]
                                     [--iterations N] [--rounds 3] [--device cpu|cuda] [--at-once] [--data FOLDER]

The recipes are those of sweeps/digits.yaml and sweeps/omniglot.yaml. Each seed draws its own batches and weights as the
product does; convolutions are grouped, batch norms are over all channels, the linear layer is one product of a batch of
matrices, the optimizer is one; each seed's loss is its own. Told is

- how far losses and final metrics lie from those of `workers.train`, and, as a yardstick of what rounding grows to, how
  far the product's own lie from these once each weight of the head begins as the next greater number;
- the CPU seconds of whole trainings: the same trainings with what they evaluate at their end, in this process;
- what an iteration of a seed takes, in milliseconds by the clock and of the processors, and `gain`: how many times that
  separate trainings take with as many cores, in one process one seed after the other, or in a process a core. Two
  processes train all seeds each. All layouts take turns. Evaluations, points of curves, checkpoints, start and end are
  not in it. With `--at-once` also a triplet loss of all seeds in one computation, which is not the product's, and which
  of the product's losses torch's vmap takes as they are.

Omniglot needs omniglot28.npz in METRICSWEEP_DATA. It was never run on a GPU.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch

from benchmarks import turns
from benchmarks.fused import agreement, throughput
from benchmarks.fused.batched_losses import vmapped
from benchmarks.fused.recipes import DATA, Candidate

ITERATIONS: Final = {"digits": 300, "omniglot": 100}
"""Those of a training whose numbers are compared."""
TIMED: Final = {"digits": 100, "omniglot": 8}
"""Those that each seed does in a round."""


def compare(candidate: Candidate, iterations: int, rounds: int) -> None:
    """Print how far the numbers lie apart, and the CPU seconds of whole trainings."""
    seconds: dict[str, list[float]] = {"separate": [], "fused": []}
    if candidate.dataset == "digits":  # what is imported once is much beside so short trainings
        agreement.product(candidate, 1)
    for _ in range(rounds):
        began = time.process_time()
        own = agreement.product(candidate, iterations)
        between = time.process_time()
        fused = agreement.fused(candidate, iterations)
        seconds["separate"].append(between - began)
        seconds["fused"].append(time.process_time() - between)
    at = sorted({min(step, iterations) for step in (20, 100, iterations)})
    for name, numbers in {"fused": fused, "nudged": agreement.nudged(candidate, iterations)}.items():
        told = agreement.apart(numbers, own, at)
        print(f"  {name:<34}" + "  ".join(f"{key} {value:.1e}" for key, value in told.items()), flush=True)
    gain = statistics.median(a / b for a, b in zip(seconds["separate"], seconds["fused"], strict=True))
    took = "  ".join(f"{name} {statistics.median(values):.1f}" for name, values in seconds.items())
    print(f"  {'whole trainings, CPU seconds':<34}{took}  gain {gain:.2f}", flush=True)


def time_it(candidate: Candidate, options: argparse.Namespace) -> None:
    """Print what each layout takes."""
    count = options.timed or TIMED[candidate.dataset]
    kinds = ["separate", "fused", *(["at once"] if options.at_once and candidate.loss == "triplet" else [])]
    wanted = throughput.layouts(options.threads, kinds)
    print(f"  {'':<34}{'clock':>9}{'CPU':>9}{'gain by clock':>15}{'by CPU':>9}")
    for row in throughput.measured(candidate, wanted, count, options.rounds):
        took, gain = row.took, row.gain
        print(f"  {row.layout!s:<34}{took.wall:>9.2f}{took.cpu:>9.2f}{gain.wall:>15.2f}{gain.cpu:>9.2f}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare and measure."""
    parser = argparse.ArgumentParser("python -m benchmarks.fused_seeds", description=__doc__.partition("\n")[0])
    parser.add_argument("--dataset", choices=[*ITERATIONS], default="digits")
    parser.add_argument("--loss", nargs="+", default=["triplet", "multi_similarity"])
    parser.add_argument("--regularizer", default="none")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, help="of a training whose numbers are compared; 0 compares none")
    parser.add_argument("--timed", type=int, help="iterations of each seed in a round")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1, help="the cores: threads, or processes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--at-once", action="store_true", help="also a triplet loss that was written for all seeds")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    iterations = ITERATIONS[options.dataset] if options.iterations is None else options.iterations
    facts = turns.facts(options.device, options.threads, options.rounds)
    print("; ".join(f"{key} {value}" for key, value in facts.items()))
    if options.at_once:
        print("; ".join(f"{name} {'goes' if goes else 'does not go'} by vmap" for name, goes in vmapped().items()))
    for loss in options.loss:
        with tempfile.TemporaryDirectory() as folder:
            candidate = Candidate(
                options.dataset, loss, options.regularizer, options.seeds, options.device, Path(folder), options.data
            )
            print(f"{options.dataset}, {loss}, {options.regularizer}, {options.seeds} seeds", flush=True)
            if iterations:
                compare(candidate, iterations, options.rounds if options.dataset == "digits" else 1)
            time_it(candidate, options)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
