"""How much of the slots' time real trainings get: `metricsweep run`, whole, against a pool and a shell loop.

    python -m benchmarks.shell_loop [--spec sweeps/digits.yaml] [--seeds 2]

All train what the spec means, two at a time, one after the other on this machine: first the service with its API,
conductor, Ray, MLflow and database as a person starts it; then a bare pool of two processes that only train and write
a file each; then two loops that call `python -m workers train`, as people do in a shell. The share is the time that
trainings themselves took over the time that two slots had: of the service also from the first start to the last end,
without its own start and end. Run it on an otherwise idle machine.
"""

import argparse
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import torch

from orchestrator.plan.reading.edit import edited
from orchestrator.plan.validated import read
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.trials import TrialView
from workers import catalog
from workers.contract import Place, Recipe

SLOTS: Final = 2
ONE_THREAD: Final = {**os.environ, "OMP_NUM_THREADS": "1"}


def served(spec: Path, home: Path) -> dict[str, float]:
    """What `metricsweep run` takes."""
    command = [sys.executable, "-m", "api.cli", "run", str(spec), "--home", str(home), "--out", str(home / "out")]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=ONE_THREAD | {"METRICSWEEP_SLOTS": str(SLOTS)})
    wall = time.perf_counter() - began
    trials = list(_trials(home))
    trainings = {one.training: one.seconds or 0.0 for one in trials}  # a trial may have what another one trained
    trained = sum(trainings.values())
    attempts = [attempt for one in trials for attempt in one.attempts]
    ends = [one.ended for one in attempts if one.ended is not None]
    busy = (max(ends) - min(one.started for one in attempts)).total_seconds()
    return {
        "trainings": len(trainings),
        "seconds": round(wall, 1),
        "seconds from the first start to the last end": round(busy, 1),
        "seconds of a training": round(trained / len(trainings), 2),
        "share": round(trained / SLOTS / wall, 3),
        "share from the first start to the last end": round(trained / SLOTS / busy, 3),
    }


def looped(recipes: Sequence[str], folder: Path) -> dict[str, float]:
    """What two loops over files take, each of which starts a worker for every recipe."""
    began = time.perf_counter()
    with ThreadPoolExecutor(SLOTS) as pool:
        trained = sum(pool.map(lambda item: _trained(item[1], folder / str(item[0])), enumerate(recipes)))
    return _summary(time.perf_counter() - began, trained, len(recipes))


def pooled(recipes: Sequence[str], folder: Path) -> dict[str, float]:
    """What a bare pool of two processes takes, from its start to its end."""
    began = time.perf_counter()
    places = [folder / str(number) for number in range(len(recipes))]
    with ProcessPoolExecutor(SLOTS, mp_context=multiprocessing.get_context("spawn")) as pool:
        seconds = sum(pool.map(in_process, recipes, places))
    return _summary(time.perf_counter() - began, seconds, len(recipes))


def in_process(recipe: str, folder: Path) -> float:
    """Train a recipe in this process; its seconds."""
    from workers.train import train  # here: only the pool's processes pay for torch

    folder.mkdir(parents=True)
    place = Place(data_root=folder, scratch=folder.parent, storage=folder)
    result = train(Recipe.model_validate_json(recipe), place, lambda progress: None)
    (folder / "result.json").write_text(result.model_dump_json(), encoding="utf-8")
    return result.seconds


def _summary(wall: float, trained: float, recipes: int) -> dict[str, float]:
    return {
        "seconds": round(wall, 1),
        "seconds of a training": round(trained / recipes, 2),
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
    """Run the three and print what they took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", type=Path, default=Path("sweeps/digits.yaml"))
    parser.add_argument("--seeds", type=int, default=2, help="so many of `repeat.seed`, from 0 on")
    options = parser.parse_args()
    text = edited(options.spec.read_bytes(), [f"repeat.seed={[*range(options.seeds)]}"])
    os.environ.update(ONE_THREAD)
    known = catalog.load()
    every = {one.fingerprint: one.recipe for one in read(text, known, ()).plan.trials()}
    with tempfile.TemporaryDirectory(prefix="metricsweep-") as folder:
        spec = Path(folder) / "spec.yaml"
        spec.write_bytes(text)
        service = served(spec, Path(folder) / "home")
        recipes = [one.model_dump_json() for one in every.values()]
        pool = pooled(recipes, Path(folder) / "pool")
        loop = looped(recipes, Path(folder) / "loop")
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version()}
    took = {"metricsweep run": service, "pool": pool, "loop": loop}
    ratios = {f"run / {name}": round(service["seconds"] / took[name]["seconds"], 2) for name in ("pool", "loop")}
    print(json.dumps({**machine, "torch": torch.__version__, **took, **ratios}, indent=2))


if __name__ == "__main__":
    main()
