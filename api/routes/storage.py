"""What lies on disk, for which sweeps, and what may go of it."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from api.dependencies import Actor, Asked, Id
from api.http.turns import ExpensiveBundle
from api.openapi import documented, shown
from dashboards import pages
from orchestrator.views.collection import CollectionPolicy, CollectionView, StorageView
from orchestrator.views.lifecycle import SWEEP_ENDED, TrialState

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
router = APIRouter(
    prefix="/v1", tags=["storage"], route_class=ExpensiveBundle, responses=documented(401, 403, 404, 421, 422, 500, 503)
)

page = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=ExpensiveBundle)

Sweep = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only this sweep.")]


@router.get("/storage", summary="What lies on disk", responses=shown(SIZES, "In bytes, the largest sweep first."))
def storage(service: Asked, sweep: Sweep = None) -> StorageView:
    """The database, weights, figures, spools and logs of trainings by sweep, and images that lie decoded.

    What several sweeps share counts for each of them, and once in the sums.
    """
    return service.retention.sizes(sweep)


@router.post(
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


@page.get("/sweeps/{id}/storage")
def sizes_page(number: Id, service: Asked) -> HTMLResponse:
    """What one sweep keeps, and what of it could go today; the sweep's own page asks for it when it is unfolded."""
    found, (kept,) = service.sweeps.get(number), service.retention.sizes(number).sweeps
    going = None
    if found.state in SWEEP_ENDED:
        policy = CollectionPolicy(before=datetime.now(UTC), keep=1)
        going = service.retention.collect(policy, number, None, dry_run=True)
    return HTMLResponse(pages.storage_page(kept, going))
