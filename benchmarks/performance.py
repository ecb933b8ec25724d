"""What docs/performance.md says: `python -m benchmarks.performance [NAME ...]`, or `make bench`, on an idle machine.

Runs the benchmarks that goals are set by, each as a process of its own; those named run again, of the others the
figures stay. All that they print is kept in docs/performance.json, and beside each goal its figure in the page.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

DOCS: Final = Path(__file__).parents[1] / "docs"
PAGE: Final = DOCS / "performance.md"
KEPT: Final = DOCS / "performance.json"
BEGIN: Final = "<!-- goals: begin -->"
END: Final = "<!-- goals: end -->"
HEAD: Final = "| | figure | least to greatest | goal | |\n|---|--:|--:|--:|---|"

PLAIN: Final = "Ray Tune with MLflow"
TUNE: Final = "Ray Tune, reused actors, with MLflow"
UP: Final = "metricsweep, up before"

ROUNDS: Final = 5
RUNS: Final[Mapping[str, tuple[str, ...]]] = {
    "sweeps-2s": ("sweeps", "--seconds", "2"),
    # A goal of a tenth needs more than one round.
    "sweeps-2s-rounds": (
        "sweeps",
        "--seconds",
        "2",
        "--rounds",
        str(ROUNDS),
        "--only",
        "pool",
        TUNE,
        "metricsweep",
        UP,
    ),
    "sweeps-10s": ("sweeps", "--seconds", "10", "--rounds", str(ROUNDS), "--only", "pool", "metricsweep", UP),
    "latency": ("latency",),
    "evaluation-cub": ("evaluation",),
    "evaluation-sop": ("evaluation", "--images", "60502", "--classes", "11316", "--repeats", "1"),
    "on-the-way": ("on_the_way",),
    "control": ("scale", "10x10x10"),
    "growth": ("scale", "10x10x10", "10x100x10", "--mlflow"),
    "regularizers": ("regularizers",),
    "losses": ("losses",),
    "input": ("input",),
    "start": ("start",),
}
ONCE: Final = {"growth", "losses"}
"""Of which a run takes ten minutes: 11,000 trials, the library's losses."""
Told = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a benchmark should show: a figure, and the most that it may be."""

    what: str
    run: str
    figure: Callable[[Told], float]
    most: float

    def line(self, kept: Told) -> str:
        """A row of the table: the figure of medians, or the median of figures, and the figures of each round or run."""
        each = [self.figure(one) for one in kept["each"]]
        figure = self.figure(kept["told"]) if "told" in kept else statistics.median(each)
        spread = f"{min(each):g} to {max(each):g} of {len(each)}" if len(each) > 1 else "one run"
        reached = "met" if figure <= self.most else "**missed**"
        return f"| {self.what} | {figure:g} | {spread} | {self.most:g} | {reached} |"


def _wall(peer: str, ours: str = "metricsweep") -> Callable[[Told], float]:
    return lambda told: float(told[f"{ours} / {peer}"])


def _slots(told: Told) -> float:
    return round(float(told["metricsweep"]["slots, CPU s"] / told["pool"]["CPU s"]), 2)


def _first(told: Told) -> float:
    ours, theirs = (told[name]["first result, s"] for name in ("metricsweep", PLAIN))
    return round(float(ours / theirs), 2)


def _control(told: Told, ours: str = "metricsweep") -> float:
    return float(told[ours]["control, CPU ms a trial"])


def _p99(kinds: tuple[str, ...]) -> Callable[[Told], float]:
    return lambda told: max(float(told["answers"][kind]["p99, ms"]) for kind in kinds)


def _scheduled(shape: str) -> Callable[[Told], float]:
    return lambda told: float(told["sweeps"][shape]["schedule"]["CPU ms a trial"])


def _flat(told: Told) -> float:
    return round(_scheduled("10x100x10")(told) / _scheduled("10x10x10")(told), 2)


def _product(told: Told) -> float:
    return float(told["ours / product, cpu"])


def _share(regularizer: str) -> Callable[[Told], float]:
    return lambda told: float(told["of a step, %"][regularizer])


def _on_the_way(told: Told) -> float:
    return max(float(one["on the way, %"]) for name, one in told.items() if name.endswith("by default"))


GOALS: Final = (
    Goal("trainings of 2 s: seconds, in ratio to a bare pool", "sweeps-2s-rounds", _wall("pool"), 1.10),
    Goal("the same, by a service that is up", "sweeps-2s-rounds", _wall("pool", UP), 1.10),
    Goal(f"trainings of 2 s: seconds, in ratio to {PLAIN}", "sweeps-2s", _wall(PLAIN), 1),
    Goal(f"trainings of 2 s: seconds, in ratio to {TUNE}", "sweeps-2s-rounds", _wall(TUNE), 1),
    Goal("trainings of 10 s: seconds, in ratio to a bare pool", "sweeps-10s", _wall("pool"), 1.03),
    Goal("the same, by a service that is up", "sweeps-10s", _wall("pool", UP), 1.03),
    Goal("trainings of 10 s: CPU of slots, in ratio to all of the pool's", "sweeps-10s", _slots, 1.05),
    Goal("control side with MLflow, starts and ends included: CPU ms a trial", "sweeps-2s-rounds", _control, 100),
    Goal("the same, by a service that is up", "sweeps-2s-rounds", lambda told: _control(told, UP), 100),
    Goal(
        "a trial that takes no time, in the conductor alone without Ray and MLflow: CPU ms", "control",
        _scheduled("10x10x10"), 25,
    ),
    Goal("the same with MLflow, of 10,000 trials", "growth", _scheduled("10x100x10"), 100),
    Goal("a trial of 10,000, in ratio to one of 1,000: CPU", "growth", _flat, 1.1),
    Goal(
        "longest wait to write while 10,000 trials are expanded, ms", "growth",
        lambda told: float(told["sweeps"]["10x100x10"]["expand"]["longest wait to write, ms"]), 1_000,
    ),
    Goal(
        "page of a cell of 1,000 trials, ms", "growth",
        lambda told: float(told["sweeps"]["10x100x10"]["read"]["one cell, ms"]), 300,
    ),
    Goal(f"first result, in ratio to {PLAIN}", "sweeps-2s", _first, 1.2),
    Goal(
        "50 clients, 10,000 trials: p99 of reads, ms", "latency",
        _p99(("sweeps", "one sweep", "trials, 50", "one trial")), 50,
    ),
    Goal("50 clients, 5,000 trials done: p99 of a table, ms", "latency", _p99(("table, JSON", "table, LaTeX")), 200),
    Goal(
        "evaluation at CUB's size: CPU, in ratio to pytorch-metric-learning", "evaluation-cub",
        lambda told: float(told["ours / peer, cpu"]), 1,
    ),
    Goal("the same, in ratio to the bare product of matrices", "evaluation-cub", _product, 1.3),
    Goal(
        "evaluation at SOP's size: CPU, in ratio to pytorch-metric-learning", "evaluation-sop",
        lambda told: float(told["ours / peer, cpu"]), 1,
    ),
    Goal("the same, in ratio to the bare product of matrices", "evaluation-sop", _product, 1.3),
    Goal("evaluations on the way by default, on trainings of seconds: % of CPU", "on-the-way", _on_the_way, 5),
    Goal("SEC: % of a ResNet-50 step on one core, b = 120, d = 512", "regularizers", _share("sec"), 1),
    Goal("SVMax: the same", "regularizers", _share("svmax"), 5),
    Goal(
        "a loss of 120 to 2,048 images: CPU, in ratio to pytorch-metric-learning, the dearest", "losses",
        lambda told: told["ours / theirs, CPU, most"], 1,
    ),
    Goal("the same: memory", "losses", lambda told: told["ours / theirs, memory, most"], 1),
    Goal(
        "120 images of 224 px beside a sleep of 60 ms in place of a step: % of the time that is waited", "input",
        lambda told: told["waited, %"], 1,
    ),
    Goal(
        "`--help` and client commands: most CPU s", "start", lambda told: max(told["CPU s of a command"].values()), 0.4,
    ),
    Goal(
        "`serve` over a fresh home: seconds until it answers", "start",
        lambda told: told["seconds until serve answers"], 8,
    ),
    Goal("a worker's import: CPU s", "start", lambda told: told["CPU s of an import"]["workers.train"], 3),
)  # fmt: skip


def ran(name: str) -> Told:
    """What a benchmark prints, when it ran and how: each of its rounds with their medians, or each of several runs."""
    module, *arguments = RUNS[name]
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    kept: Told = {"command": " ".join(command[1:]), "day": f"{time.strftime('%Y-%m-%d')}"}
    if module == "sweeps":
        told = _printed(command)
        return {**kept, "each": told.pop("each"), "told": told}
    return {**kept, "each": [_printed(command) for _ in range(1 if name in ONCE else ROUNDS)]}


def _printed(command: list[str]) -> Told:
    print(" ".join(command[1:]), file=sys.stderr, flush=True)
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, check=True)
    found: Told = json.loads(done.stdout)
    return found


def table(kept: Mapping[str, Told]) -> str:
    """Each goal that was measured, with its figure: not one of a kind that was not there yet when its benchmark ran."""
    lines = [HEAD]
    for goal in GOALS:
        with suppress(KeyError):
            lines.append(goal.line(kept[goal.run]))
    return "\n".join(lines)


def show(kept: Mapping[str, Told]) -> None:
    """Write the table into the page: after each benchmark, so that the page says what is kept whenever they end."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(kept)}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Run what is asked for, keep what it says, and renew the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *RUNS], metavar="NAME", help=", ".join(RUNS))
    kept: dict[str, Told] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    for name in parser.parse_args().names or RUNS:
        kept[name] = ran(name)
        KEPT.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        show(kept)


if __name__ == "__main__":
    main()
