"""The tables of the database: sweeps with their trials and results, the cluster, and the accounts."""

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.columns import DatabaseSeconds, UtcTime

metadata: Final = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

STATE: Final = sa.String(16)
NEED: Final = sa.String(16)  # the key of a need
UID: Final = sa.String(36)
DOUBLE: Final = sa.Float(53)
LABELS: Final = 16
"""Axes of a sweep whose labels are stored with each trial."""
NUMBERS: Final = 96
"""Numbers of a sweep (axes and metrics) that are stored with each trial."""
BIG: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite numbers rows by INTEGER only


def places() -> Iterator[sa.Column[Any]]:
    """The columns of `trial` that copy labels and numbers, so that lists filter and sort without a join."""
    yield from (sa.Column(f"label_{at}", sa.String) for at in range(LABELS))
    yield from (sa.Column(f"number_{at}", DOUBLE) for at in range(NUMBERS))


MAIN: Final = 1
"""The project that always exists, of all sweeps without another project."""

project: Final = sa.Table(
    "project",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("open", sa.Boolean, nullable=False),  # every user sees its sweeps
    sa.Column("created", UtcTime, nullable=False),
    sqlite_autoincrement=True,
)

account: Final = sa.Table(
    "account",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("role", STATE, nullable=False),  # viewer, member, admin
    sa.Column("created", UtcTime, nullable=False),
    sa.Column("disabled", UtcTime),
    sa.Column("issuer", sa.String(255)),  # the OpenID Connect provider through which it logs in
    sa.Column("subject", sa.String(255)),  # its id at this provider; null: it is not linked
    sa.Index(None, "issuer", "subject", unique=True),
    sqlite_autoincrement=True,
)

membership: Final = sa.Table(
    "membership",
    metadata,
    sa.Column("account_id", sa.ForeignKey("account.id"), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("project.id"), primary_key=True),
    sa.Column("steers", sa.Boolean, nullable=False),  # else it is a viewer
    sa.Index(None, "project_id"),
)

token: Final = sa.Table(
    "token",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("account_id", sa.ForeignKey("account.id"), nullable=False, index=True),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),  # SHA-256 of the secret, in hexadecimal
    sa.Column("scope", STATE, nullable=False),  # read, write, admin, mlflow, metrics
    sa.Column("created", UtcTime, nullable=False),
    sa.Column("expires", UtcTime),
    sa.Column("revoked", UtcTime),
    sa.Column("browser", sa.Boolean),  # whether it is a login through a provider, whose secret nobody has
    sqlite_autoincrement=True,
)


sweep: Final = sa.Table(
    "sweep",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uid", UID, nullable=False, unique=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("spec", sa.JSON, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("actor", sa.String),
    sa.Column("project_id", sa.Integer, nullable=False, default=1, server_default="1"),
    sa.Column("owner_id", sa.Integer),  # the user that submitted it; null: with the server's own token
    sa.Column("priority", sa.Integer, nullable=False, default=0, server_default="0"),  # higher is drawn first
    sa.Column("idempotency_key", sa.String, unique=True),
    sa.Column("body_hash", sa.String, nullable=False),
    sa.Column("created", UtcTime, nullable=False),
    sa.Column("state", STATE, nullable=False, index=True),
    sa.Column("slot", sa.JSON),
    sa.Column("started", UtcTime),
    sa.Column("ended", UtcTime),
    sa.Column("error", sa.Text),
    sa.Column("notice", sa.Text),  # why its trials wait
    sa.Column("content", sa.JSON(none_as_null=True)),  # of the data it is planned with, by need; null: undecided
    sa.Column("mlflow_experiment", sa.String),
    sa.Column("mlflow_run", sa.String),  # of the summary run
    sa.Index(None, "started", "state"),
    sqlite_autoincrement=True,
)

share: Final = sa.Table(
    "share", metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), nullable=False, index=True),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),  # SHA-256 of the link's secret, in hexadecimal
    sa.Column("account_id", sa.ForeignKey("account.id")),  # the user who made it; null: the owner of the service
    sa.Column("actor", sa.String),
    sa.Column("created", UtcTime, nullable=False),
    sa.Column("expires", UtcTime, nullable=False),
    sqlite_autoincrement=True,
)  # fmt: skip

request: Final = sa.Table(
    "request",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("sweep_id", sa.Integer, nullable=False),  # no foreign key: the outcome outlives the sweep
    sa.Column("trial_id", sa.Integer),
    sa.Column("arguments", sa.JSON(none_as_null=True)),
    sa.Column("actor", sa.String),
    sa.Column("project_id", sa.Integer),  # of its sweep; null: the conductor's own request
    sa.Column("created", UtcTime, nullable=False),
    sa.Column("applied", UtcTime, index=True),
    sa.Column("outcome", sa.Text),
    sa.Index(None, "sweep_id", "id"),
    sqlite_autoincrement=True,
)

cell: Final = sa.Table(
    "cell",
    metadata,
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), primary_key=True),
    sa.Column("cell", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("labels", sa.JSON, nullable=False),
    sa.Column("open", sa.Boolean, nullable=False, default=False, server_default=sa.false()),  # candidates may follow
    sa.Column("summary", sa.JSON(none_as_null=True)),
    sa.Column("settled", UtcTime),
    sa.Column("mlflow_run", sa.String),
    sa.Index(None, "settled", "sweep_id", "cell"),
    sa.Index(None, "open", "sweep_id", "cell"),
)

candidate: Final = sa.Table(
    "candidate",
    metadata,
    sa.Column("sweep_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("cell", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("candidate", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("labels", sa.JSON, nullable=False),
    # Of a search: the suggested values, and the events of its cell (from 0) at which it was suggested and scored.
    sa.Column("suggested", sa.JSON(none_as_null=True)),
    sa.Column("suggest_event", sa.Integer),
    sa.Column("score_event", sa.Integer),
    sa.Column("score", DOUBLE),  # that the study got
    sa.Column("pruned", sa.Integer),  # the evaluation after which it was pruned
    sa.ForeignKeyConstraint(["sweep_id", "cell"], ["cell.sweep_id", "cell.cell"]),
)

training: Final = sa.Table(
    "training",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uid", UID, nullable=False, unique=True),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),  # from 1; a fresh sweep takes the next one
    sa.Column("recipe", sa.JSON, nullable=False),
    sa.Column("stamp", sa.Text, nullable=False, default="", server_default=""),  # of its versions (workers.catalog)
    sa.Column("heir", sa.Integer),  # the training that its trials moved to, under newer versions
    sa.Column("base", sa.String(64), nullable=False, default="", server_default=""),  # fingerprint without metrics
    sa.Column("source", sa.Integer),  # the training whose kept weights are evaluated in place of training
    sa.Column("need", NEED),  # what it reads of a data root; null: nothing
    sa.Column("shape", sa.String(32)),  # if it finished and did not diverge (orchestrator.cost.estimate)
    sa.Column("state", STATE, nullable=False),
    sa.Column("step", sa.Integer, nullable=False, default=0),
    sa.Column("total_steps", sa.Integer, nullable=False, default=0),
    sa.Column("log_length", sa.Integer, nullable=False, default=0),  # characters over all attempts
    sa.Column("diverged", sa.Boolean, nullable=False, default=False),
    sa.Column("metrics", sa.JSON(none_as_null=True)),  # of the result, by checkpoint/split/metric; null: not a number
    sa.Column("score", DOUBLE),  # the metric that its recipe selects by
    sa.Column("best_step", sa.Integer),
    sa.Column("seconds", DOUBLE),
    sa.Column("result", sa.JSON(none_as_null=True)),  # the rest of it: curves, provenance, artifacts
    sa.Column("origin", sa.Text, nullable=False, default="", server_default=""),  # of the result's data and code
    sa.Column("error", sa.Text),
    sa.Column("trace", sa.Text),
    sa.Column("started", UtcTime),
    sa.Column("ended", UtcTime),
    sa.UniqueConstraint("fingerprint", "generation"),
    sa.Index(None, "state", "stamp"),
    sa.Index(None, "heir"),
    sa.Index(None, "base"),
    sa.Index(None, "source"),
    sa.Index(None, "shape", "id"),
    sqlite_autoincrement=True,
)

collected: Final = sa.Table(
    "collected", metadata,
    sa.Column("training_id", sa.ForeignKey("training.id"), primary_key=True),
    sa.Column("request", sa.Integer, nullable=False, index=True),
    sa.Column("at", UtcTime, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("files", sa.Integer),  # null: not counted yet
    sa.Column("bytes", BIG),
    sa.Column("removed", UtcTime),  # null: some files may still exist
)  # fmt: skip

trial: Final = sa.Table(
    "trial",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uid", UID, nullable=False, unique=True),
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), nullable=False),
    sa.Column("cell", sa.Integer, nullable=False),
    sa.Column("candidate", sa.Integer, nullable=False),
    sa.Column("repeat", sa.Integer, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),  # in the order of the plan, from 0
    sa.Column("repeat_labels", sa.JSON, nullable=False),
    sa.Column("training_id", sa.ForeignKey("training.id"), nullable=False, index=True),
    sa.Column("evaluation_id", sa.Integer, index=True),  # the training that it moves to once that has its metrics
    sa.Column("state", STATE, nullable=False),
    sa.Column("reused", sa.Boolean, nullable=False, default=False),
    sa.Column("diverged", sa.Boolean, nullable=False, default=False),  # its training's, copied for the counts
    sa.Column("slot", sa.JSON(none_as_null=True)),  # null: that of its sweep
    sa.Column("reason", sa.Text),  # why it was pruned
    sa.Column("started", UtcTime),
    sa.Column("ended", UtcTime),
    sa.Column("mlflow_run", sa.String),
    sa.Column("mlflow_left", sa.String),  # its run of older versions, until the tracker has ended it
    sa.Column("mlflow_point", BIG, nullable=False, default=0),  # last metric.id sent
    sa.Column("score", DOUBLE),  # this and `seconds` are copies of its training's
    sa.Column("seconds", DOUBLE),
    *places(),  # trial_column maps keys to them
    sa.UniqueConstraint("sweep_id", "cell", "candidate", "repeat"),
    sa.UniqueConstraint("sweep_id", "position"),
    sa.ForeignKeyConstraint(
        ["sweep_id", "cell", "candidate"], ["candidate.sweep_id", "candidate.cell", "candidate.candidate"]
    ),
    sa.Index(None, "sweep_id", "state", "position"),
    sa.Index(None, "sweep_id", "evaluation_id"),
    sa.Index("ix_trial_cell_state", "sweep_id", "cell", "state"),
    sa.Index("ix_trial_counts", "sweep_id", "state", "reused", "diverged"),
    sqlite_autoincrement=True,
)

attempt: Final = sa.Table(
    "attempt",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uid", UID, nullable=False, unique=True),
    sa.Column("training_id", sa.ForeignKey("training.id"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("state", STATE, nullable=False),  # running, finished, failed, lost, stopped
    sa.Column("fence", sa.Integer, nullable=False),  # of the conductor that claimed it, or adopted it last
    sa.Column("slot", sa.JSON, nullable=False),
    sa.Column("resumed_from", sa.String),
    sa.Column("holder", sa.String),
    sa.Column("host", sa.String),
    sa.Column("seen", sa.Integer, nullable=False, default=0),
    sa.Column("checkpoint", sa.String),
    sa.Column("log_bytes", sa.Integer, nullable=False, default=0),
    sa.Column("started", UtcTime, nullable=False),
    sa.Column("ended", UtcTime),
    sa.Column("reason", sa.Text),
    sa.Column("cause", STATE),  # the kind of its failure
    # For whom it was claimed, and what it holds of a node.
    sa.Column("owner_id", sa.Integer),
    sa.Column("project_id", sa.Integer),
    sa.Column("cpus", DOUBLE),
    sa.Column("gpus", DOUBLE),
    sa.Column("begun", UtcTime),  # null: it has no slot yet
    sa.UniqueConstraint("training_id", "number"),
    sa.Index(None, "state", "cause"),
    sqlite_autoincrement=True,
)

metric: Final = sa.Table(
    "metric",
    metadata,
    sa.Column("id", BIG, primary_key=True),
    sa.Column("attempt_id", sa.ForeignKey("attempt.id"), nullable=False),
    sa.Column("key", sa.String, nullable=False),
    sa.Column("step", sa.Integer, nullable=False),
    sa.Column("value", DOUBLE),  # null: not a number
    sa.Column("at", UtcTime, nullable=False),
    sa.UniqueConstraint("attempt_id", "key", "step"),
    sqlite_autoincrement=True,
)

log: Final = sa.Table(
    "log", metadata,
    sa.Column("attempt_id", sa.ForeignKey("attempt.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("start", sa.Integer, nullable=False),  # characters of the training's log before it
    sa.Column("text", sa.Text, nullable=False),
)  # fmt: skip

installation: Final = sa.Table(
    "installation", metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),  # 1: there is one row
    sa.Column("uid", UID, nullable=False),
)  # fmt: skip

lease: Final = sa.Table(
    "lease", metadata,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("holder", sa.String, nullable=False),
    sa.Column("fence", sa.Integer, nullable=False),
    sa.Column("until", DOUBLE, nullable=False),
    sa.Column("seconds", DOUBLE, nullable=False),
)  # fmt: skip

outbox: Final = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), nullable=False),
    sa.Column("entity", sa.Integer, nullable=False),  # trial id, cell index, or sweep id
    sa.Column("version", sa.Integer, nullable=False, default=1),  # bumped when marked again
    sa.Column("failures", sa.Integer, nullable=False, default=0),
    sa.Column("next_try", DOUBLE, nullable=False, default=0.0),
    sa.Column("marked", DOUBLE, nullable=False, default=DatabaseSeconds()),
    sa.Column("error", sa.Text),
    sa.UniqueConstraint("kind", "sweep_id", "entity"),
    sa.Index(None, "next_try", "id"),
    sqlite_autoincrement=True,
)

change: Final = sa.Table(
    "change", metadata, sa.Column("id", BIG, primary_key=True),  # in the order in which transactions ended
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("sweep_id", sa.Integer, nullable=False),  # no foreign key: it outlives its sweep
    sa.Column("entity", sa.Integer, nullable=False),  # trial id, cell index, request id, or sweep id
    sa.Column("state", STATE), sqlite_autoincrement=True,  # that a sweep entered
)  # fmt: skip


audit: Final = sa.Table(
    "audit",
    metadata,
    sa.Column("id", BIG, primary_key=True),
    sa.Column("at", UtcTime, nullable=False),
    sa.Column("who", sa.String, nullable=False),
    sa.Column("account_id", sa.Integer),  # no foreign keys: it outlives what it refers to
    sa.Column("token_id", sa.Integer),
    sa.Column("what", sa.String(32), nullable=False),
    sa.Column("target", sa.String, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("address", sa.String, nullable=False),  # of the client
    sa.Column("request", sa.String(32), nullable=False),  # X-Request-ID of the answer
    sqlite_autoincrement=True,
)


node: Final = sa.Table(
    "node", metadata,
    sa.Column("uid", sa.String, primary_key=True),
    sa.Column("host", sa.String, nullable=False),
    sa.Column("resources", sa.JSON, nullable=False),
    sa.Column("alive", sa.Boolean, nullable=False),
    sa.Column("seen", UtcTime, nullable=False),
)  # fmt: skip

slot: Final = sa.Table(
    "slot", metadata,
    sa.Column("name", sa.String, primary_key=True),  # as `attempt.holder`
    sa.Column("node", sa.String, nullable=False),  # the first characters of its node's uid
    sa.Column("host", sa.String, nullable=False),
    sa.Column("resources", sa.JSON, nullable=False),  # what it takes of its node
    sa.Column("attempt", UID),  # that it trains
    sa.Column("usage", sa.JSON(none_as_null=True)),  # the use of its process; null: not reported yet
    sa.Column("lag", DOUBLE),  # seconds that its oldest unrecorded message has waited; null: no message waits
    sa.Column("seen", UtcTime, nullable=False),
)  # fmt: skip

_READS = sa.Column("reads", sa.JSON, nullable=False)
_REQUESTED = sa.Column("requested", UtcTime)  # when a client last requested an inspection by every node; null: never
need: Final = sa.Table("need", metadata, sa.Column("key", NEED, primary_key=True), _READS, _REQUESTED)

sweep_need: Final = sa.Table(
    "sweep_need", metadata,
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), primary_key=True),
    sa.Column("need", sa.ForeignKey("need.key"), primary_key=True),
)  # fmt: skip

finding: Final = sa.Table(
    "finding", metadata,
    sa.Column("node", sa.String, primary_key=True),
    sa.Column("need", sa.ForeignKey("need.key"), primary_key=True),
    sa.Column("host", sa.String, nullable=False),
    sa.Column("state", STATE, nullable=False),  # ok, missing, wrong
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("facts", sa.JSON(none_as_null=True)),  # content and counts
    sa.Column("inspected", UtcTime, nullable=False),
)  # fmt: skip


delivery: Final = sa.Table(
    "delivery",
    metadata,
    sa.Column("id", BIG, primary_key=True),
    sa.Column("uid", UID, nullable=False, unique=True),  # its webhook-id, the same at every try
    sa.Column("event", STATE, nullable=False),
    sa.Column("sweep_id", sa.Integer, nullable=False),  # no foreign key: it outlives its sweep
    sa.Column("payload", sa.JSON, nullable=False),  # the state of the sweep
    sa.Column("created", DOUBLE, nullable=False, default=DatabaseSeconds()),
    sa.Column("state", STATE, nullable=False),  # waiting, delivered, given_up
    sa.Column("tries", sa.Integer, nullable=False, default=0),  # that failed
    sa.Column("next_try", DOUBLE, nullable=False, default=0.0),
    sa.Column("error", sa.Text),  # of the last try
    sa.Index(None, "state", "next_try", "id"),
    sa.Index(None, "sweep_id", "event", "created"),
    sqlite_autoincrement=True,
)


note: Final = sa.Table(
    "note",
    metadata,
    sa.Column("kind", sa.String(8), primary_key=True),  # sweep, cell, trial
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), primary_key=True),
    sa.Column("entity", sa.Integer, primary_key=True, autoincrement=False),  # sweep id, cell index, or trial id
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("actor", sa.String),
    sa.Column("changed", UtcTime, nullable=False),
    sa.Index(None, "sweep_id"),
)

tag: Final = sa.Table(
    "tag",
    metadata,
    sa.Column("kind", sa.String(8), primary_key=True),
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), primary_key=True),
    sa.Column("entity", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("tag", sa.String(64), primary_key=True),
    sa.Index(None, "tag"),
    sa.Index(None, "sweep_id"),
)

trial_column: Final = sa.Table(
    "trial_column",
    metadata,
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), primary_key=True),
    sa.Column("key", sa.String, primary_key=True),  # an axis, or a metric as checkpoint/split/metric
    sa.Column("role", sa.String(8), nullable=False),  # compare, tune, repeat, metric
    sa.Column("label", sa.Integer),  # n of label_n; null for metrics, and if all columns are taken
    sa.Column("number", sa.Integer),  # n of number_n; null if no label is a number, or all columns are taken
    sa.Index(None, "key"),
)


quota: Final = sa.Table(
    "quota",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("account_id", sa.ForeignKey("account.id"), unique=True),  # this one
    sa.Column("project_id", sa.ForeignKey("project.id"), unique=True),  # or this one is set
    sa.Column("slots", sa.Integer),  # at once; null: no limit, here and below
    sa.Column("gpu_hours", DOUBLE),
    sa.Column("cpu_hours", DOUBLE),
    sa.Column("days", sa.Integer),  # the hours are of so many last days; null: of all time
)

past_attempt: Final = sa.Table(
    "past_attempt",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("owner_id", sa.Integer, index=True),  # no foreign keys: it outlives what it refers to
    sa.Column("project_id", sa.Integer, index=True),
    sa.Column("cpus", DOUBLE, nullable=False),
    sa.Column("gpus", DOUBLE, nullable=False),
    sa.Column("begun", UtcTime, nullable=False),
    sa.Column("ended", UtcTime, nullable=False),
)


resolution: Final = sa.Table(
    "resolution",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), nullable=False, index=True),
    sa.Column("request", sa.Integer, nullable=False, unique=True),  # by which it was asked for
    sa.Column("name", sa.String, nullable=False),  # of the sweep's table
    sa.Column("budget", sa.JSON, nullable=False),
    sa.Column("actor", sa.String),
    sa.Column("begun", UtcTime, nullable=False),
    sa.Column("position", sa.Integer),  # of the first trial that it added
    sa.Column("report", sa.JSON, nullable=False),  # verdicts before, rounds, verdicts after, what was spent and saved
    sa.Column("ended", UtcTime, index=True),  # null: it goes on
    sa.Column("outcome", sa.Text),  # why it ended
    sqlite_autoincrement=True,
)
