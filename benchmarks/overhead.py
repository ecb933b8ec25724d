"""How well slots are used: metricsweep's engine against Ray Tune alone, in one run, each on a local Ray of its own.

    python -m benchmarks.overhead [--trials 20] [--seconds 1]

Both execute trainings that sleep for so many seconds on two slots, after warming up. Utilisation is the time slept over
the time that two slots had, from the first start to the last result. The engine fetches its orders from a broker in
memory: the database is not measured, and what trains leaves the cores to all else (benchmarks.sweeps does neither).
"""

import argparse
import functools
import json
import os
import platform
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray import tune

from orchestrator.run.attempt import Workplace
from orchestrator.run.ray.engine import RayTune
from orchestrator.views.orders import Order
from tests.run.broker import MemoryBroker, order
from workers.contract import Result


class Sleeper(tune.Trainable):  # type: ignore[misc]
    """A trial that sleeps and ends at its first step."""

    def setup(self, config: dict[str, Any]) -> None:
        self._seconds = float(config["seconds"])

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        time.sleep(self._seconds)
        return {"score": 0.0, "done": True}


class LastEnd(tune.Callback):  # type: ignore[misc]
    """Notes when the last trial ended, since a Tuner takes seconds to end itself."""

    at = 0.0

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        LastEnd.at = time.perf_counter()


class TimedBroker(MemoryBroker):
    """Notes when the last result came."""

    at = 0.0

    def finished(self, order: Order, result: Result) -> None:
        super().finished(order, result)
        TimedBroker.at = time.perf_counter()


def engine(trials: int, seconds: float, folder: Path) -> float:
    """Seconds for the trainings through the engine."""
    workplace = Workplace("tests.run.trainings:quick", folder / "storage", folder)
    runner = RayTune(workplace, None, folder / "tune", linger=0)
    runner.run(MemoryBroker(deque(order(iterations=1) for _ in range(4))))
    began = time.perf_counter()
    runner.run(TimedBroker(deque(order(iterations=1, delay=seconds) for _ in range(trials))))
    return TimedBroker.at - began


def tune_alone(trials: int, seconds: float, folder: Path, *, reuse: bool) -> float:
    """Seconds for the trials through a Tuner."""
    for number, length in ((4, 0.0), (trials, seconds)):
        tuner = tune.Tuner(
            tune.with_resources(Sleeper, {"cpu": 1}),
            param_space={"seconds": length, "key": tune.grid_search([str(key) for key in range(number)])},
            tune_config=tune.TuneConfig(reuse_actors=reuse),
            run_config=tune.RunConfig(
                name=uuid.uuid4().hex,
                storage_path=str(folder),
                verbose=0,
                callbacks=[LastEnd()],
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            ),
        )
        began = time.perf_counter()
        tuner.fit()
    return LastEnd.at - began


def alone(peer: Callable[[int, float, Path], float], trials: int, seconds: float) -> float:
    """The peer's utilisation of two slots on a local Ray of its own: our slots would hold the CPUs that Tune needs."""
    ray.init(address="local", num_cpus=2, namespace="metricsweep", include_dashboard=False, log_to_driver=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return round(trials * seconds / 2 / peer(trials, seconds, Path(folder)), 2)
    finally:
        ray.shutdown()


def main() -> None:
    """Print each utilisation and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1.0)
    chosen = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
    ours = alone(engine, chosen.trials, chosen.seconds)
    reused = alone(functools.partial(tune_alone, reuse=True), chosen.trials, chosen.seconds)
    fresh = alone(functools.partial(tune_alone, reuse=False), chosen.trials, chosen.seconds)
    facts = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "ray": ray.__version__,
        "trials": chosen.trials,
        "seconds": chosen.seconds,
        "utilisation": {"metricsweep": ours, "Tune, reused actors": reused, "Tune, fresh actors": fresh},
        "metricsweep / Tune, reused actors": round(ours / reused, 2),
        "metricsweep / Tune, fresh actors": round(ours / fresh, 2),
    }
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
