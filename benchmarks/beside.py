"""What runs beside two slots that train: percent of a core by process, while a sweep of 10 s trainings is watched.

    python -m benchmarks.beside [--seconds 30] [--iterations 4830]

Run it on an otherwise idle machine. It looks from the end of the first training on: then both slots train.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

import psutil

from benchmarks.peers.training import SLOTS
from benchmarks.standing import spent_so_far, standing
from benchmarks.sweeps import SPEC, environment, kind_of
from orchestrator.service.service import Service
from orchestrator.settings import Settings

TRIALS: Final = 48


def beside(folder: Path, seconds: float, iterations: int) -> dict[str, float]:
    """Percent of a core that each kind of process takes, the slots among them."""
    spec, home = folder / "spec.yaml", folder / "home"
    spec.write_text(SPEC.format(iterations=iterations, seeds=", ".join(map(str, range(TRIALS // 4)))), encoding="utf-8")
    given = environment() | {"METRICSWEEP_SLOTS": str(SLOTS)}
    with standing(home, given) as service:
        command = [sys.executable, "-m", "api.cli", "submit", str(spec), "--home", str(home), "--watch"]
        with subprocess.Popen(command, env=given, stdout=subprocess.DEVNULL) as client:
            watching = psutil.Process(client.pid)
            _wait_for_result(home, client)
            before, began = spent_so_far(service) | spent_so_far(watching), time.monotonic()
            time.sleep(seconds)
            after, took = spent_so_far(service) | spent_so_far(watching), time.monotonic() - began
            if client.poll() is not None:
                raise SystemExit("the sweep was over before the look was: give more --iterations")
            client.terminate()
    taken: defaultdict[str, float] = defaultdict(float)
    for key, (line, now) in after.items():
        taken[kind_of(line)] += now - before.get(key, ("", 0.0))[1]
    return {kind: round(100 * of / took, 2) for kind, of in sorted(taken.items(), key=lambda one: -one[1])}


def _wait_for_result(home: Path, client: subprocess.Popen[bytes]) -> None:
    asked = Service.open(Settings(home=home))
    try:
        while not any(sweep.counts.finished for sweep in asked.sweeps.page(None, None, None, 1).items):
            if client.poll() is not None:
                raise SystemExit(f"submit ended with {client.returncode}")
            time.sleep(0.5)
    finally:
        asked.close()


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--iterations", type=int, default=4_830, help="of each training")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="metricsweep-") as temporary:
        found = beside(Path(temporary), options.seconds, options.iterations)
    print(json.dumps({"cores": os.cpu_count(), "percent of a core": found}, indent=2))


if __name__ == "__main__":
    main()
