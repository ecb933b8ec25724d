"""The Ray cluster: joining it, and the nodes that it has."""

import contextlib
import time
from typing import Final

import ray

from orchestrator.views.nodes import Node

NAMESPACE: Final = "metricsweep"


def connect(address: str | None, patience: float = 30.0) -> None:
    """Join the Ray cluster at `address`, or start a local one; ConnectionError when it does not answer."""
    if ray.is_initialized():
        return
    deadline = time.monotonic() + patience
    while True:
        try:
            # Ray has all workers search the current folder of its driver for modules; the root is nobody's to write to.
            with contextlib.chdir("/"):
                ray.init(
                    address=address or "local",
                    namespace=NAMESPACE,
                    log_to_driver=False,
                    logging_level="error",
                    include_dashboard=False if not address else None,
                )
            return
        except (ConnectionError, RuntimeError, ValueError) as error:
            if time.monotonic() > deadline:
                raise ConnectionError(f"Ray at {address} does not answer: {error}") from error
            time.sleep(1.0)


def alive_nodes() -> list[Node]:
    """The nodes of the cluster that are there, with what they offer by name."""
    return [
        Node(
            uid=found["NodeID"],
            host=found.get("NodeManagerHostname") or "",
            resources={
                name: amount
                for name, amount in found["Resources"].items()
                # Tune's placement groups come and go as resources of their own.
                if not name.startswith("node:") and name != "object_store_memory" and "_group_" not in name
            },
        )
        for found in ray.nodes()
        if found["Alive"]
    ]
