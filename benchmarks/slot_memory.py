"""What a slot holds after ever more trainings: memory, threads and open files of the process that trains.

    METRICSWEEP_DATA=... python -m benchmarks.slot_memory [--trainings 50] [--only digits|omniglot] [--foreign] [--gpu]

Drives the slot actor's own class (orchestrator.run.slot_actor.py) in a process of its own, as Ray does in its worker:
one training after another, each of another loss, regularizer or seed, of the shapes of sweeps/digits.yaml and
sweeps/omniglot.yaml with fewer iterations. Prints a Markdown table a data set. PSS counts what is shared by its part.
`RSS / second` is RSS over that after the second training; the command ends with 1 where it is above 1.15 at the end, on
a GPU also where what torch reserves there is.
`--foreign` leaves out what `serve` and docker-compose.yml set for Ray's workers (MALLOC_ARENA_MAX). Omniglot is left
out where its pack is not in the data folder. `--gpu` trains on a GPU, and has two more columns: what torch reserves
there between two trainings, and what the driver counts as used of it, by all processes. On a free core digits take half
a minute and Omniglot ten.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any, Final

from benchmarks.memory import counted
from orchestrator.run.attempt import Workplace
from orchestrator.run.message import Message
from orchestrator.run.slot_actor import SlotActor
from orchestrator.spec.slot import Slot
from orchestrator.views.orders import Order
from workers.catalog import complete, load
from workers.contract import Recipe

MOMENTS: Final = (1, 2, 3, 5, 10, 17, 20, 30, 40, 50)
MOST: Final = 1.15
"""What may be held at the end, over what was held after the second training."""
LOSSES: Final = ("triplet", "multi_similarity", "semihard", "normalized_npair")
REGULARIZERS: Final = ("none", "sec", "svmax", "l2")
SHAPES: Final[dict[str, dict[str, Any]]] = {
    "digits": {
        "dataset": "digits",
        "backbone": {"name": "small_cnn", "width": 32},
        "embedding": 64,
        "sampler": {"name": "balanced", "classes": 4, "per_class": 8},
        "iterations": 60,
        "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
    },
    "omniglot": {
        "dataset": "omniglot",
        "backbone": {"name": "small_cnn", "width": 32, "blocks": 3},
        "embedding": 128,
        "sampler": {"name": "balanced", "classes": 24, "per_class": 5},
        "iterations": 20,
        "evaluate_every": 20,
        "validation": {"name": "class_holdout", "folds": 5, "fold": 0},
        "select": {"metric": "recall@1", "split": "validation"},
    },
}
HEADINGS: Final = ("trainings", "seconds", "RSS in MiB", "PSS in MiB", "threads", "open files", "RSS / second")
GPU_HEADINGS: Final = ("reserved on the GPU in MiB", "held of it in MiB")


def orders(shape: dict[str, Any], count: int, gpus: int) -> Iterator[Order]:
    """So many trainings, no two alike."""
    catalog = load()
    parts = ((loss, regularizer, seed) for seed in range(count) for loss, regularizer in product(LOSSES, REGULARIZERS))
    for loss, regularizer, seed in islice(parts, count):
        raw = {**shape, "loss": loss, "regularizer": regularizer, "seed": seed}
        recipe = complete(Recipe.model_validate(raw), catalog).model_dump(mode="json")
        yield Order(str(uuid.uuid4()), str(uuid.uuid4()), 1, recipe, Slot(gpus=gpus))


def train(actor: SlotActor, order: Order, workplace: Workplace) -> None:
    """One training as a relay follows it."""
    if not actor.start(order, workplace, 1):
        raise RuntimeError("the slot is busy")
    messages: list[bytes] = []
    while not messages or not Message.of(messages[-1]).final:
        messages += actor.poll(order.attempt, len(messages), 10)
    if Message.of(messages[-1]).kind != "finished":
        raise RuntimeError(messages[-1].decode())


def on_gpu(actor: SlotActor) -> list[float]:
    """MiB of a GPU: what torch reserves between two trainings, and what the process holds as the driver counts it."""
    described = actor.describe()
    reserved = sum(size for kind, size in described["held"].items() if "GPU" in kind)
    return [size / 2**20 for size in (reserved, *(gpu["memory_used_bytes"] for gpu in described["usage"]["gpus"]))]


def slot(
    shape: dict[str, Any], count: int, data: Path, gpus: int, answers: "multiprocessing.SimpleQueue[list[float]]"
) -> None:
    """The process of a slot: tells, after each training, what stands in a row of the table."""
    actor = SlotActor(lonely=1e9)
    with tempfile.TemporaryDirectory() as folder:
        workplace = Workplace("workers.train:train", Path(folder), data)
        for number, order in enumerate(orders(shape, count, gpus), 1):
            began = time.monotonic()
            train(actor, order, workplace)
            counts = [len(list(Path(f"/proc/self/{what}").iterdir())) for what in ("task", "fd")]
            held = [counted("Rss"), counted("Pss"), *counts, *(on_gpu(actor) if gpus else [])]
            answers.put([number, time.monotonic() - began, *held])


def measured(name: str, count: int, data: Path, gpus: int) -> float:
    """Print the table of one data set; gives the last ratio, or that of what a GPU reserves if larger."""
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.SimpleQueue[list[float]] = context.SimpleQueue()
    process = context.Process(target=slot, args=(SHAPES[name], count, data, gpus, answers), daemon=True)
    process.start()
    headings = [*HEADINGS, *(GPU_HEADINGS if gpus else ())]
    print(f"\n{name}\n\n| {' | '.join(headings)} |\n|{' --: |' * len(headings)}", flush=True)
    second, ratio, reserved = 0.0, 0.0, 0.0
    for number in range(1, count + 1):
        while answers.empty():
            process.join(0.1)
            if process.exitcode:
                raise SystemExit(f"the slot ended with {process.exitcode}")
        _, seconds, rss, pss, threads, files, *gpu = answers.get()
        second, reserved = (rss, sum(gpu[:1])) if number == 2 else (second, reserved)
        ratio = rss / second if second else 0.0
        if number in MOMENTS or number == count:
            last = f"{ratio:.2f}" if second else ""
            cells = [f"{number}", f"{seconds:.1f}", f"{rss:,.0f}", f"{pss:,.0f}", f"{threads}", f"{files}", last]
            print(f"| {' | '.join([*cells, *(f'{one:,.0f}' for one in gpu)])} |", flush=True)
    process.join()
    return max(ratio, sum(gpu[:1]) / reserved if reserved else 0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainings", type=int, default=50)
    parser.add_argument("--data", type=Path, default=os.environ.get("METRICSWEEP_DATA") or ".metricsweep/data")
    parser.add_argument("--only", choices=list(SHAPES), action="append", help="default: both")
    parser.add_argument("--foreign", action="store_true", help="as in the workers of a Ray that somebody else started")
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as Ray sets it for an actor of one CPU
    if not options.foreign:
        os.environ["MALLOC_ARENA_MAX"] = "1"
    ratios = []
    for name in options.only or SHAPES:
        if name == "omniglot" and not (options.data / "omniglot28.npz").is_file():
            print(f"\nomniglot is left out: there is no omniglot28.npz in {options.data}; set METRICSWEEP_DATA")
        else:
            ratios.append(measured(name, options.trainings, options.data, int(options.gpu)))
    return int(any(ratio > MOST for ratio in ratios))


if __name__ == "__main__":
    sys.exit(main())
