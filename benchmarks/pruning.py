"""What early stopping saves and what it costs: one sweep over learning rates on digits, whole and by each rule.

    python -m benchmarks.pruning [--seeds 3] [--iterations 200] [--rules median asha hyperband]

Two losses at twelve learning rates from 1e-5 to 1, each over some seeds, trained one after the other in this process
(the inline engine), each time from nothing. Printed are the iterations trained, how many candidates were pruned, the
learning rate that each cell selects and its test MAP@R.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.inline_conductor import conduct

RATES = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 0.5, 1.0]
ORDER = [5, 0, 9, 3, 7, 1, 11, 4, 8, 2, 10, 6]
"""In which they are tried: not from the low to the high, so that no rule profits from the order."""


def body(rule: str | None, seeds: int, iterations: int) -> bytes:
    """The spec, with a rule at its defaults or without any."""
    spec: dict[str, Any] = {
        "version": 1,
        "name": rule or "whole",
        "recipe": {
            "dataset": "digits",
            "backbone": {"name": "small_cnn", "width": 32},
            "sampler": {"name": "balanced", "classes": 4, "per_class": 8},
            "iterations": iterations,
            "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
        },
        "compare": {"loss": ["triplet", "multi_similarity"]},
        "tune": {"optimizer.lr": [RATES[at] for at in ORDER]},
        "repeat": {"seed": list(range(seeds))},
        "slot": {"cpus": 1, "gpus": 0},
        "tables": {"main": {"rows": ["loss"], "columns": [], "metrics": ["map@r"]}},
    }
    return json.dumps(spec | ({"prune": rule} if rule else {})).encode()


def measured(rule: str | None, seeds: int, iterations: int, folder: Path) -> dict[str, Any]:
    """What one sweep took and found."""
    settings = Settings(home=folder / (rule or "whole"), engine="inline")
    service = Service.open(settings)
    try:
        sweep = service.submissions.submit(body(rule, seeds, iterations)).id
        began = time.perf_counter()
        conduct(settings)
        seconds = time.perf_counter() - began
        cells = [service.sweeps.cell(sweep, one.index) for one in service.sweeps.grid(sweep)]
        trials = service.trials.page(sweep, None, None, None, 10_000).items
    finally:
        service.close()
    candidates = [one for cell in cells for one in cell.candidates]
    chosen = [next((one for one in cell.candidates if one.selected), None) for cell in cells]
    return {
        "iterations": sum(one.step for one in trials),
        "seconds": round(seconds, 1),
        "pruned": sum(one.status == "pruned" for one in candidates),
        "candidates": len(candidates),
        "selected": [one.labels["optimizer.lr"] if one else None for one in chosen],
        "map@r": [round(number.mean, 4) if number.mean is not None else None for c in cells for number in c.numbers],
    }


def main() -> None:
    """Print one line for the whole sweep and one for each rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--rules", nargs="*", default=["median", "asha", "hyperband"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for rule in (None, *options.rules):
            found = measured(rule, options.seeds, options.iterations, Path(folder))
            print(json.dumps({"rule": rule or "none"} | found), flush=True)


if __name__ == "__main__":
    main()
