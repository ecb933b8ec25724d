"""What trainings gain by sharing a device: the iterations a second of 1, 2, 4 and 8 of them side by side.

    python -m benchmarks.together [--device cuda] [--only SimCLR] [--counts 1 2 4 8] [--seconds 5] [--out together.csv]

Each training is a process of its own with the product's iterations of a recipe of benchmarks/step.py, in one thread.
All are started once; then the first so many of them train at the same time for some seconds, while the others wait.
`each` is what one of them does a second, `all` what they do together, `gain` the latter over that of one alone, and
`memory` the GiB of the device that all processes hold, those that wait included.

With NVIDIA's MPS, if it is on: `nvidia-cuda-mps-control -d` starts it, `echo quit | nvidia-cuda-mps-control` ends it.
"""

import argparse
import csv
import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import torch

from benchmarks import turns
from benchmarks.step import IMAGES, RECIPES, Measured
from workers.training import determinism

SHARED: Final = ("small_cnn, 40 of 28 px", "resnet18, SimCLR, 2 x 256 of 32 px")
"""The recipes: of small images, which a GPU computes faster than a process can ask for."""
COLUMNS: Final = ("recipe", "trainings", "each", "all", "gain", "memory")
_LATE: Final = 1.0  # seconds after an order in which all of them begin


def mps() -> bool:
    """Whether NVIDIA's daemon that lets processes compute at the same time is on."""
    return (Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")) / "control").exists()


def training(name: str, folder: str, device: str, orders: Connection) -> None:
    """The process of one training: says that it is ready, then how many iterations it did in how many seconds."""
    with determinism.applied(torch.device(device), 1):
        one = Measured(RECIPES[name], Path(folder), device)
        one.iterate(8)
        orders.send(_held(device))
        while (order := orders.recv()) is not None:
            begin, seconds = order
            time.sleep(max(0.0, begin - time.time()))
            began, count = time.perf_counter(), 0
            while time.perf_counter() - began < seconds:
                one.iterate(1)
                count += 1
            if device.startswith("cuda"):
                torch.cuda.synchronize()
            orders.send((count, time.perf_counter() - began))


def _held(device: str) -> float:
    """The GiB of the device that are in use, by whomever."""
    if not device.startswith("cuda"):
        return 0.0
    free, total = torch.cuda.mem_get_info()
    return (total - free) / 2**30


def measured(name: str, folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of a recipe."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for _ in range(max(options.counts)):
        ours, theirs = context.Pipe()
        process = context.Process(target=training, args=(name, str(folder), options.device, theirs), daemon=True)
        process.start()
        theirs.close()  # so that the end of a process ends what waits for its answer
        pipes.append(ours)
        processes.append(process)
    held = max(pipe.recv() for pipe in pipes)
    rows: list[dict[str, Any]] = []
    for count in options.counts:
        for pipe in pipes[:count]:
            pipe.send((time.time() + _LATE, options.seconds))
        rates = [done / seconds for done, seconds in (pipe.recv() for pipe in pipes[:count])]
        each, every = sum(rates) / count, sum(rates)
        gain = every / (rows[0]["all"] if rows else every)
        rows.append(dict(zip(COLUMNS, (name, count, each, every, gain, held), strict=True)))
        print(f"{name:<36}{count:>10}" + "".join(f"{rows[-1][column]:>10.2f}" for column in COLUMNS[2:]), flush=True)
    for pipe, process in zip(pipes, processes, strict=True):
        with suppress(BrokenPipeError):
            pipe.send(None)
        process.join()
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a line for each recipe and number, and write a CSV if asked."""
    parser = argparse.ArgumentParser("python -m benchmarks.together", description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", default="", help="recipes with this in their name")
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4, 8], help="ascending, from 1 on")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    about = {**turns.facts(options.device, 1, 1), "mps": "on" if mps() else "off"}
    print("; ".join(f"{key} {value}" for key, value in about.items()))
    print(f"{COLUMNS[0]:<36}{COLUMNS[1]:>10}" + "".join(f"{column:>10}" for column in COLUMNS[2:]))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "datasets").mkdir()
        (Path(folder) / "datasets" / "random_images.py").write_text(IMAGES)
        for name in (name for name in SHARED if options.only in name):
            rows += measured(name, Path(folder), options)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*COLUMNS, *about])
            writer.writeheader()
            writer.writerows({**row, **about} for row in rows)


if __name__ == "__main__":
    main()
