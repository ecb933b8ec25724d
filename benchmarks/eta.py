"""How far the time left was off: what was told of real sweeps while they ran, beside what they then took.

    python -m benchmarks.eta [--seeds 3] [--every 0.5] [--inline]

Each sweep trains digits for real through `metricsweep run` in two slots, or with `--inline` one after the other in one
process, which a busy machine disturbs less: a grid of trainings alike, a grid whose cells
take unlike steps, a search, and a grid with early stopping. What REST, command line and page tell is asked for all the
while; the file says, at 10, 25, 50 and 75 % of the steps, the time left as it was told, its bounds, and what it took.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import MetricsweepError
from orchestrator.views.lifecycle import SWEEP_ENDED
from orchestrator.views.sweeps import SweepView

PERCENTS: Final = (10, 25, 50, 75)
SLOTS: Final = 2
RECIPE: Final[Mapping[str, Any]] = {
    "dataset": "digits", "backbone": {"name": "small_cnn", "width": 16}, "embedding": 32, "iterations": 600,
    "loss": "triplet", "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "evaluate_every": 60,
    "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """What was told at a moment."""

    at: float
    done: float  # of the steps, as a share
    left: float | None
    low: float | None
    high: float | None


def spec(name: str, seeds: int) -> bytes:
    """The sweep of that name."""
    made: dict[str, Any] = {
        "version": 1, "name": name, "recipe": dict(RECIPE), "repeat": {"seed": list(range(seeds))},
        "compare": {"loss": ["triplet", "semihard", "multi_similarity"]},
        "tune": {"optimizer.lr": [0.0003, 0.001, 0.003]}, "slot": {"cpus": 1, "gpus": 0},
        "tables": {"main": {"rows": ["loss"], "columns": ["dataset"], "metrics": ["recall@1", "map@r"]}},
    }  # fmt: skip
    match name:
        case "unlike steps":
            made["compare"] = {"backbone.width": [8, 32], "iterations": [300, 1200]}
            made["tables"]["main"]["rows"] = ["backbone.width", "iterations"]
        case "search":
            made["tune"] = {"optimizer.lr": {"low": 0.0001, "high": 0.01, "log": True}}
            made["search"] = {"name": "tpe", "trials": 4}
        case "early stopping":
            made["tune"] = {"optimizer.lr": [0.0, 0.00001, 0.0003, 0.001, 0.003]}
            made["prune"] = {"name": "asha"}
    return yaml.safe_dump(made).encode()


def watched(text: bytes, home: Path, every: float, *, inline: bool) -> tuple[list[Told], SweepView]:
    """What was told of a sweep while it ran, and what became of it."""
    (home / "spec.yaml").write_bytes(text)
    command = [
        sys.executable,
        "-m",
        "api.cli",
        "run",
        str(home / "spec.yaml"),
        "--home",
        str(home / "home"),
        "--out",
        str(home / "out"),
    ]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "METRICSWEEP_SLOTS": str(SLOTS)}
    if inline:
        command = [sys.executable, "-m", "orchestrator", "run", str(home / "spec.yaml")]
        settings["METRICSWEEP_HOME"] = str(home / "home")
    told: list[Told] = []
    with (home / "log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=settings)
    try:
        while not (home / "home" / "metricsweep.db").exists() and running.poll() is None:
            time.sleep(every)
        time.sleep(every)
        with closing(Service.open(Settings(home=home / "home"))) as service:
            while running.poll() is None:
                told += looked(service)
                time.sleep(every)
            if running.returncode:
                raise SystemExit((home / "log").read_text(encoding="utf-8"))
            return told, service.sweeps.get(1)
    finally:
        if running.poll() is None:  # else it would go on in a folder that is gone
            running.terminate()
            running.wait()


def looked(service: Service) -> list[Told]:
    """What is told now; nothing before the sweep is submitted and after its end."""
    try:
        view = service.sweeps.get(1)
    except MetricsweepError:
        return []
    share = view.steps.done / max(1, view.steps.total)
    told = Told(time.time(), share, view.eta_seconds, view.eta_low_seconds, view.eta_high_seconds)
    return [] if view.state in SWEEP_ENDED else [told]


def judged(told: Sequence[Told], sweep: SweepView) -> dict[str, Any]:
    """The errors at each of the percentages, and how often the bounds held."""
    assert sweep.started is not None
    assert sweep.ended is not None
    end = sweep.ended.timestamp()
    rows = {}
    for percent in PERCENTS:
        one = next((one for one in told if one.done * 100 >= percent and one.left is not None), None)
        if one is not None and one.left is not None:
            took = end - one.at
            rows[f"{percent} %"] = {
                "told": round(one.left, 1), "low": round(one.low or 0, 1), "high": round(one.high or 0, 1),
                "took": round(took, 1), "off": f"{(one.left - took) / took:+.0%}",
                "within": bool((one.low or 0) <= took <= (one.high or 0)),
            }  # fmt: skip
    known = [one for one in told if one.left is not None]
    held = sum((one.low or 0) <= end - one.at <= (one.high or 0) for one in known)
    first = min((one.done for one in known), default=1.0)
    return {
        "seconds": round((sweep.ended - sweep.started).total_seconds(), 1),
        "trials": sweep.counts.model_dump(exclude_defaults=True),
        "first told at": f"{first:.0%}",
        "within the bounds": f"{held} of {len(known)} looks",
        **rows,
    }


def main() -> None:
    """Run the sweeps and print how far the time left was off."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--every", type=float, default=0.5, metavar="SECONDS")
    parser.add_argument("--only", choices=["alike", "unlike steps", "search", "early stopping"])
    parser.add_argument("--inline", action="store_true", help="in one process, without Ray and MLflow")
    parser.add_argument("--record", type=Path, help="a file for all that was told")
    chosen = parser.parse_args()
    found: dict[str, Any] = {"cores": os.cpu_count(), "python": platform.python_version()}
    everything = {}
    for name in [chosen.only] if chosen.only else ["alike", "unlike steps", "search", "early stopping"]:
        with tempfile.TemporaryDirectory(prefix="metricsweep-") as folder:
            before = os.getloadavg()[0]
            told, sweep = watched(spec(name, chosen.seeds), Path(folder), chosen.every, inline=chosen.inline)
        loads = [round(before, 1), round(os.getloadavg()[0], 1)]
        found[name] = {"load before and after": loads, **judged(told, sweep)}
        everything[name] = [asdict(one) for one in told]
        print(json.dumps({name: found[name]}, indent=2), flush=True)
    if chosen.record:
        chosen.record.write_text(json.dumps(everything) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
