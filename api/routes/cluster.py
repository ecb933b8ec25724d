"""The cluster, its storage and data sets, the catalog, and what watchdogs and Prometheus ask."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from api.dependencies import Actor, Asked, Id
from api.http.turns import ExpensiveBundle
from api.problems import answer, details, documented, shown
from api.telemetry import CONTENT_TYPE, Exposition
from dashboards import lists as cluster_page
from dashboards import sweeps
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

cluster_router = APIRouter(prefix="/v1/cluster", tags=["cluster"], responses=documented(401, 421, 500, 503))
cluster_pages = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@cluster_router.get(
    "", summary="Nodes, slots and the queue", responses=shown(EXAMPLE, "As the conductor saw them last.")
)
def cluster(service: Asked) -> ClusterView:
    """What the cluster offers, what each slot trains and takes, and which sweeps wait for what.

    The conductor looks every few seconds. `usage` is what the slot's own process says; without a GPU, or where nothing
    tells of it, `gpus` is null.
    """
    return service.operations.cluster()


@cluster_pages.get("/cluster")
def cluster_for_people(service: Asked) -> HTMLResponse:
    """The same as a page."""
    quotas = [one for one in service.operations.quotas() if one.limited]
    return HTMLResponse(cluster_page.cluster_page(service.operations.cluster(), quotas))


SIZES: Final[dict[str, Any]] = {
    "database_bytes": 52428800,
    "weights_bytes": 8589934592,
    "figures_bytes": 10485760,
    "spools_bytes": 4194304,
    "logs_bytes": 1048576,
    "decoded_bytes": 1610612736,
    "sweeps": [
        {
            "sweep": 7,
            "name": "sec-on-digits",
            "weights_bytes": 8589934592,
            "figures_bytes": 10485760,
            "spools_bytes": 4194304,
            "logs_bytes": 1048576,
        }
    ],
}
COLLECTION: Final[dict[str, Any]] = {
    "dry_run": True,
    "sweeps": [
        {
            "sweep": 7,
            "name": "sec-on-digits",
            "trainings": 72,
            "files": 72,
            "bytes": 6442450944,
            "kept": 12,
            "retrained": ["map", "recall@k"],
            "request": None,
        }
    ],
    "bytes": 6442450944,
}

# Both list the storage file by file: one at a time, as bundles are packed.
storage_router = APIRouter(
    prefix="/v1", tags=["storage"], route_class=ExpensiveBundle, responses=documented(401, 403, 404, 421, 422, 500, 503)
)

storage_forms = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=ExpensiveBundle)

Sweep = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only this sweep.")]


@storage_router.get(
    "/storage", summary="What lies on disk", responses=shown(SIZES, "In bytes, the largest sweep first.")
)
def storage(service: Asked, sweep: Sweep = None) -> StorageView:
    """The database, weights, figures, spools and logs of trainings by sweep, and images that lie decoded.

    What several sweeps share counts for each of them, and once in the sums.
    """
    return service.retention.sizes(sweep)


@storage_router.post(
    "/collections",
    summary="Let weights go",
    responses=shown(COLLECTION, "What would go, or was asked to.") | documented(409),
)
def collect(
    service: Asked,
    actor: Actor,
    sweep: Sweep = None,
    days: Annotated[
        float, Query(ge=0, le=36_500, allow_inf_nan=False, description="Trainings that ended so long ago.")
    ] = 30.0,
    state: Annotated[
        list[TrialState] | None,
        Query(max_length=6, description="Only trainings in these states: finished, failed, cancelled, pruned."),
    ] = None,
    keep: Annotated[
        int, Query(ge=1, le=10_000, description="So many candidates of each cell, the best, keep theirs.")
    ] = 1,
    dry_run: Annotated[bool, Query(description="Only say what would go.")] = True,
) -> CollectionView:
    """Ask that weights and checkpoints of trainings of ended sweeps be removed; results, curves, logs and figures stay.

    Kept are those of each cell's best candidates, what another sweep shows too, and what an evaluation waits for.
    `retrained` names the columns that could no longer be evaluated of them. Unless it is a dry run, a request a sweep
    says what becomes of it.
    """
    policy = CollectionPolicy(before=datetime.now(UTC) - timedelta(days=days), keep=keep)
    if state:
        policy = policy.model_copy(update={"states": sorted(set(state))})
    return service.retention.collect(policy, sweep, actor, dry_run=dry_run)


@storage_forms.get("/sweeps/{id}/storage")
def sizes_page(number: Id, service: Asked) -> HTMLResponse:
    """What one sweep keeps, and what of it could go today; the sweep's own page asks for it when it is unfolded."""
    found, (kept,) = service.sweeps.get(number), service.retention.sizes(number).sweeps
    going = None
    if found.state in SWEEP_ENDED:
        policy = CollectionPolicy(before=datetime.now(UTC), keep=1)
        going = service.retention.collect(policy, number, None, dry_run=True)
    return HTMLResponse(sweeps.storage_page(kept, going))


DATA: Final = [
    {
        "host": "lab",
        "node": "a56940a9c5f5e3cbba3081aefaf95d91da2a88741bf92210274638bf",
        "data": "cub200",
        "state": "missing",
        "said": "CUB_200_2011/images.txt is missing: looked in /data; `python -m workers data fetch cub200` fetches it",
        "looked": "2025-11-20T09:00:02Z",
    }
]

data_router = APIRouter(prefix="/v1/data", tags=["catalog"], responses=documented(401, 421, 500, 503))


@data_router.get("", summary="The data that the nodes have", responses=shown(DATA, "By node and data set."))
def data(service: Asked) -> list[DataFinding]:
    """What every node that is there was found to have of the usual data sets, and of what sweeps asked for."""
    return service.data()


catalog_router = APIRouter(prefix="/v1", tags=["catalog"], responses=documented(401, 421, 500))


@catalog_router.get("/catalog", summary="The catalog of parts")
def catalog(service: Asked) -> Catalog:
    """Every part that a recipe may name, with its label, paper, hyper-parameters and their defaults."""
    return service.catalog()


@catalog_router.get("/schema", summary="The JSON schema of a spec", response_model=None)
def schema(service: Asked) -> dict[str, Any]:
    """For editors that complete and check while one types."""
    return service.json_schema()


READINESS: Final = {"ok": True, "checks": [{"name": "database", "ok": True, "detail": "answers"}]}

health_router = APIRouter(tags=["health"], responses=documented(421, 500))


@health_router.get("/healthz", summary="Does the process live?", responses=shown({"ok": True}, "It lives."))
async def healthz() -> dict[str, bool]:
    """Asks nothing of the database, and needs no free thread."""
    return {"ok": True}


@health_router.get(
    "/readyz",
    summary="Can the service do its work?",
    response_model=Readiness,
    responses=shown(READINESS, "It can.") | documented(503),
)
def readyz(service: Asked, request: Request) -> Response | Readiness:
    """Asks what is needed: database, schema, conductor, engine, MLflow, room and storage; 503 where one is missing.

    Each check is named with what is wrong in words. The answer is a second old at most, however often it is asked for.
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
    """What is measured, in Prometheus' text format; asks for the token as everything does."""
    exposition: Exposition = request.app.state.exposition
    return Response(exposition.text(), headers={"Content-Type": CONTENT_TYPE})
