"""One Ray for the tests of a process, begun as `serve` begins its own: without the monitors that nobody here asks."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import psutil

import api.local.parent_death
from tests.ports import free_port

PATIENCE_SECONDS: Final = 180.0
NAMESPACE: Final = "metricsweep"


class SharedRay:
    """A head of two CPUs that ends with this process. `ray.init` would start a log monitor, an autoscaler and more."""

    def __init__(self) -> None:
        self._address = f"127.0.0.1:{(port := free_port())}"
        self._log = tempfile.NamedTemporaryFile(suffix=".log")  # noqa: SIM115 - as long as the head
        self._head = psutil.Popen(
            [
                *(sys.executable, "-I", "-S", api.local.parent_death.__file__, str(os.getpid())),
                *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
                *("--port", str(port), "--num-cpus", "2", "--num-gpus", "0", "--node-ip-address", "127.0.0.1"),
                *("--min-worker-port", "0", "--max-worker-port", "0", "--dashboard-agent-listen-port", "0"),
                *("--object-store-memory", str(128 * 2**20), "--log-color", "false", "--disable-usage-stats"),
                *("--include-dashboard", "false", "--include-log-monitor", "false", "--no-monitor"),
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        said = Path(self._log.name)
        while "Ray runtime started" not in said.read_text():
            assert self._head.poll() is None, said.read_text()
            assert time.monotonic() < until, "Ray did not start"
            time.sleep(0.1)

    def join(self) -> None:
        """Connect this process to it."""
        import ray

        ray.init(address=self._address, namespace=NAMESPACE, log_to_driver=False)

    def end(self) -> None:
        """End it with all that it started."""
        import ray

        ray.shutdown()
        everything = [*self._head.children(recursive=True), self._head]
        for one in everything:
            try:
                one.kill()
            except psutil.NoSuchProcess:
                continue  # it ended by itself meanwhile
        psutil.wait_procs(everything, timeout=60)
        self._log.close()
