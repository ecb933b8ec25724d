"""What runs beside two slots that train: percent of a core by process, while a sweep of 10 s trainings is watched.

    python -m benchmarks.beside [--seconds 30] [--iterations 4830]

Run it on an otherwise idle machine; it looks 20 s after the submit, when both slots train.
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
from benchmarks.sweeps import OURS_BY_COMMAND, RAYS, SPEC, environment

BEGUN_SECONDS: Final = 20.0


def beside(folder: Path, seconds: float, iterations: int) -> dict[str, float]:
    """Percent of a core that each kind of process takes, the slots among them."""
    spec, home = folder / "spec.yaml", folder / "home"
    spec.write_text(SPEC.format(iterations=iterations, seeds=", ".join(map(str, range(12)))), encoding="utf-8")
    given = environment() | {"METRICSWEEP_SLOTS": str(SLOTS)}
    with standing(home, given) as service:
        command = [sys.executable, "-m", "api.cli", "submit", str(spec), "--home", str(home), "--watch"]
        with subprocess.Popen(command, env=given, stdout=subprocess.DEVNULL) as client:
            time.sleep(BEGUN_SECONDS)
            before, began = spent_so_far(service) | spent_so_far(psutil.Process(client.pid)), time.monotonic()
            time.sleep(seconds)
            after, took = spent_so_far(service) | spent_so_far(psutil.Process(client.pid)), time.monotonic() - began
            client.terminate()
    taken: defaultdict[str, float] = defaultdict(float)
    for key, (line, now) in after.items():
        kind = next((name for name, part in OURS_BY_COMMAND.items() if part in line), RAYS)
        taken[kind] += now - before.get(key, ("", 0.0))[1]
    return {kind: round(100 * of / took, 2) for kind, of in sorted(taken.items(), key=lambda one: -one[1])}


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
