"""What commands and processes take before they do anything: `python -m benchmarks.start [--tries 10]`.

Seconds of the processors of each client command, best of some tries; no server is asked: each ends with 3. Then those
of the imports of a worker and of a relay, and of bare torch and Ray Tune, and by the clock those of `metricsweep serve`
over a fresh home until all of it answers. Python may keep the bytecode of the sources, as it does where the project is
installed.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

COMMANDS: Final = (
    "--help",
    "--version",
    "list --help",
    "list",
    "show 1",
    "table 1",
    "submit sweeps/digits.yaml",
    "submit sweeps/digits.yaml --only loss=triplet",
    "catalog",
    "expand sweeps/digits.yaml",
    "expand sweeps/sec_t3.yaml",
    "published",
    "published SEC-T3 --like sweeps/sec_t3.yaml",
    "check README.md",
    "weights list",
)
IMPORTS: Final = ("workers.train", "torch", "orchestrator.run.ray.relay", "ray.tune")
UP: Final = "Ctrl-C ends it"
"""What `serve` says once everything answers."""


def cpu_seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    """User and system time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def until_served(script: Path) -> float:
    """Seconds from the command to its word that everything answers."""
    with tempfile.TemporaryDirectory(prefix="metricsweep-") as home:
        began = time.perf_counter()
        command = [str(script), "serve", "--home", home, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = any(UP in line for line in process.stderr)
            seconds = time.perf_counter() - began
            process.terminate()  # not as Ctrl-C: what runs in the background may have been told to ignore that
            process.stderr.read()
        if not said:
            raise SystemExit(f"serve ended with {process.returncode} before it was up")
        return seconds


def main() -> None:
    """Print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=10)
    tries = parser.parse_args().tries
    script = Path(sys.executable).with_name("metricsweep")
    environment = {**os.environ, "METRICSWEEP_URL": "http://127.0.0.1:9", "PYTHONDONTWRITEBYTECODE": ""}

    def best(command: Sequence[str], most: int) -> float:
        return round(min(cpu_seconds(command, environment) for _ in range(most)), 2)

    found = {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "CPU s of a command": {line: best([str(script), *line.split()], tries) for line in COMMANDS},
        "CPU s of an import": {name: best([sys.executable, "-c", f"import {name}"], 3) for name in IMPORTS},
        "seconds until serve answers": round(min(until_served(script) for _ in range(3)), 1),
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
