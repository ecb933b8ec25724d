"""Who may write which column of the database."""

from collections.abc import Mapping
from typing import Final

import sqlalchemy as sa

from orchestrator.record.schema import (
    account,
    attempt,
    audit,
    candidate,
    delivery,
    finding,
    installation,
    lease,
    log,
    membership,
    metric,
    need,
    node,
    note,
    outbox,
    past_attempt,
    project,
    quota,
    request,
    resolution,
    slot,
    sweep,
    sweep_need,
    tag,
    token,
    training,
    trial,
    trial_column,
)

_SUBMITTED: Final = frozenset(
    {
        "uid", "name", "text", "spec", "total", "actor", "idempotency_key", "body_hash", "created", "state", "priority",
        "project_id", "owner_id",
    }
)  # fmt: skip
_ASKED: Final = frozenset({"kind", "sweep_id", "trial_id", "arguments", "actor", "created", "project_id"})
_KNOWN: Final = frozenset({"id", "uid", "fingerprint", "generation", "recipe", "stamp", "base", "need"})
_CLAIMED: Final = frozenset({"id", "uid", "training_id", "number", "slot", "owner_id", "project_id", "cpus", "gpus"})
_CHANGED: Final = frozenset({"kind", "sweep_id", "entity", "state"})
_EXTENDED: Final = frozenset({"state", "priority", "text", "spec", "total"})


_DELETED: Final = (
    "log", "metric", "attempt", "note", "tag", "trial", "trial_column", "candidate", "cell",
    "sweep_need", "resolution", "sweep", "training",
)  # fmt: skip
"""What goes with a deleted sweep; its requests stay, without their arguments, to say what became of them."""


def _columns(table: sa.Table, without: frozenset[str] = frozenset()) -> frozenset[str]:
    return frozenset(column.name for column in table.columns) - without


WRITERS: Final[Mapping[str, Mapping[tuple[str, str], frozenset[str]]]] = {
    "client": {
        ("insert", "sweep"): _SUBMITTED,
        ("insert", "request"): _ASKED,
        ("insert", "change"): _CHANGED,
        ("insert", "audit"): _columns(audit),
        ("insert", "need"): _columns(need),
        ("update", "need"): frozenset({"asked"}),
        # What people say is theirs: nothing is decided by it, and the conductor only deletes it with its sweep.
        ("insert", "note"): _columns(note),
        ("update", "note"): frozenset({"text", "actor", "changed"}),
        ("delete", "note"): frozenset(),
        ("insert", "tag"): _columns(tag),
        ("delete", "tag"): frozenset(),
    },
    "owner": {  # and administrators, everybody their own tokens, and a provider that logs somebody in
        ("insert", "project"): _columns(project),
        ("update", "project"): frozenset({"open"}),
        ("insert", "account"): _columns(account),
        ("update", "account"): frozenset({"role", "disabled", "issuer", "subject"}),
        ("insert", "membership"): _columns(membership),
        ("update", "membership"): frozenset({"steers"}),
        ("delete", "membership"): frozenset(),
        ("insert", "token"): _columns(token),
        ("update", "token"): frozenset({"revoked"}),
        ("delete", "token"): frozenset(),  # of browsers, once they open nothing any more
        ("insert", "quota"): _columns(quota),
        ("update", "quota"): frozenset({"slots", "gpu_hours", "cpu_hours", "days"}),
        ("delete", "quota"): frozenset(),
        ("insert", "audit"): _columns(audit),
    },
    "conductor": {
        ("update", "sweep"): _columns(sweep, _SUBMITTED - _EXTENDED),
        ("insert", "request"): _columns(request),  # what it did by itself is on the list of what was asked
        ("update", "request"): frozenset({"applied", "outcome", "arguments"}),
        ("insert", "change"): _CHANGED,
        ("delete", "change"): frozenset(),
        ("insert", "cell"): frozenset({"sweep_id", "cell", "labels", "open"}),
        ("update", "cell"): frozenset({"open", "summary", "settled", "mlflow_run"}),
        ("insert", "candidate"): _columns(candidate),
        ("update", "candidate"): frozenset({"told", "score", "pruned"}),
        ("insert", "training"): _columns(training),
        ("update", "training"): _columns(training, _KNOWN),
        ("insert", "trial"): _columns(trial),
        ("update", "trial"): frozenset(
            {
                "training_id",
                "evaluation_id",
                "state",
                "reused",
                "diverged",
                "reason",
                "started",
                "ended",
                "mlflow_run",
                "mlflow_left",
                "mlflow_point",
                "score",
                "seconds",
                *(column.name for column in trial.columns if column.name.startswith("number_")),
            }
        ),
        ("insert", "trial_column"): _columns(trial_column),
        ("update", "trial_column"): frozenset({"number"}),
        ("insert", "attempt"): _columns(attempt),
        ("update", "attempt"): _columns(attempt, _CLAIMED),
        ("insert", "past_attempt"): _columns(past_attempt),
        ("insert", "metric"): _columns(metric),
        ("insert", "log"): _columns(log),
        ("insert", "node"): _columns(node),
        ("update", "node"): _columns(node, frozenset({"uid"})),
        ("delete", "node"): frozenset(),
        ("insert", "collected"): frozenset({"training_id", "request", "at", "reason"}),
        ("update", "collected"): frozenset({"files", "bytes", "removed"}),
        ("delete", "collected"): frozenset(),
        ("insert", "slot"): _columns(slot),
        ("update", "slot"): _columns(slot, frozenset({"name"})),
        ("delete", "slot"): frozenset(),
        ("insert", "need"): _columns(need),
        ("insert", "sweep_need"): _columns(sweep_need),
        ("insert", "finding"): _columns(finding),
        ("update", "finding"): _columns(finding, frozenset({"node", "need"})),
        ("delete", "finding"): frozenset(),
        ("insert", "installation"): _columns(installation),
        ("insert", "lease"): _columns(lease),
        ("update", "lease"): _columns(lease, frozenset({"name"})),
        ("insert", "outbox"): _columns(outbox),
        ("update", "outbox"): frozenset({"version", "failures", "next_try", "marked", "error"}),
        ("delete", "outbox"): frozenset(),
        ("insert", "resolution"): _columns(resolution),
        ("update", "resolution"): frozenset({"position", "report", "ended", "outcome"}),
        ("insert", "delivery"): _columns(delivery),
        ("update", "delivery"): frozenset({"state", "tries", "next_try", "error"}),
        ("delete", "delivery"): frozenset(),
        **{("delete", name): frozenset() for name in _DELETED},
    },
}
"""Who writes which column by which statement: the API's side (`client`) only appends; a test listens to both sides."""
