"""What a training costs beside its own work: metricsweep's engine against Ray Tune alone, in one run on one local Ray.

    python -m benchmarks.overhead [--trials 200]

Both execute trials of one step and no work on two slots. The engine fetches its orders from a desk in memory: the
database is not measured.
"""

import argparse
import json
import os
import platform
import tempfile
import time
import uuid
from collections import deque
from pathlib import Path
from typing import Any

import ray
from ray import tune

from orchestrator.run.attempt import Workplace
from orchestrator.run.ray_tune import RayTune
from tests.run.desk import MemoryDesk, order


class Nothing(tune.Trainable):
    """A trial that ends at its first step."""

    def setup(self, config: dict[str, Any]) -> None:
        pass

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        return True

    def step(self) -> dict[str, Any]:
        return {"score": 0.0, "done": True}


def engine(trials: int, folder: Path) -> float:
    """Seconds for `trials` trainings of one step through the engine, warm."""
    runner = RayTune(Workplace("tests.run.trainings:quick", folder / "storage", folder), None, folder / "tune")
    runner.run(MemoryDesk(deque(order(iterations=1) for _ in range(4))))
    desk = MemoryDesk(deque(order(iterations=1) for _ in range(trials)))
    began = time.perf_counter()
    runner.run(desk)
    assert len(desk.results) == trials
    return time.perf_counter() - began


def tune_alone(trials: int, folder: Path, *, reuse: bool) -> float:
    """Seconds for `trials` trials of one step through a Tuner."""
    tuner = tune.Tuner(
        tune.with_resources(Nothing, {"cpu": 1}),
        param_space={"key": tune.grid_search([str(number) for number in range(trials)])},
        tune_config=tune.TuneConfig(reuse_actors=reuse),
        run_config=tune.RunConfig(
            name=uuid.uuid4().hex,
            storage_path=str(folder),
            verbose=0,
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
        ),
    )
    began = time.perf_counter()
    tuner.fit()
    return time.perf_counter() - began


def main() -> None:
    """Print milliseconds per trial and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    trials = parser.parse_args().trials
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
    ray.init(address="local", num_cpus=2, namespace="metricsweep", include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = engine(trials, folder) / trials
        reused = tune_alone(trials, folder, reuse=True) / trials
        fresh = tune_alone(max(4, trials // 10), folder, reuse=False) / max(4, trials // 10)
    ray.shutdown()
    print(
        json.dumps(
            {
                "cores": os.cpu_count(),
                "python": platform.python_version(),
                "ray": ray.__version__,
                "trials": trials,
                "milliseconds_per_trial": {
                    "metricsweep": round(ours * 1000, 1),
                    "tune, reused actors": round(reused * 1000, 1),
                    "tune, fresh actors": round(fresh * 1000, 1),
                },
                "metricsweep / tune with reused actors": round(ours / reused, 2),
                "metricsweep / tune with fresh actors": round(ours / fresh, 2),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
