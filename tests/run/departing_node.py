"""Trains on a node that is drained and on a node that stays; prints the outcome of both trainings as JSON."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

from orchestrator.run.attempt import Workplace
from orchestrator.run.ray.engine import RayTune
from tests.run.broker import MemoryBroker, order


class Play:
    """A head without CPUs, a node by `python -m orchestrator.run.ray`, and later a second one."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100_000_000})
        self.node = self._node()
        self.told = False
        self.ended: int | None = None

    def _node(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "orchestrator.run.ray", "--grace", "60", f"--address={self.cluster.address}"]
        options = ["--num-cpus=2", "--object-store-memory=100000000", "--disable-usage-stats"]
        environment = {**os.environ, "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0"}
        with (self.scratch / "node.log").open("ab") as log:
            return subprocess.Popen([*command, *options], env=environment, stdout=log, stderr=log)

    def tick(self, broker: MemoryBroker) -> None:
        """Tell the node to end once both trainings are under way; another one joins as soon as it has."""
        if not self.told and [progress.step for progress in broker.last.values()] == [5, 5]:  # there they wait
            self.told = True
            self.node.send_signal(signal.SIGTERM)
        if self.told and self.ended is None and self.node.poll() is not None:
            self.ended = self.node.returncode
            (self.scratch / "storage" / "go").touch()
            self.node = self._node()
        broker.close = len(broker.results) == 2

    def run(self) -> dict[str, Any]:
        """The report about it."""
        engine = RayTune(
            Workplace("tests.run.trainings:quick", self.scratch / "storage", self.scratch),
            self.cluster.address, self.scratch,
        )  # fmt: skip
        orders = [order("waits", iterations=10) for _ in range(2)]
        broker = MemoryBroker(deque(orders), at_tick=self.tick)
        try:
            while not any(node.resources.get("CPU") for node in engine.nodes() or ()):
                time.sleep(0.2)
            engine.run(broker)
        finally:
            engine.close()
            self.node.send_signal(signal.SIGTERM)
            self.node.wait(60)
            self.cluster.shutdown()
        steps = [(self.scratch / "storage" / one.training / "steps.txt").read_text().split() for one in orders]
        return {
            "exit": self.ended,
            "results": len(broker.results),
            "failures": [failure.message for failure in broker.failures],
            "given back": [broker.given_back.count(one.training) for one in orders],
            "whole": [list(map(int, taken)) == list(range(1, 11)) for taken in steps],
            "log": (self.scratch / "node.log").read_text(errors="replace"),
        }


if __name__ == "__main__":
    print(json.dumps(Play(Path(sys.argv[1])).run()))
