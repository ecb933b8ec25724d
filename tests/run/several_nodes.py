"""Runs orders of several shapes on a cluster of three nodes of this machine; prints where each trained as JSON."""

import json
import sys
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

from orchestrator.run import dispatch
from orchestrator.run.attempt import Workplace
from orchestrator.run.ray.engine import RayTune
from orchestrator.spec.spec import Slot
from orchestrator.views.runs import Order
from tests.run.broker import MemoryBroker, order

SLOTS = {
    "two": Slot(cpus=2, gpus=0),
    "half": Slot(cpus=0.5, gpus=0.5),
    "whole": Slot(cpus=0.5, gpus=1),
    "special": Slot(cpus=0.5, gpus=0, resources={"a100": 1}),
    "huge": Slot(cpus=4, gpus=0),
    "auto": Slot(cpus=1),
}


def main(scratch: Path) -> None:
    """Three CPUs on each of two nodes, two GPUs and a custom resource on one of them."""
    dispatch.LINGER_SECONDS = 0
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100_000_000})
    plain = cluster.add_node(num_cpus=3, object_store_memory=100_000_000)
    rich = cluster.add_node(num_cpus=3, num_gpus=2, resources={"a100": 1}, object_store_memory=100_000_000)
    engine = RayTune(Workplace("tests.run.trainings:quick", scratch / "storage", scratch), cluster.address, scratch)
    names = {plain.node_id[:12]: "plain", rich.node_id[:12]: "rich"}
    wanted = ["two"] * 4 + ["half"] * 4 + ["whole", "special", "half", "huge", "special", "two", "auto", "whole"]
    shapes: dict[str, str] = {}
    orders: deque[Order] = deque()
    for kind in wanted:
        one = replace(order(iterations=10, delay=0.05), slot=SLOTS[kind])
        shapes[one.attempt] = kind
        orders.append(one)
    for kind, lacking in (("on rich", plain), ("on plain", rich), ("on rich", plain), ("nowhere", None)):
        uids = (lacking.node_id,) if lacking else (plain.node_id, rich.node_id)
        one = replace(order(iterations=10), slot=Slot(cpus=1, gpus=0), lacking=uids)
        shapes[one.attempt] = kind
        orders.append(one)
    broker = MemoryBroker(orders)
    said: dict[str, Any] = {}
    try:
        engine.run(broker)
        places: dict[str, list[str]] = {}
        for attempt, holder in broker.holders.items():
            places.setdefault(shapes[attempt], []).append(names[holder.split(":")[5]])
        said["places"] = {kind: sorted(set(found)) for kind, found in places.items()}
        said["results"] = len(broker.results)
        said["failures"] = [failure.message for failure in broker.failures]
        said["given back"] = len(broker.given_back)
    finally:
        engine.close()
        cluster.shutdown()
    print(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
