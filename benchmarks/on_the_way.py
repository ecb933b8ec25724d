"""What the evaluations on the way cost a training: their share of its CPU, as a spec has them and by default.

    python -m benchmarks.on_the_way [sweeps/digits.yaml sweeps/quick/sec_t3.yaml ...] [--repeats 3]

The first trial of each spec is trained in one thread, with its own `evaluate_every` and with the default (a tenth of
`iterations`, or one epoch). Counted are the evaluations on the way and the weights that are kept where these are the
best; not those of the last and the best weights at the end, which are a share of their own. The first training of the
process warms up, and the smallest share of the repeats counts.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from orchestrator.plan.checking.check import check
from orchestrator.plan.grid import expand
from orchestrator.plan.reading.document import parse
from workers.catalog import load
from workers.contract import Place, Recipe
from workers.train import train
from workers.training import final_metrics, loop

SPECS = ("sweeps/digits.yaml", "sweeps/quick/sec_t3.yaml", "sweeps/quick/isa_t1.yaml")


class Meter:
    """Seconds of the processor within some functions."""

    def __init__(self) -> None:
        self.seconds, self.calls = 0.0, 0

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, counted."""

        def counted(*arguments: Any) -> Any:
            began = time.process_time()
            try:
                return function(*arguments)
            finally:
                self.seconds += time.process_time() - began
                self.calls += 1

        return counted


def measured(recipe: Recipe) -> dict[str, float]:
    """Shares of a training of `recipe` in percent of its CPU, and what these are of."""
    way, end = Meter(), Meter()
    plain = loop.evaluated, loop.judge, final_metrics._every
    # The end has its own names of both, so that these are of the way alone.
    loop.evaluated, loop.judge, final_metrics._every = (
        way.of(plain[0]), way.of(plain[1]), end.of(plain[2]),
    )  # fmt: skip
    try:
        with tempfile.TemporaryDirectory() as folder:
            place = Place(Path(folder), Path(folder), Path(folder), threads=1)
            began = time.process_time()
            train(recipe, place, lambda _: None)
            cpu = time.process_time() - began
    finally:
        loop.evaluated, loop.judge, final_metrics._every = plain
    return {
        "cpu": round(cpu, 2),
        "evaluations on the way": way.calls // 2,
        "on the way, %": round(100 * way.seconds / cpu, 1),
        "at the end, %": round(100 * end.seconds / cpu, 1),
    }


def main() -> None:
    """Print the shares of each spec."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", default=SPECS)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    catalog, report = load(None), {}
    warm = False
    for path in options.specs:
        written = next(iter(expand(check(parse(Path(path).read_bytes()), catalog), catalog).trials())).recipe
        default = written.model_copy(update={"evaluate_every": None})
        for name, recipe in (("as written", written), ("by default", default)):
            if not warm:
                measured(recipe)
                warm = True
            found = [measured(recipe) for _ in range(options.repeats)]
            report[f"{path}, {name}"] = min(found, key=lambda one: one["on the way, %"])
    print(json.dumps({"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), **report}, indent=2))


if __name__ == "__main__":
    main()
