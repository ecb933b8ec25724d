"""What the service's answers take of the processor, one after the other: `python -m benchmarks.answers`.

Over a sweep of which half has ended and a list of small ones that wait, in this process, without HTTP: milliseconds of
CPU, the mean of `--times`. A submit is one of a single trial. What `benchmarks.latency` shows beyond this is what
requests wait for.
"""

import argparse
import itertools
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.latency import train_some
from benchmarks.sweep_of import Shape, body
from orchestrator.service.service import Service
from orchestrator.settings import Settings


def questions(service: Service, trials: int) -> Mapping[str, Callable[[], Any]]:
    """What is asked, by name."""
    numbers = itertools.count(2)
    trial = itertools.cycle(range(1, trials + 1))
    return {
        "submit": lambda: service.submissions.submit(body(Shape(1, 1, 1), next(numbers))),
        "sweeps, 50": lambda: service.sweeps.page(None, None, None, 50),
        "one sweep": lambda: service.sweeps.get(1),
        "trials, 50": lambda: service.trials.page(1, None, None, None, 50),
        "one trial": lambda: service.trials.get(next(trial)),
        "table, kept": lambda: service.tables.render(1, "main", "json"),
        "table, anew": lambda: service.tables._rendered(1, "main", "json", None, "own"),
    }


def cpu_milliseconds(ask: Callable[[], Any], times: int) -> float:
    """The mean of so many answers, after one that is not counted."""
    ask()
    began = time.process_time()
    for _ in range(times):
        ask()
    return 1_000 * (time.process_time() - began) / times


def main() -> None:
    """Print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="10x100x10")
    parser.add_argument("--times", type=int, default=60)
    options = parser.parse_args()
    shape = Shape.parse(options.shape)
    with tempfile.TemporaryDirectory(prefix="metricsweep-") as folder:
        settings = Settings(home=Path(folder), engine="inline")
        environment = {"METRICSWEEP_HOME": folder, "METRICSWEEP_ENGINE": "inline"}
        train_some(settings, environment, shape, shape.trials // 2)
        service = Service.open(settings)
        try:
            asked = questions(service, shape.trials)
            took = {name: round(cpu_milliseconds(ask, options.times), 1) for name, ask in asked.items()}
        finally:
            service.close()
    facts = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version()}
    print(json.dumps({**facts, "shape": str(shape), "CPU ms of an answer": took}, indent=2))


if __name__ == "__main__":
    main()
