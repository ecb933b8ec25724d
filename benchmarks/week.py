"""Whether a conductor's memory stays flat over a week: thousands of trainings of no time through Ray Tune.

    python -m benchmarks.week [--trials 20000] [--sweep 2000]

A week of trainings of ten minutes on twenty slots is 20,160 trials. They come here as sweeps of 2,000, one after the
other, and run on a local Ray with two slots, without MLflow, while the Tuner is replaced after every 1,000. Prints what
the conductor, its slots, its relays and Ray's own processes hold as they go, and the slope in the second half. On two
free cores it takes a quarter of an hour.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

import ray

from benchmarks.memory import family, resident
from benchmarks.sweep_of import Shape, body
from orchestrator.service.service import Service
from orchestrator.settings import Settings

KINDS: Final = {
    "orchestrator conduct": "conductor", "ray::SlotActor": "slots",
    "ray::Relay": "relays", "ray::ResourceTrainable": "relays",
    "gcs_server": "Ray's control service", "raylet/raylet": "Ray's node daemon",
}  # fmt: skip
"""What a process is called here, by what its command line has."""

Sample = dict[str, float]


def sample(conductor: int, ended: int) -> Sample:
    """Trials that have ended, and the megabytes of each kind of process."""
    held: dict[str, float] = defaultdict(float)
    for process, line in family(conductor).items():
        kind = next((name for word, name in KINDS.items() if word in line), "others of Ray")
        held[kind] += resident(process)
    return {"trials": ended, **{kind: round(megabytes, 1) for kind, megabytes in sorted(held.items())}}


def slope(samples: list[Sample], kind: str) -> float:
    """Megabytes a thousand trials, by least squares."""
    xs, ys = [one["trials"] / 1000 for one in samples], [one.get(kind, 0.0) for one in samples]
    middle, height = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - middle) ** 2 for x in xs)
    return sum((x - middle) * (y - height) for x, y in zip(xs, ys, strict=True)) / spread if spread else 0.0


def run(trials: int, sweep: int, home: Path) -> list[Sample]:
    """Conduct so many trials and sample every 500."""
    settings = Settings(home=home, train="benchmarks.instant:train", slots=2)
    own = {
        f"METRICSWEEP_{name}": str(value)
        for name, value in settings.model_dump(include={"home", "train", "slots"}).items()
    }
    service = Service.open(settings)
    command = [sys.executable, "-m", "orchestrator", "conduct"]
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    conductor = subprocess.Popen(command, env={**os.environ, **own, "PYTHONPATH": path})
    samples: list[Sample] = []
    try:
        for number in range(trials // sweep):
            submitted = service.submissions.submit(body(Shape(10, sweep // 100, 10), iterations=number + 1)).id
            while (seen := service.sweeps.get(submitted)).state in {"queued", "running"}:
                if conductor.poll() is not None:
                    raise SystemExit(f"the conductor ended by itself with {conductor.returncode}")
                ended = number * sweep + seen.counts.ended
                if ended and (not samples or ended >= samples[-1]["trials"] + 500):
                    samples.append(sample(conductor.pid, ended))
                    print(json.dumps(samples[-1]), file=sys.stderr, flush=True)
                time.sleep(1.0)
            if seen.counts.finished != sweep:
                raise SystemExit(f"only {seen.counts.finished} of {sweep} trials of sweep {submitted} finished")
        samples.append(sample(conductor.pid, number * sweep + sweep))
    finally:
        conductor.terminate()
        conductor.wait(60)
        service.close()
    return samples


def main() -> None:
    """Print the first, middle and last sample, the time and the slopes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--sweep", type=int, default=2_000)
    chosen = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        samples = run(chosen.trials, chosen.sweep, Path(folder))
    half = samples[len(samples) // 2 :]
    facts = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "ray": ray.__version__,
        "milliseconds a trial": round(1000 * (time.perf_counter() - began) / chosen.trials, 1),
        "megabytes at first": samples[0],
        "megabytes halfway": half[0],
        "megabytes at last": samples[-1],
        "megabytes a 1,000 trials, in the second half": {
            kind: round(slope(half, kind), 2) for kind in samples[-1] if kind != "trials"
        },
    }
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
