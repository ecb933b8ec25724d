"""The tables of sweeps, what became of them, and who conducts."""

from typing import Final

import sqlalchemy as sa

from orchestrator.record.clock import DatabaseSeconds, UtcTime
from orchestrator.record.column_types import BIG, DOUBLE, NEED, STATE, UID, metadata, places

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
    sa.Column("owner_id", sa.Integer),  # the user that submitted it; null: who holds a token of the server
    sa.Column("priority", sa.Integer, nullable=False, default=0, server_default="0"),  # higher is drawn first
    sa.Column("idempotency_key", sa.String, unique=True),
    sa.Column("body_hash", sa.String, nullable=False),
    sa.Column("created", UtcTime, nullable=False),
    sa.Column("state", STATE, nullable=False, index=True),
    sa.Column("slot", sa.JSON),
    sa.Column("started", UtcTime),
    sa.Column("ended", UtcTime),
    sa.Column("error", sa.Text),
    sa.Column("notice", sa.Text),  # why trials of it wait: no node can hold their slots, or no machine has their data
    sa.Column("content", sa.JSON(none_as_null=True)),  # of the data that it is planned with, by need; null: undecided
    sa.Column("mlflow_experiment", sa.String),
    sa.Column("mlflow_run", sa.String),  # of the summary run
    sa.Index(None, "started", "state"),
    sqlite_autoincrement=True,
)

request: Final = sa.Table(
    "request",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("sweep_id", sa.Integer, nullable=False),  # no key: what became of a request outlives its sweep
    sa.Column("trial_id", sa.Integer),
    sa.Column("arguments", sa.JSON(none_as_null=True)),
    sa.Column("actor", sa.String),
    sa.Column("project_id", sa.Integer),  # of its sweep; null: the conductor's own, or before there were projects
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
    # Of a search: what it suggested, and the events of its cell (from 0) at which it was asked and told.
    sa.Column("suggested", sa.JSON(none_as_null=True)),
    sa.Column("asked", sa.Integer),
    sa.Column("told", sa.Integer),
    sa.Column("score", DOUBLE),  # as it was told; null: none
    sa.Column("pruned", sa.Integer),  # the evaluation after which it was told as pruned
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
    sa.Column("shape", sa.String(32)),  # of one that finished, and was not diverged (orchestrator.cost.estimate)
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
    sa.Column("origin", sa.Text, nullable=False, default="", server_default=""),  # of data and code, of the result
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
    sa.Column("removed", UtcTime),  # null: they are still to go, or partly gone
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
    sa.Column("mlflow_left", sa.String),  # the run that it had under older versions, until the tracker knows that
    sa.Column("mlflow_point", BIG, nullable=False, default=0),  # last metric.id sent
    sa.Column("score", DOUBLE),  # these two: its training's, once it has finished
    sa.Column("seconds", DOUBLE),
    *places(),  # trial_column says which key is where
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
    sa.Column("cause", STATE),  # the kind of its failure; null: it did not fail, or before this was kept
    # For whom it was claimed, what it holds of a node, and since when; null: before this was kept.
    sa.Column("owner_id", sa.Integer),
    sa.Column("project_id", sa.Integer),
    sa.Column("cpus", DOUBLE),
    sa.Column("gpus", DOUBLE),
    sa.Column("begun", UtcTime),  # null as well: it has no slot yet
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
    sa.Column("marked", DOUBLE, nullable=False, default=DatabaseSeconds(), server_default="0"),  # 0: not known
    sa.Column("error", sa.Text),
    sa.UniqueConstraint("kind", "sweep_id", "entity"),
    sa.Index(None, "next_try", "id"),
    sqlite_autoincrement=True,
)

change: Final = sa.Table(
    "change", metadata, sa.Column("id", BIG, primary_key=True),  # in the order in which transactions ended
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("sweep_id", sa.Integer, nullable=False),  # no key: that a sweep was deleted is told after it went
    sa.Column("entity", sa.Integer, nullable=False),  # trial id, cell index, request id, or sweep id
    sa.Column("state", STATE), sqlite_autoincrement=True,  # that a sweep entered; null: it stayed in its own
)  # fmt: skip
