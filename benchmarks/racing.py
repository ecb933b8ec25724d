"""What racing over candidates saves beside all seeds for all of them: on drawn numbers, and on digits.

    python -m benchmarks.racing --drawn [--cells 1000] [--seeds 10]
    python -m benchmarks.racing --digits FOLDER [--seeds 10] [--iterations 100]

Drawn: cells of eight candidates whose true means are known, in standard deviations of a paired difference; half of the
variance of a run is of its seed, which all candidates share. Digits: a sweep of one loss over five widths of the
embedding, raced, and then the same with all seeds for all, which reuses what the race has trained; one training after
the other in this process (the inline engine).
"""

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.stats import t as student

from orchestrator.publish.verdicts.race import beaten
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.inline_conductor import conduct

WORLDS: Final[Mapping[str, Sequence[float]]] = {
    "0 (all alike)": (0.0,) * 8,
    "0.5 (all others)": (0.0, *(0.5,) * 7),
    "1 (all others)": (0.0, *(1.0,) * 7),
    "2 (all others)": (0.0, *(2.0,) * 7),
    "0.5, 1, 1.5, 2, 3, 4, 6": (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0),
    "0.5, 1, 3, 5, 10, 20, 30": (0.0, 0.5, 1.0, 3.0, 5.0, 10.0, 20.0, 30.0),
}
"""By how much the candidates are behind the best one in truth, which is the first."""
WIDTHS: Final = (32, 2, 4, 8, 64)
LOSSES: Final = ("triplet",)

Runs = Any
"""An array of candidates x seeds."""


def raced(runs: Runs, level: float) -> tuple[set[int], int]:
    """Who is left, and the trainings that it took."""
    left, spent = set(range(len(runs))), 3 * len(runs)
    for number in range(3, runs.shape[1]):
        scores = {one: runs[one, :number].tolist() for one in sorted(left)}
        left -= beaten(scores, len(runs) - 1, level, 3, higher=True).keys()
        spent += len(left)
    return left, spent


def uncorrected(runs: Runs) -> tuple[set[int], int]:
    """A paired t-test at 5 % against the best mean so far, after every seed from the fifth on, as in a t-race."""
    left, spent = set(range(len(runs))), 5 * len(runs)
    for number in range(5, runs.shape[1]):
        best = max(sorted(left), key=lambda one: runs[one, :number].mean())
        needed = _critical(number)
        for one in sorted(left - {best}):
            ahead = runs[best, :number] - runs[one, :number]
            if ahead.mean() >= needed * ahead.std(ddof=1) / number**0.5:
                left.discard(one)
        spent += len(left)
    return left, spent


@cache
def _critical(number: int) -> float:
    return float(student.ppf(0.975, number - 1))


def drawn(cells: int, seeds: int) -> None:
    print(f"{cells} cells of 8 candidates, {seeds} seeds at most, {os.cpu_count()} cores\n")
    print("| others are behind by | seeds go to | best dropped | best selected | behind, of the selected | trainings |")
    print("|---|---|--:|--:|--:|--:|")
    for name, behind in WORLDS.items():
        random = np.random.default_rng(20_261_123)
        truth = -np.array(behind)
        worlds = [
            truth[:, None] + (random.normal(size=(8, seeds)) + random.normal(size=(1, seeds))) / 2**0.5
            for _ in range(cells)
        ]
        everyone = set(range(8))
        ways = {
            "all": [(everyone, 8 * seeds)] * cells,
            "**race**, level 0.05": [raced(one, 0.05) for one in worlds],
            "race, level 0.2": [raced(one, 0.2) for one in worlds],
            "t-race, 5 % at each look": [uncorrected(one) for one in worlds],
        }
        for says, found in ways.items():
            _tell(name, says, truth, worlds, found)
        fewer = round(sum(spent for _, spent in ways["**race**, level 0.05"]) / cells / 8)
        _tell(name, f"all, {fewer} seeds", truth, [one[:, :fewer] for one in worlds], [(everyone, 8 * fewer)] * cells)


def _tell(name: str, says: str, truth: Any, worlds: Sequence[Runs], found: Sequence[tuple[set[int], int]]) -> None:
    chosen = [
        max(sorted(left), key=lambda one: runs[one].mean()) for runs, (left, _) in zip(worlds, found, strict=True)
    ]
    dropped = np.mean([0 not in left for left, _ in found])
    trainings = np.mean([spent for _, spent in found])
    best = "" if not truth.any() else f"{np.mean([one == 0 for one in chosen]):.1%}"
    behind = np.mean([-truth[one] for one in chosen])
    print(f"| {name} | {says} | {dropped:.1%} | {best} | {behind:.3f} | {trainings:.0f} |", flush=True)


def spec(name: str, seeds: int, iterations: int, prune: Mapping[str, Any] | None) -> bytes:
    return json.dumps({
        "version": 1, "name": name,
        "recipe": {
            "task": "retrieval", "dataset": "digits", "backbone": {"name": "mlp", "width": 32}, "head": "bn_fc",
            "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "optimizer": {"name": "adam", "lr": 1.0e-3},
            "iterations": iterations,
            "evaluate_every": iterations, "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
        },
        "compare": {"loss": list(LOSSES)},
        "tune": {"embedding": list(WIDTHS)},
        "repeat": {"seed": list(range(seeds))},
        "slot": {"cpus": 1, "gpus": 0},
        "tables": {"main": {"rows": ["loss"], "columns": [], "metrics": ["map@r"]}},
        **({"prune": prune} if prune else {}),
    }).encode()  # fmt: skip


def digits(folder: Path, seeds: int, iterations: int) -> None:
    print(
        f"digits: {', '.join(LOSSES)}, {len(WIDTHS)} widths of the embedding, {seeds} seeds, {os.cpu_count()} cores\n"
    )
    settings = Settings(home=folder, engine="inline")
    service = Service.open(settings)
    try:
        for says, prune in (("raced", {"name": "race"}), ("all seeds for all", None)):
            sweep = service.submissions.submit(spec(says, seeds, iterations, prune)).id
            began = time.perf_counter()
            conduct(settings)
            _report(service, sweep, says, (time.perf_counter() - began) / 60)
    finally:
        service.close()


def _report(service: Service, sweep: int, says: str, minutes: float) -> None:
    counts = service.sweeps.get(sweep).counts
    print(f"{says}: {counts.finished} trainings ({counts.reused} reused), {counts.pruned} trials not trained, "
          f"{minutes:.1f} min", flush=True)  # fmt: skip
    for place in service.sweeps.grid(sweep):
        cell = service.sweeps.cell(sweep, place.index)
        (number,) = cell.numbers
        best = next((one for one in cell.candidates if one.selected), None)
        left = sum(one.status == "complete" for one in cell.candidates)
        width = best.labels["embedding"] if best else "none"
        shown = "none" if number.mean is None else f"{100 * number.mean:.2f}"
        print(f"  {cell.labels['loss']}: selected {width}, test MAP@R {shown}, {left} of {len(WIDTHS)} to the end")
        for one in cell.candidates if not counts.pruned else ():
            print(f"    {one.labels['embedding']}: {100 * (one.score or 0):.2f} ± {100 * (one.std or 0):.2f}")
        for one in cell.candidates:
            reasons = [trial.reason.partition("after")[2] for trial in one.trials if trial.reason]
            if reasons:
                print(f"    {one.labels['embedding']}: after{reasons[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawn", action="store_true")
    parser.add_argument("--digits", type=Path, metavar="FOLDER")
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=100)
    asked = parser.parse_args()
    if asked.drawn:
        drawn(asked.cells, asked.seeds)
    if asked.digits:
        digits(asked.digits, asked.seeds, asked.iterations)


if __name__ == "__main__":
    main()
