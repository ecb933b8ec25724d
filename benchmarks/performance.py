"""Measure the goals of docs/performance.md: `python -m benchmarks.performance [NAME ...]`, or `make bench`.

Run it on an idle machine. Each benchmark is a process of its own. With names only these run, and the other figures
stay. docs/performance.json keeps all that they print, and the table of the page shows each goal with its figure.
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

TUNE: Final = "Ray Tune, reused actors, with MLflow"
UP: Final = "metricsweep, up before"

ROUNDS: Final = 3
RUNS: Final[Mapping[str, tuple[str, ...]]] = {
    "sweeps-2s": ("sweeps", "--seconds", "2", "--rounds", str(ROUNDS), "--only", "pool", TUNE, "metricsweep", UP),
    "sweeps-10s": ("sweeps", "--seconds", "10", "--rounds", "1", "--only", "pool", TUNE, UP),
    "sweeps-60s": ("sweeps", "--seconds", "60", "--trials", "16", "--only", "pool", UP),
    "latency": ("latency",),
    "evaluation": ("evaluation", "--images", "60502", "--classes", "11316", "--repeats", "1"),
    "start": ("start",),
}
ONCE: Final = {"sweeps-60s", "latency"}
"""Benchmarks that run once, because a run takes many minutes."""
Figures = dict[str, Any]
"""What a benchmark prints: a JSON object."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal of the design: a figure of a benchmark, the most that it may be, and why it is missed where it is."""

    what: str
    run: str
    figure: Callable[[Figures], float]
    most: float
    reason: str = ""

    def line(self, kept: Figures) -> str:
        """A row of the table: the figure of medians, or the median of figures, and the figures of each round or run."""
        each = [self.figure(one) for one in kept["each"]]
        figure = self.figure(kept["medians"]) if "medians" in kept else statistics.median(each)
        spread = f"{min(each):g} to {max(each):g} of {len(each)}" if len(each) > 1 else "one run"
        reached = "met" if figure <= self.most else f"**missed**{self.reason and f': {self.reason}'}"
        return f"| {self.what} | {figure:g} | {spread} | {self.most:g} | {reached} |"


def _wall(peer: str, ours: str = "metricsweep") -> Callable[[Figures], float]:
    return lambda figures: float(figures[f"{ours} / {peer}"])


def _p95(kinds: tuple[str, ...]) -> Callable[[Figures], float]:
    return lambda figures: max(float(figures["answers"][kind]["p95, ms"]) for kind in kinds)


GOALS: Final = (
    Goal(
        "48 trainings of 2 s by `metricsweep run`: wall time / Ray Tune with reused actors and MLflow",
        "sweeps-2s", _wall(TUNE), 1, "API, Ray and MLflow start and stop on the two cores that train",
    ),
    Goal("the same through a service that is up", "sweeps-2s", _wall(TUNE, UP), 1),
    Goal("48 trainings of 10 s through a service that is up: wall time / the same Ray Tune", "sweeps-10s",
         _wall(TUNE, UP), 1),
    Goal("16 trainings of 60 s through a service that is up: wall time / a bare pool", "sweeps-60s",
         _wall("pool", UP), 1.03, "conductor, MLflow, API and Ray share the two cores with the slots"),
    Goal("first result of `metricsweep run`, s", "sweeps-2s",
         lambda figures: figures["metricsweep"]["first result, s"], 20),
    Goal("`metricsweep serve` over a new home until it answers, s", "start",
         lambda figures: figures["seconds until serve answers"], 10),
    Goal("the slowest command, s", "start", lambda figures: max(figures["seconds of a command"].values()), 1),
    Goal("10 clients, sweep of 10,000 trials: p95 of pages, ms", "latency",
         _p95(("page: sweeps", "page: one sweep", "page: trials", "page: one trial")), 200),
    Goal("the same: p95 of tables, ms", "latency", _p95(("table, JSON", "table, LaTeX")), 200),
    Goal("evaluation at SOP's size: CPU / pytorch-metric-learning", "evaluation",
         lambda figures: float(figures["ours / peer, cpu"]), 1),
)  # fmt: skip


def ran(name: str) -> Figures:
    """Run a benchmark, and return its command, its date, and the figures of each round or run."""
    module, *arguments = RUNS[name]
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    kept: Figures = {"command": " ".join(command[1:]), "day": f"{time.strftime('%Y-%m-%d')}"}
    if module == "sweeps":
        figures = _printed(command)
        return {**kept, "each": figures.pop("each"), "medians": figures}
    return {**kept, "each": [_printed(command) for _ in range(1 if name in ONCE else ROUNDS)]}


def _printed(command: list[str]) -> Figures:
    print(" ".join(command[1:]), file=sys.stderr, flush=True)
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, check=True)
    found: Figures = json.loads(done.stdout)
    return found


def table(kept: Mapping[str, Figures]) -> str:
    """The table of all goals whose figure was measured."""
    lines = [HEAD]
    for goal in GOALS:
        with suppress(KeyError):
            lines.append(goal.line(kept[goal.run]))
    return "\n".join(lines)


def show(kept: Mapping[str, Figures]) -> None:
    """Write the table into the page: after each benchmark, so that the page says what is kept whenever they end."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(kept)}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Run the named benchmarks, keep their output, and update the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *RUNS], metavar="NAME", help=", ".join(RUNS))
    kept: dict[str, Figures] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    for name in parser.parse_args().names or RUNS:
        kept[name] = ran(name)
        KEPT.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        show(kept)


if __name__ == "__main__":
    main()
