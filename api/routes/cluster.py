"""The cluster: nodes, slots, who uses what, and why trials wait; for programs and as a page."""

from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from api.dependencies import Asked
from api.openapi import documented, shown
from dashboards import cluster as cluster_page
from orchestrator.views.cluster import ClusterView

EXAMPLE: Final[dict[str, Any]] = {
    "conducted": True,
    "heartbeat_seconds": 3.2,
    "nodes": [
        {
            "uid": "a56940a9c5f5e3cbba3081aefaf95d91da2a88741bf92210274638bf",
            "host": "lab",
            "alive": True,
            "resources": {"CPU": 16.0, "GPU": 1.0, "memory": 64000000000.0},
            "held": {"CPU": 4.0, "GPU": 0.5},
            "seen": "2025-11-20T09:00:00Z",
        }
    ],
    "slots": [
        {
            "name": "slot:4:0.5:0:0a1b2c3d:a56940a9c5f5:",
            "node": "a56940a9c5f5",
            "host": "lab",
            "resources": {"CPU": 4.0, "GPU": 0.5},
            "trains": {
                "sweep": 7,
                "sweep_name": "sec-on-digits",
                "trial": 93,
                "labels": {"loss": "triplet", "regularizer": "sec", "seed": "0"},
                "step": 120,
                "total_steps": 300,
                "started": "2025-11-20T09:00:00Z",
            },
            "usage": {
                "memory_bytes": 3100000000,
                "cpus": 2.4,
                "machine_memory_bytes": 64000000000,
                "machine_memory_free_bytes": 41000000000,
                "machine_cpus": 16,
                "machine_load": 5.2,
                "gpus": [
                    {
                        "index": 0,
                        "name": "NVIDIA A100-SXM4-40GB",
                        "memory_bytes": 42505273344,
                        "memory_used_bytes": 8200000000,
                        "busy": 0.63,
                    }
                ],
            },
            "seen": "2025-11-20T09:02:10Z",
        }
    ],
    "queue": [
        {
            "id": 8,
            "name": "cub-baselines",
            "actor": "ada@lab",
            "state": "running",
            "priority": 0,
            "waiting": {"slot": 40, "data": 12},
            "notice": "no machine has cub200",
        }
    ],
}

router = APIRouter(prefix="/v1/cluster", tags=["cluster"], responses=documented(401, 421, 500, 503))
page = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("", summary="Nodes, slots and the queue", responses=shown(EXAMPLE, "As the conductor saw them last."))
def cluster(service: Asked) -> ClusterView:
    """What the cluster offers, what each slot trains and takes, and which sweeps wait for what.

    The conductor looks every few seconds. `usage` is what the slot's own process says; without a GPU, or where nothing
    tells of it, `gpus` is null.
    """
    return service.operations.cluster()


@page.get("/cluster")
def cluster_for_people(service: Asked) -> HTMLResponse:
    """The same as a page."""
    quotas = [one for one in service.operations.quotas() if one.limited]
    return HTMLResponse(cluster_page.cluster_page(service.operations.cluster(), quotas))
