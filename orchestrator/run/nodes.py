"""The nodes of a cluster, as Ray lists them."""

import ray

from orchestrator.trial import Node


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
