"""How long commands and processes take to start: `python -m benchmarks.start [--tries 10]`.

Seconds of each client command, best of some tries; no server answers, so that each ends with 3. Then the imports of a
worker and of a trial of Tune, of bare torch and of Ray Tune, and `metricsweep serve` over a new home until all of it
answers.
Python may keep the bytecode of the sources, as it does where the project is installed.
"""

import argparse
import json
import os
import platform
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
IMPORTS: Final = ("workers.train", "torch", "orchestrator.run.ray.tune", "ray.tune")
UP: Final = "Ctrl-C stops it"
"""What `serve` says once everything answers."""


def seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    """Seconds of one run."""
    began = time.perf_counter()
    subprocess.run(command, env=environment, capture_output=True, check=False)
    return time.perf_counter() - began


def until_served(script: Path) -> float:
    """Seconds from the command to its word that everything answers."""
    with tempfile.TemporaryDirectory(prefix="metricsweep-") as home:
        began = time.perf_counter()
        command = [str(script), "serve", "--home", home, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = any(UP in line for line in process.stderr)
            taken = time.perf_counter() - began
            process.terminate()  # not SIGINT: a background process may ignore it
            process.stderr.read()
        if not said:
            raise SystemExit(f"serve ended with {process.returncode} before it was up")
        return taken


def main() -> None:
    """Print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=10)
    tries = parser.parse_args().tries
    script = Path(sys.executable).with_name("metricsweep")
    environment = {**os.environ, "METRICSWEEP_URL": "http://127.0.0.1:9", "PYTHONDONTWRITEBYTECODE": ""}

    def best(command: Sequence[str], most: int) -> float:
        return round(min(seconds(command, environment) for _ in range(most)), 2)

    found = {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "seconds of a command": {line: best([str(script), *line.split()], tries) for line in COMMANDS},
        "seconds of an import": {name: best([sys.executable, "-c", f"import {name}"], 3) for name in IMPORTS},
        "seconds until serve answers": round(min(until_served(script) for _ in range(3)), 1),
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
