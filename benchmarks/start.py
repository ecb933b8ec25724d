"""CPU seconds that the commands take before they do anything: `python -m benchmarks.start`, best of some tries.

No server is asked: each client command ends with 3. Python may keep the bytecode of the sources, as it does where the
project is installed. The figures stand in docs/api.md.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

COMMANDS = (
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
)
TRIES = 10


def cpu_seconds(command: list[str], environment: dict[str, str]) -> float:
    """User and system time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    script = Path(sys.executable).with_name("metricsweep")
    environment = {**os.environ, "METRICSWEEP_URL": "http://127.0.0.1:9", "PYTHONDONTWRITEBYTECODE": ""}
    for arguments in COMMANDS:
        command = [str(script), *arguments.split()]
        best = min(cpu_seconds(command, environment) for _ in range(TRIES))
        print(f"{best:6.2f} s  metricsweep {arguments}")


if __name__ == "__main__":
    main()
