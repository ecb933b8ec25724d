"""What a sweep of real trainings takes through the service, and through what people would use in its place.

    python -m benchmarks.sweeps [--seconds 2] [--trials 48] [--rounds 1] [--only pool metricsweep]

Each peer trains the same recipes on scikit-learn's digits, two at a time, from its start to its end, as a process of
its own with all that it starts; the service is `metricsweep run` with its database, Ray and MLflow, and once more
`metricsweep submit --watch` to a `serve` that is up. One after the other, again in each round; figures are medians over
the rounds. How many iterations take `--seconds` is found out in the pool first, since machines differ threefold;
`--iterations` sets them. Run it on an otherwise idle machine. Hydra is left out where it is not installed:
`benchmarks/peers/hydra.py` says how.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.meter import Metered, metered
from benchmarks.peers.training import RESULT, SLOTS
from benchmarks.running_service import metered_through, running_service
from orchestrator.plan.check import read_spec
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from workers import catalog

OURS: Final = "metricsweep"
SERVED: Final = "metricsweep, up before"
POOL: Final = "pool"
PEERS: Final[Mapping[str, tuple[str, ...]]] = {
    "loop": ("loop",),
    POOL: ("pool",),
    "Ray Tune with MLflow": ("tune",),
    "Ray Tune, reused actors, with MLflow": ("tune", "reuse"),
    "Optuna": ("study",),
    "Hydra with joblib": ("hydra",),
}
SLOTS_OF: Final = "slots"
OURS_BY_COMMAND: Final[Mapping[str, str]] = {
    SLOTS_OF: "ray::SlotActor",
    "Tune trials": "ray::Follower",
    "conductor": "orchestrator conduct",
    "MLflow": "mlflow",
    "command line": "api.cli",
    "API": "-m api",
}
"""The processes of the service by what their command line holds, the first that does; all others are Ray's own."""
RAYS: Final = "Ray"
SPEC: Final = """
version: 1
name: peers
recipe:
  task: retrieval
  dataset: digits
  backbone: {{name: small_cnn, width: 16}}
  head: bn_fc
  embedding: 32
  sampler: {{name: balanced, classes: 4, per_class: 4}}
  optimizer: {{name: adam, lr: 1.0e-3}}
  iterations: {iterations}
  evaluate_every: {iterations}
  validation: {{name: class_holdout, folds: 3, fold: 0}}
compare: {{loss: [triplet, semihard, normalized_npair, multi_similarity]}}
repeat: {{seed: [{seeds}]}}
select: {{metric: map@r, split: validation}}
slot: {{cpus: 1, gpus: 0}}
tables: {{main: {{rows: [loss], columns: [dataset], metrics: [nmi, recall@1, map@r]}}}}
"""


def through_running_service(spec: Path, folder: Path, trials: int) -> dict[str, float]:
    """What the same takes through a service that is up before the clock starts, and that stays."""
    home, given = folder / "home", environment() | {"METRICSWEEP_SLOTS": str(SLOTS)}
    command = [sys.executable, "-m", "api.cli", "submit", str(spec), "--watch", "--home", str(home)]
    with running_service(home, given) as service:
        began = time.time()
        taken = metered_through(service, command, given)
        return _ours(taken, home, began, trials)


def through_service(spec: Path, folder: Path, trials: int) -> dict[str, float]:
    """What `metricsweep run` takes, and of that each of its processes."""
    home = folder / "home"
    command = [sys.executable, "-m", "api.cli", "run", str(spec), "--home", str(home), "--out", str(folder / "out")]
    began = time.time()
    return _ours(metered(command, environment() | {"METRICSWEEP_SLOTS": str(SLOTS)}), home, began, trials)


def kind_of(command_line: str) -> str:
    """Which of the service's processes it is."""
    return next((name for name, part in OURS_BY_COMMAND.items() if part in command_line), RAYS)


def _ours(taken: Metered, home: Path, began: float, trials: int) -> dict[str, float]:
    ends = _ends(home)
    if len(ends) != trials:
        raise SystemExit(f"{len(ends)} of {trials} trials ended")
    by_process = dict.fromkeys((*OURS_BY_COMMAND, RAYS), 0.0)
    for command_line, seconds in taken.by_command.items():
        by_process[kind_of(command_line)] += seconds
    control = {"control, CPU ms a trial": round(1000 * (taken.cpu - by_process[SLOTS_OF]) / trials)}
    each = {f"{name}, CPU s": round(seconds, 1) for name, seconds in by_process.items()}
    return _told(taken, min(ends) - began) | control | each


def through_peer(words: Sequence[str], recipes: Path, folder: Path, trials: int) -> dict[str, float]:
    """What a peer takes, and what its trainings alone took of the processors."""
    module, *more = words
    began = time.time()
    taken = metered(
        [sys.executable, "-m", f"benchmarks.peers.{module}", str(recipes), str(folder), *more], environment()
    )
    results = [json.loads(one.read_text(encoding="utf-8")) for one in folder.glob(f"*/{RESULT}")]
    if len(results) != trials:
        raise SystemExit(f"{len(results)} of {trials} trainings ended")
    trainings = {
        "trainings, CPU s": round(sum(one["cpu"] for one in results), 1),
        "seconds of a training": round(statistics.median(one["seconds"] for one in results), 2),
    }
    return _told(taken, min(one["ended"] for one in results) - began) | trainings


def _told(taken: Metered, first: float) -> dict[str, float]:
    return {"seconds": round(taken.wall, 1), "CPU s": round(taken.cpu, 1), "first result, s": round(first, 1)}


def _ends(home: Path) -> list[float]:
    service = Service.open(Settings(home=home))
    try:
        every = service.store.trials.page(1, None, None, None, 1_000).items
        attempts = [service.trials.get(one.id).attempts[-1] for one in every if one.state == "finished"]
        return [one.ended.timestamp() for one in attempts if one.ended is not None]
    finally:
        service.close()


def environment() -> dict[str, str]:
    """What every program is started with: one thread each, and this checkout."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[1])}


_OURS: Final = {OURS: through_service, SERVED: through_running_service}


def measured(only: Sequence[str], spec: str, rounds: int) -> dict[str, list[dict[str, float]]]:
    """What each took in each round."""
    known = catalog.load()
    recipes = [one.recipe.model_dump_json() for one in read_spec(spec.encode(), known, ()).plan.trials()]
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in only}
    for _ in range(rounds):
        for name, every in taken.items():
            with tempfile.TemporaryDirectory(prefix="metricsweep-") as temporary:
                folder = Path(temporary)
                written, lines = folder / "spec.yaml", folder / "recipes"
                written.write_text(spec, encoding="utf-8")
                lines.write_text("\n".join(recipes), encoding="utf-8")
                if name in _OURS:
                    every.append(_OURS[name](written, folder, len(recipes)))
                else:
                    every.append(through_peer(PEERS[name], lines, folder / "peer", len(recipes)))
            print(name, every[-1], file=sys.stderr, flush=True)
    return taken


def iterations_of(seconds: float) -> int:
    """The number of iterations that a training does in `seconds` while another training runs, from two short pools."""
    short, long = 200, 1_000
    took = [
        measured([POOL], SPEC.format(iterations=each, seeds="0, 1"), 1)[POOL][0]["seconds of a training"]
        for each in (short, long)
    ]
    one = (took[1] - took[0]) / (long - short)
    return max(10, 10 * round((short + (seconds - took[0]) / one) / 10))


def medians(taken: Mapping[str, list[dict[str, float]]]) -> dict[str, dict[str, Any]]:
    """Of each, and the clock's spread."""
    return {
        name: {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        | {"fastest and slowest, s": [pick(one["seconds"] for one in rounds) for pick in (min, max)]}
        for name, rounds in taken.items()
    }


def ratios(found: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The seconds of each of ours to those of each peer."""
    return {
        f"{ours} / {name}": round(found[ours]["seconds"] / one["seconds"], 2)
        for ours in _OURS
        for name, one in found.items()
        if name not in _OURS and ours in found
    }


def main() -> None:
    """Print what each took, and ours in ratio to the pool and to each other peer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=float, default=2.0, help="what a training takes in the pool")
    length.add_argument("--iterations", type=int, help="how many they are, whatever they take")
    parser.add_argument("--trials", type=int, default=48, help="a multiple of four, the losses")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=[*PEERS, *_OURS])
    options = parser.parse_args()
    able = [name for name in (*PEERS, *_OURS) if name != "Hydra with joblib" or importlib.util.find_spec("hydra")]
    seeds = ", ".join(str(seed) for seed in range(options.trials // 4))
    iterations = options.iterations or iterations_of(options.seconds)
    spec = SPEC.format(iterations=iterations, seeds=seeds)
    taken = measured(options.only or able, spec, options.rounds)
    found = medians(taken)
    versions = {name: importlib.metadata.version(name) for name in ("torch", "ray", "optuna", "mlflow")}
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version()}
    each = [{name: rounds[at] for name, rounds in taken.items()} for at in range(options.rounds)]
    told = {
        **machine, **versions, "rounds": options.rounds, "iterations": iterations, **found, **ratios(found),
        "each": [{**one, **ratios(one)} for one in each],
    }  # fmt: skip
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
