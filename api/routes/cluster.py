"""Routes of the cluster, its storage and data sets, the catalog, health checks and Prometheus' metrics."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from api.dependencies import Actor, Id, ServiceParameter
from api.http.turns import ExpensiveBundle
from api.problems import answer, details, documented, shown
from api.telemetry import CONTENT_TYPE, Exposition
from dashboards.lists import cluster_page
from dashboards.sweeps import storage_page
from orchestrator.views.operations import (
    ClusterView,
    CollectionPolicy,
    CollectionView,
    DataFinding,
    Readiness,
    StorageView,
)
from orchestrator.views.states import SWEEP_ENDED, TrialState
from workers.catalog import Catalog

EXAMPLE: Final[dict[str, Any]] = {
    "conducted": True,
    "heartbeat_seconds": 3.2,
    "nodes": [
        {
            "uid": "a56940a9c5f5e3cbba3081aefaf95d91da2a88741bf92210274638bf", "host": "lab", "alive": True,
            "resources": {"CPU": 16.0, "GPU": 1.0, "memory": 64000000000.0}, "used": {"CPU": 4.0, "GPU": 0.5},
            "seen": "2025-11-20T09:00:00Z",
        }
    ],
    "slots": [
        {
            "name": "slot:4:0.5:0:0a1b2c3d:a56940a9c5f5:", "node": "a56940a9c5f5", "host": "lab",
            "resources": {"CPU": 4.0, "GPU": 0.5},
            "trains": {
                "sweep": 7, "sweep_name": "sec-on-digits", "trial": 93,
                "labels": {"loss": "triplet", "regularizer": "sec", "seed": "0"},
                "step": 120, "total_steps": 300, "started": "2025-11-20T09:00:00Z",
            },
            "usage": {
                "memory_bytes": 3100000000, "cpus": 2.4,
                "machine_memory_bytes": 64000000000, "machine_memory_free_bytes": 41000000000,
                "machine_cpus": 16, "machine_load": 5.2,
                "gpus": [
                    {
                        "index": 0, "name": "NVIDIA A100-SXM4-40GB", "busy": 0.63,
                        "memory_bytes": 42505273344, "memory_used_bytes": 8200000000,
                    }
                ],
            },
            "seen": "2025-11-20T09:02:10Z",
        }
    ],
    "queue": [
        {
            "id": 8, "name": "cub-baselines", "actor": "ada@lab", "state": "running", "priority": 0,
            "waiting": {"slot": 40, "data": 12}, "notice": "no machine has cub200",
        }
    ],
}  # fmt: skip

cluster_router = APIRouter(prefix="/v1/cluster", tags=["cluster"], responses=documented(401, 421, 500, 503))
cluster_pages = APIRouter(include_in_schema=False)


@cluster_router.get(
    "", summary="Nodes, slots and the queue", responses=shown(EXAMPLE, "The last state that the conductor saw.")
)
def cluster(service: ServiceParameter) -> ClusterView:
    """The resources of the cluster, what each slot trains and uses, and what sweeps wait for.

    The conductor refreshes it every few seconds. `usage` comes from the slot's own process; `gpus` is null without a
    GPU, or if its use is not known.
    """
    return service.operations.cluster()


@cluster_pages.get("/cluster")
def cluster_for_people(service: ServiceParameter) -> HTMLResponse:
    """The same as a page."""
    quotas = [quota for quota in service.operations.quotas() if quota.limited]
    return HTMLResponse(cluster_page(service.operations.cluster(), quotas))


_OF_SWEEP: Final = {
    "weights_bytes": 8589934592, "figures_bytes": 10485760, "spools_bytes": 4194304, "logs_bytes": 1048576,
}  # fmt: skip
SIZES: Final[dict[str, Any]] = {
    "database_bytes": 52428800, **_OF_SWEEP, "decoded_bytes": 1610612736,
    "sweeps": [{"sweep": 7, "name": "sec-on-digits", **_OF_SWEEP}],
}  # fmt: skip
COLLECTION: Final[dict[str, Any]] = {
    "dry_run": True,
    "sweeps": [
        {
            "sweep": 7, "name": "sec-on-digits", "trainings": 72, "files": 72, "bytes": 6442450944, "kept": 12,
            "retrained": ["map", "recall@k"], "request": None,
        }
    ],
    "bytes": 6442450944,
}  # fmt: skip

# These list the storage file by file.
storage_router = APIRouter(
    prefix="/v1", tags=["storage"], route_class=ExpensiveBundle, responses=documented(401, 403, 404, 421, 422, 500, 503)
)

storage_forms = APIRouter(include_in_schema=False, route_class=ExpensiveBundle)

Sweep = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only this sweep.")]


@storage_router.get(
    "/storage", summary="Sizes of stored files", responses=shown(SIZES, "In bytes, the largest sweep first.")
)
def storage(service: ServiceParameter, sweep: Sweep = None) -> StorageView:
    """The sizes of the database, of weights, figures, spools and logs by sweep, and of decoded images.

    Files that several sweeps share count for each of them, and once in the sums.
    """
    return service.retention.sizes(sweep)


@storage_router.post(
    "/collections",
    summary="Remove kept weights",
    responses=shown(COLLECTION, "What would be removed, or was requested.") | documented(409),
)
def collect(
    service: ServiceParameter,
    actor: Actor,
    sweep: Sweep = None,
    days: Annotated[
        float,
        Query(
            ge=0, le=36_500, allow_inf_nan=False, description="Only trainings that ended at least this many days ago."
        ),
    ] = 30.0,
    state: Annotated[
        list[TrialState] | None,
        Query(max_length=6, description="Only trainings in these states: finished, failed, cancelled, pruned."),
    ] = None,
    keep: Annotated[
        int, Query(ge=1, le=10_000, description="Keep the files of this many best candidates of each cell.")
    ] = 1,
    dry_run: Annotated[bool, Query(description="Only say what would be removed.")] = True,
) -> CollectionView:
    """Request the removal of weights and checkpoints of ended sweeps; results, curves, logs and figures stay.

    The weights of each cell's best candidates stay, and those that another sweep or a waiting evaluation needs.
    `retrained` names the columns that could then no longer be evaluated. Unless it is a dry run, there is a request for
    each sweep.
    """
    policy = CollectionPolicy(before=datetime.now(UTC) - timedelta(days=days), keep=keep)
    if state:
        policy = policy.model_copy(update={"states": sorted(set(state))})
    return service.retention.collect(policy, sweep, actor, dry_run=dry_run)


@storage_forms.get("/sweeps/{id}/storage")
def sizes_page(number: Id, service: ServiceParameter) -> HTMLResponse:
    """The stored files of a sweep, and what could be removed; the sweep's page loads it when it is unfolded."""
    found, (kept,) = service.sweeps.get(number), service.retention.sizes(number).sweeps
    going = None
    if found.state in SWEEP_ENDED:
        policy = CollectionPolicy(before=datetime.now(UTC), keep=1)
        going = service.retention.collect(policy, number, None, dry_run=True)
    return HTMLResponse(storage_page(kept, going))


DATA: Final = [
    {
        "host": "lab", "node": "a56940a9c5f5e3cbba3081aefaf95d91da2a88741bf92210274638bf",
        "data": "cub200", "state": "missing", "inspected_at": "2025-11-20T09:00:02Z",
        "message": "CUB_200_2011/images.txt is missing: looked in /data; `python -m workers data fetch cub200` gets it",
    }
]  # fmt: skip

data_router = APIRouter(prefix="/v1/data", tags=["catalog"], responses=documented(401, 421, 500, 503))


@data_router.get("", summary="The data that the nodes have", responses=shown(DATA, "By node and data set."))
def data(service: ServiceParameter) -> list[DataFinding]:
    """The state of the usual data sets, and of those that sweeps need, on each node."""
    return service.data()


catalog_router = APIRouter(prefix="/v1", tags=["catalog"], responses=documented(401, 421, 500))


@catalog_router.get("/catalog", summary="The catalog of parts")
def catalog(service: ServiceParameter) -> Catalog:
    """Every part that a recipe may name, with its label, paper, hyper-parameters and their defaults."""
    return service.catalog()


@catalog_router.get("/schema", summary="The JSON schema of a spec", response_model=None)
def schema(service: ServiceParameter) -> dict[str, Any]:
    """For editors that complete and check a spec."""
    return service.json_schema()


READINESS: Final = {"ok": True, "checks": [{"name": "database", "ok": True, "detail": "answers"}]}

health_router = APIRouter(tags=["health"], responses=documented(421, 500))


@health_router.get("/healthz", summary="Does the process live?", responses=shown({"ok": True}, "It lives."))
async def healthz() -> dict[str, bool]:
    """Does not read the database, and needs no free thread."""
    return {"ok": True}


@health_router.get(
    "/readyz",
    summary="Can the service do its work?",
    response_model=Readiness,
    responses=shown(READINESS, "It can.") | documented(503),
)
def readyz(service: ServiceParameter, request: Request) -> Response | Readiness:
    """Checks database, schema, conductor, engine, MLflow, disk space and storage; 503 if one fails.

    Each check says what is wrong. The answer is at most a second old.
    """
    found = service.operations.ready()
    if found.ok:
        return found
    missing = ", ".join(f"{check.name}: {check.detail}" for check in found.checks if not check.ok)
    cut = request.app.state.folderless
    checks = [check.model_dump() | {"detail": cut(check.detail)} for check in found.checks]
    return answer(request, details(request, 503, missing, ok=False, checks=checks), {"Retry-After": "5"})


telemetry_router = APIRouter(include_in_schema=False)


@telemetry_router.get("/metrics")
def metrics(request: Request) -> Response:
    """The metrics in Prometheus' text format; a token is required."""
    exposition: Exposition = request.app.state.exposition
    return Response(exposition.text(), headers={"Content-Type": CONTENT_TYPE})
