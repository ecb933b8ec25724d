"""How much of the slots' time real trainings get: `metricsweep run`, whole, against a shell loop over the same recipes.

    python -m benchmarks.shell_loop [--spec sweeps/digits.yaml] [--seeds 2]

Both train what the spec means, two at a time, one after the other on this machine: first the service with its API,
conductor, Ray, MLflow and database as a person starts it, then two loops that call `python -m workers train`. The share
is the time that trainings themselves took over the time that two slots had: of the service also from the first start
to the last end, without its own start and end. Run it on an otherwise idle machine.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import torch

from orchestrator.plan.reading.edit import edited
from orchestrator.plan.validated import read
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.trials import TrialView
from workers import catalog

SLOTS: Final = 2
ONE_THREAD: Final = {**os.environ, "OMP_NUM_THREADS": "1"}


def served(spec: Path, home: Path) -> dict[str, float]:
    """What `metricsweep run` takes."""
    command = [sys.executable, "-m", "api.cli", "run", str(spec), "--home", str(home), "--out", str(home / "out")]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=ONE_THREAD | {"METRICSWEEP_SLOTS": str(SLOTS)})
    wall = time.perf_counter() - began
    trials = list(_trials(home))
    trained = sum(one.seconds or 0.0 for one in trials)
    attempts = [attempt for one in trials for attempt in one.attempts]
    ends = [one.ended for one in attempts if one.ended is not None]
    busy = (max(ends) - min(one.started for one in attempts)).total_seconds()
    return {
        "trainings": len(trials),
        "seconds": round(wall, 1),
        "seconds from the first start to the last end": round(busy, 1),
        "seconds of a training": round(trained / len(trials), 2),
        "share": round(trained / SLOTS / wall, 3),
        "share from the first start to the last end": round(trained / SLOTS / busy, 3),
    }


def looped(recipes: Sequence[str], folder: Path) -> dict[str, float]:
    """What two loops over files take, each of which starts a worker for every recipe."""
    began = time.perf_counter()
    with ThreadPoolExecutor(SLOTS) as pool:
        trained = sum(pool.map(lambda item: _trained(item[1], folder / str(item[0])), enumerate(recipes)))
    wall = time.perf_counter() - began
    return {
        "seconds": round(wall, 1),
        "seconds of a training": round(trained / len(recipes), 2),
        "share": round(trained / SLOTS / wall, 3),
    }


def _trials(home: Path) -> Iterator[TrialView]:
    service = Service.open(Settings(home=home))
    try:
        cursor = None
        while True:
            page = service.trials.page(1, None, None, cursor, 100)
            yield from (service.trials.get(one.id) for one in page.items)
            if (cursor := page.next_cursor) is None:
                return
    finally:
        service.close()


def _trained(recipe: str, folder: Path) -> float:
    folder.mkdir(parents=True)
    (folder / "recipe.json").write_text(recipe, encoding="utf-8")
    command = [sys.executable, "-m", "workers", "train", str(folder / "recipe.json"), "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True, env=ONE_THREAD)
    result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return float(result["seconds"])


def main() -> None:
    """Run both and print what they took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", type=Path, default=Path("sweeps/digits.yaml"))
    parser.add_argument("--seeds", type=int, default=2, help="so many of `repeat.seed`, from 0 on")
    options = parser.parse_args()
    text = edited(options.spec.read_bytes(), [f"repeat.seed={[*range(options.seeds)]}"])
    known = catalog.load()
    every = {one.fingerprint: one.recipe for one in read(text, known, ()).plan.trials()}
    with tempfile.TemporaryDirectory(prefix="metricsweep-") as folder:
        spec = Path(folder) / "spec.yaml"
        spec.write_bytes(text)
        service = served(spec, Path(folder) / "home")
        loop = looped([one.model_dump_json() for one in every.values()], Path(folder) / "loop")
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version()}
    ratio = round(loop["seconds"] / service["seconds"], 2)
    print(
        json.dumps(
            {**machine, "torch": torch.__version__, "metricsweep run": service, "loop": loop, "loop / run": ratio},
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
