"""The first schema."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_REFUSAL = "the audit is only appended to"


def upgrade() -> None:
    """Go to this version."""
    op.create_table(
        "account",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled", sa.DateTime(timezone=True), nullable=True),
        sa.Column("issuer", sa.String(length=255), nullable=True),
        sa.Column("subject", sa.String(length=255), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
        sa.UniqueConstraint("name", name=op.f("uq_account_name")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_account_issuer_subject"), "account", ["issuer", "subject"], unique=True)
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=True),
        sa.Column("token_id", sa.Integer(), nullable=True),
        sa.Column("what", sa.String(length=32), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("request", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "change",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("entity", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_change")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "delivery",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("uid", sa.String(length=36), nullable=False),
        sa.Column("event", sa.String(length=16), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("said", sa.JSON(), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_try", sa.Float(precision=53), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery")),
        sa.UniqueConstraint("uid", name=op.f("uq_delivery_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_delivery_state_next_try_id"), "delivery", ["state", "next_try", "id"], unique=False)
    op.create_index(
        op.f("ix_delivery_sweep_id_event_created"), "delivery", ["sweep_id", "event", "created"], unique=False
    )
    op.create_table(
        "installation",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("uid", sa.String(length=36), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_installation")),
    )
    op.create_table(
        "lease",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("until", sa.Float(precision=53), nullable=False),
        sa.Column("seconds", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_lease")),
    )
    op.create_table(
        "need",
        sa.Column("key", sa.String(length=16), nullable=False),
        sa.Column("reads", sa.JSON(), nullable=False),
        sa.Column("asked", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_need")),
    )
    op.create_table(
        "node",
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("resources", sa.JSON(), nullable=False),
        sa.Column("alive", sa.Boolean(), nullable=False),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("uid", name=op.f("pk_node")),
    )
    op.create_table(
        "past_attempt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("project_id", sa.Integer(), nullable=True),
        sa.Column("cpus", sa.Float(precision=53), nullable=False),
        sa.Column("gpus", sa.Float(precision=53), nullable=False),
        sa.Column("begun", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_past_attempt")),
    )
    op.create_index(op.f("ix_past_attempt_owner_id"), "past_attempt", ["owner_id"], unique=False)
    op.create_index(op.f("ix_past_attempt_project_id"), "past_attempt", ["project_id"], unique=False)
    project = op.create_table(
        "project",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "request",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("trial_id", sa.Integer(), nullable=True),
        sa.Column("arguments", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("project_id", sa.Integer(), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("applied", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_request")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_request_applied"), "request", ["applied"], unique=False)
    op.create_index(op.f("ix_request_sweep_id_id"), "request", ["sweep_id", "id"], unique=False)
    op.create_table(
        "slot",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("resources", sa.JSON(), nullable=False),
        sa.Column("attempt", sa.String(length=36), nullable=True),
        sa.Column("usage", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("lag", sa.Float(precision=53), nullable=True),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_slot")),
    )
    op.create_table(
        "sweep",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("project_id", sa.Integer(), server_default="1", nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("priority", sa.Integer(), server_default="0", nullable=False),
        sa.Column("idempotency_key", sa.String(), nullable=True),
        sa.Column("body_hash", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("slot", sa.JSON(), nullable=True),
        sa.Column("started", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("notice", sa.Text(), nullable=True),
        sa.Column("content", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("mlflow_experiment", sa.String(), nullable=True),
        sa.Column("mlflow_run", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweep")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_sweep_idempotency_key")),
        sa.UniqueConstraint("uid", name=op.f("uq_sweep_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_sweep_started_state"), "sweep", ["started", "state"], unique=False)
    op.create_index(op.f("ix_sweep_state"), "sweep", ["state"], unique=False)
    op.create_table(
        "training",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", sa.String(length=36), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("recipe", sa.JSON(), nullable=False),
        sa.Column("stamp", sa.Text(), server_default="", nullable=False),
        sa.Column("heir", sa.Integer(), nullable=True),
        sa.Column("base", sa.String(length=64), server_default="", nullable=False),
        sa.Column("source", sa.Integer(), nullable=True),
        sa.Column("need", sa.String(length=16), nullable=True),
        sa.Column("shape", sa.String(length=32), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("total_steps", sa.Integer(), nullable=False),
        sa.Column("log_length", sa.Integer(), nullable=False),
        sa.Column("diverged", sa.Boolean(), nullable=False),
        sa.Column("metrics", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("score", sa.Float(precision=53), nullable=True),
        sa.Column("best_step", sa.Integer(), nullable=True),
        sa.Column("seconds", sa.Float(precision=53), nullable=True),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("origin", sa.Text(), server_default="", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("trace", sa.Text(), nullable=True),
        sa.Column("started", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_training")),
        sa.UniqueConstraint("fingerprint", "generation", name=op.f("uq_training_fingerprint_generation")),
        sa.UniqueConstraint("uid", name=op.f("uq_training_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_training_base"), "training", ["base"], unique=False)
    op.create_index(op.f("ix_training_heir"), "training", ["heir"], unique=False)
    op.create_index(op.f("ix_training_shape_id"), "training", ["shape", "id"], unique=False)
    op.create_index(op.f("ix_training_source"), "training", ["source"], unique=False)
    op.create_index(op.f("ix_training_state_stamp"), "training", ["state", "stamp"], unique=False)
    op.create_table(
        "attempt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", sa.String(length=36), nullable=False),
        sa.Column("training_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("slot", sa.JSON(), nullable=False),
        sa.Column("resumed_from", sa.String(), nullable=True),
        sa.Column("holder", sa.String(), nullable=True),
        sa.Column("host", sa.String(), nullable=True),
        sa.Column("seen", sa.Integer(), nullable=False),
        sa.Column("checkpoint", sa.String(), nullable=True),
        sa.Column("log_bytes", sa.Integer(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("cause", sa.String(length=16), nullable=True),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("project_id", sa.Integer(), nullable=True),
        sa.Column("cpus", sa.Float(precision=53), nullable=True),
        sa.Column("gpus", sa.Float(precision=53), nullable=True),
        sa.Column("begun", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["training_id"], ["training.id"], name=op.f("fk_attempt_training_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
        sa.UniqueConstraint("training_id", "number", name=op.f("uq_attempt_training_id_number")),
        sa.UniqueConstraint("uid", name=op.f("uq_attempt_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_attempt_state_cause"), "attempt", ["state", "cause"], unique=False)
    op.create_table(
        "cell",
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("cell", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("open", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("summary", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("settled", sa.DateTime(timezone=True), nullable=True),
        sa.Column("mlflow_run", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_cell_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "cell", name=op.f("pk_cell")),
    )
    op.create_index(op.f("ix_cell_open_sweep_id_cell"), "cell", ["open", "sweep_id", "cell"], unique=False)
    op.create_index(op.f("ix_cell_settled_sweep_id_cell"), "cell", ["settled", "sweep_id", "cell"], unique=False)
    op.create_table(
        "collected",
        sa.Column("training_id", sa.Integer(), nullable=False),
        sa.Column("request", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("files", sa.Integer(), nullable=True),
        sa.Column("bytes", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("removed", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["training_id"], ["training.id"], name=op.f("fk_collected_training_id")),
        sa.PrimaryKeyConstraint("training_id", name=op.f("pk_collected")),
    )
    op.create_index(op.f("ix_collected_request"), "collected", ["request"], unique=False)
    op.create_table(
        "finding",
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("need", sa.String(length=16), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("said", sa.Text(), nullable=False),
        sa.Column("facts", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("looked", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["need"], ["need.key"], name=op.f("fk_finding_need")),
        sa.PrimaryKeyConstraint("node", "need", name=op.f("pk_finding")),
    )
    op.create_table(
        "membership",
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("steers", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_membership_account_id")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_membership_project_id")),
        sa.PrimaryKeyConstraint("account_id", "project_id", name=op.f("pk_membership")),
    )
    op.create_index(op.f("ix_membership_project_id"), "membership", ["project_id"], unique=False)
    op.create_table(
        "note",
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("entity", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("changed", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_note_sweep_id")),
        sa.PrimaryKeyConstraint("kind", "sweep_id", "entity", name=op.f("pk_note")),
    )
    op.create_index(op.f("ix_note_sweep_id"), "note", ["sweep_id"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("entity", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("next_try", sa.Float(precision=53), nullable=False),
        sa.Column("marked", sa.Float(precision=53), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_outbox_sweep_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("kind", "sweep_id", "entity", name=op.f("uq_outbox_kind_sweep_id_entity")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_outbox_next_try_id"), "outbox", ["next_try", "id"], unique=False)
    op.create_table(
        "quota",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=True),
        sa.Column("project_id", sa.Integer(), nullable=True),
        sa.Column("slots", sa.Integer(), nullable=True),
        sa.Column("gpu_hours", sa.Float(precision=53), nullable=True),
        sa.Column("cpu_hours", sa.Float(precision=53), nullable=True),
        sa.Column("days", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_quota_account_id")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_quota_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quota")),
        sa.UniqueConstraint("account_id", name=op.f("uq_quota_account_id")),
        sa.UniqueConstraint("project_id", name=op.f("uq_quota_project_id")),
    )
    op.create_table(
        "resolution",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("request", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("budget", sa.JSON(), nullable=False),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("begun", sa.DateTime(timezone=True), nullable=False),
        sa.Column("position", sa.Integer(), nullable=True),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_resolution_sweep_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resolution")),
        sa.UniqueConstraint("request", name=op.f("uq_resolution_request")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_resolution_ended"), "resolution", ["ended"], unique=False)
    op.create_index(op.f("ix_resolution_sweep_id"), "resolution", ["sweep_id"], unique=False)
    op.create_table(
        "sweep_need",
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("need", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(["need"], ["need.key"], name=op.f("fk_sweep_need_need")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_sweep_need_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "need", name=op.f("pk_sweep_need")),
    )
    op.create_table(
        "tag",
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("entity", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("tag", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_tag_sweep_id")),
        sa.PrimaryKeyConstraint("kind", "sweep_id", "entity", "tag", name=op.f("pk_tag")),
    )
    op.create_index(op.f("ix_tag_sweep_id"), "tag", ["sweep_id"], unique=False)
    op.create_index(op.f("ix_tag_tag"), "tag", ["tag"], unique=False)
    op.create_table(
        "token",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("scope", sa.String(length=16), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked", sa.DateTime(timezone=True), nullable=True),
        sa.Column("browser", sa.Boolean(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_token_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("hash", name=op.f("uq_token_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_token_account_id"), "token", ["account_id"], unique=False)
    op.create_table(
        "trial_column",
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("role", sa.String(length=8), nullable=False),
        sa.Column("label", sa.Integer(), nullable=True),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_trial_column_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "key", name=op.f("pk_trial_column")),
    )
    op.create_index(op.f("ix_trial_column_key"), "trial_column", ["key"], unique=False)
    op.create_table(
        "candidate",
        sa.Column("sweep_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("cell", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("candidate", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("suggested", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("asked", sa.Integer(), nullable=True),
        sa.Column("told", sa.Integer(), nullable=True),
        sa.Column("score", sa.Float(precision=53), nullable=True),
        sa.Column("pruned", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["sweep_id", "cell"], ["cell.sweep_id", "cell.cell"], name=op.f("fk_candidate_sweep_id_cell")
        ),
        sa.PrimaryKeyConstraint("sweep_id", "cell", "candidate", name=op.f("pk_candidate")),
    )
    op.create_table(
        "log",
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_log_attempt_id")),
        sa.PrimaryKeyConstraint("attempt_id", "seq", name=op.f("pk_log")),
    )
    op.create_table(
        "metric",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_metric_attempt_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_metric")),
        sa.UniqueConstraint("attempt_id", "key", "step", name=op.f("uq_metric_attempt_id_key_step")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "trial",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", sa.String(length=36), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("cell", sa.Integer(), nullable=False),
        sa.Column("candidate", sa.Integer(), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("repeat_labels", sa.JSON(), nullable=False),
        sa.Column("training_id", sa.Integer(), nullable=False),
        sa.Column("evaluation_id", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reused", sa.Boolean(), nullable=False),
        sa.Column("diverged", sa.Boolean(), nullable=False),
        sa.Column("slot", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("started", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column("mlflow_run", sa.String(), nullable=True),
        sa.Column("mlflow_left", sa.String(), nullable=True),
        sa.Column("mlflow_point", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("score", sa.Float(precision=53), nullable=True),
        sa.Column("seconds", sa.Float(precision=53), nullable=True),
        sa.Column("label_0", sa.String(), nullable=True),
        sa.Column("label_1", sa.String(), nullable=True),
        sa.Column("label_2", sa.String(), nullable=True),
        sa.Column("label_3", sa.String(), nullable=True),
        sa.Column("label_4", sa.String(), nullable=True),
        sa.Column("label_5", sa.String(), nullable=True),
        sa.Column("label_6", sa.String(), nullable=True),
        sa.Column("label_7", sa.String(), nullable=True),
        sa.Column("label_8", sa.String(), nullable=True),
        sa.Column("label_9", sa.String(), nullable=True),
        sa.Column("label_10", sa.String(), nullable=True),
        sa.Column("label_11", sa.String(), nullable=True),
        sa.Column("label_12", sa.String(), nullable=True),
        sa.Column("label_13", sa.String(), nullable=True),
        sa.Column("label_14", sa.String(), nullable=True),
        sa.Column("label_15", sa.String(), nullable=True),
        sa.Column("number_0", sa.Float(precision=53), nullable=True),
        sa.Column("number_1", sa.Float(precision=53), nullable=True),
        sa.Column("number_2", sa.Float(precision=53), nullable=True),
        sa.Column("number_3", sa.Float(precision=53), nullable=True),
        sa.Column("number_4", sa.Float(precision=53), nullable=True),
        sa.Column("number_5", sa.Float(precision=53), nullable=True),
        sa.Column("number_6", sa.Float(precision=53), nullable=True),
        sa.Column("number_7", sa.Float(precision=53), nullable=True),
        sa.Column("number_8", sa.Float(precision=53), nullable=True),
        sa.Column("number_9", sa.Float(precision=53), nullable=True),
        sa.Column("number_10", sa.Float(precision=53), nullable=True),
        sa.Column("number_11", sa.Float(precision=53), nullable=True),
        sa.Column("number_12", sa.Float(precision=53), nullable=True),
        sa.Column("number_13", sa.Float(precision=53), nullable=True),
        sa.Column("number_14", sa.Float(precision=53), nullable=True),
        sa.Column("number_15", sa.Float(precision=53), nullable=True),
        sa.Column("number_16", sa.Float(precision=53), nullable=True),
        sa.Column("number_17", sa.Float(precision=53), nullable=True),
        sa.Column("number_18", sa.Float(precision=53), nullable=True),
        sa.Column("number_19", sa.Float(precision=53), nullable=True),
        sa.Column("number_20", sa.Float(precision=53), nullable=True),
        sa.Column("number_21", sa.Float(precision=53), nullable=True),
        sa.Column("number_22", sa.Float(precision=53), nullable=True),
        sa.Column("number_23", sa.Float(precision=53), nullable=True),
        sa.Column("number_24", sa.Float(precision=53), nullable=True),
        sa.Column("number_25", sa.Float(precision=53), nullable=True),
        sa.Column("number_26", sa.Float(precision=53), nullable=True),
        sa.Column("number_27", sa.Float(precision=53), nullable=True),
        sa.Column("number_28", sa.Float(precision=53), nullable=True),
        sa.Column("number_29", sa.Float(precision=53), nullable=True),
        sa.Column("number_30", sa.Float(precision=53), nullable=True),
        sa.Column("number_31", sa.Float(precision=53), nullable=True),
        sa.Column("number_32", sa.Float(precision=53), nullable=True),
        sa.Column("number_33", sa.Float(precision=53), nullable=True),
        sa.Column("number_34", sa.Float(precision=53), nullable=True),
        sa.Column("number_35", sa.Float(precision=53), nullable=True),
        sa.Column("number_36", sa.Float(precision=53), nullable=True),
        sa.Column("number_37", sa.Float(precision=53), nullable=True),
        sa.Column("number_38", sa.Float(precision=53), nullable=True),
        sa.Column("number_39", sa.Float(precision=53), nullable=True),
        sa.Column("number_40", sa.Float(precision=53), nullable=True),
        sa.Column("number_41", sa.Float(precision=53), nullable=True),
        sa.Column("number_42", sa.Float(precision=53), nullable=True),
        sa.Column("number_43", sa.Float(precision=53), nullable=True),
        sa.Column("number_44", sa.Float(precision=53), nullable=True),
        sa.Column("number_45", sa.Float(precision=53), nullable=True),
        sa.Column("number_46", sa.Float(precision=53), nullable=True),
        sa.Column("number_47", sa.Float(precision=53), nullable=True),
        sa.Column("number_48", sa.Float(precision=53), nullable=True),
        sa.Column("number_49", sa.Float(precision=53), nullable=True),
        sa.Column("number_50", sa.Float(precision=53), nullable=True),
        sa.Column("number_51", sa.Float(precision=53), nullable=True),
        sa.Column("number_52", sa.Float(precision=53), nullable=True),
        sa.Column("number_53", sa.Float(precision=53), nullable=True),
        sa.Column("number_54", sa.Float(precision=53), nullable=True),
        sa.Column("number_55", sa.Float(precision=53), nullable=True),
        sa.Column("number_56", sa.Float(precision=53), nullable=True),
        sa.Column("number_57", sa.Float(precision=53), nullable=True),
        sa.Column("number_58", sa.Float(precision=53), nullable=True),
        sa.Column("number_59", sa.Float(precision=53), nullable=True),
        sa.Column("number_60", sa.Float(precision=53), nullable=True),
        sa.Column("number_61", sa.Float(precision=53), nullable=True),
        sa.Column("number_62", sa.Float(precision=53), nullable=True),
        sa.Column("number_63", sa.Float(precision=53), nullable=True),
        sa.Column("number_64", sa.Float(precision=53), nullable=True),
        sa.Column("number_65", sa.Float(precision=53), nullable=True),
        sa.Column("number_66", sa.Float(precision=53), nullable=True),
        sa.Column("number_67", sa.Float(precision=53), nullable=True),
        sa.Column("number_68", sa.Float(precision=53), nullable=True),
        sa.Column("number_69", sa.Float(precision=53), nullable=True),
        sa.Column("number_70", sa.Float(precision=53), nullable=True),
        sa.Column("number_71", sa.Float(precision=53), nullable=True),
        sa.Column("number_72", sa.Float(precision=53), nullable=True),
        sa.Column("number_73", sa.Float(precision=53), nullable=True),
        sa.Column("number_74", sa.Float(precision=53), nullable=True),
        sa.Column("number_75", sa.Float(precision=53), nullable=True),
        sa.Column("number_76", sa.Float(precision=53), nullable=True),
        sa.Column("number_77", sa.Float(precision=53), nullable=True),
        sa.Column("number_78", sa.Float(precision=53), nullable=True),
        sa.Column("number_79", sa.Float(precision=53), nullable=True),
        sa.Column("number_80", sa.Float(precision=53), nullable=True),
        sa.Column("number_81", sa.Float(precision=53), nullable=True),
        sa.Column("number_82", sa.Float(precision=53), nullable=True),
        sa.Column("number_83", sa.Float(precision=53), nullable=True),
        sa.Column("number_84", sa.Float(precision=53), nullable=True),
        sa.Column("number_85", sa.Float(precision=53), nullable=True),
        sa.Column("number_86", sa.Float(precision=53), nullable=True),
        sa.Column("number_87", sa.Float(precision=53), nullable=True),
        sa.Column("number_88", sa.Float(precision=53), nullable=True),
        sa.Column("number_89", sa.Float(precision=53), nullable=True),
        sa.Column("number_90", sa.Float(precision=53), nullable=True),
        sa.Column("number_91", sa.Float(precision=53), nullable=True),
        sa.Column("number_92", sa.Float(precision=53), nullable=True),
        sa.Column("number_93", sa.Float(precision=53), nullable=True),
        sa.Column("number_94", sa.Float(precision=53), nullable=True),
        sa.Column("number_95", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["sweep_id", "cell", "candidate"],
            ["candidate.sweep_id", "candidate.cell", "candidate.candidate"],
            name=op.f("fk_trial_sweep_id_cell_candidate"),
        ),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_trial_sweep_id")),
        sa.ForeignKeyConstraint(["training_id"], ["training.id"], name=op.f("fk_trial_training_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trial")),
        sa.UniqueConstraint(
            "sweep_id", "cell", "candidate", "repeat", name=op.f("uq_trial_sweep_id_cell_candidate_repeat")
        ),
        sa.UniqueConstraint("sweep_id", "position", name=op.f("uq_trial_sweep_id_position")),
        sa.UniqueConstraint("uid", name=op.f("uq_trial_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_trial_cell_state", "trial", ["sweep_id", "cell", "state"], unique=False)
    op.create_index("ix_trial_counts", "trial", ["sweep_id", "state", "reused", "diverged"], unique=False)
    op.create_index(op.f("ix_trial_evaluation_id"), "trial", ["evaluation_id"], unique=False)
    op.create_index(op.f("ix_trial_sweep_id_evaluation_id"), "trial", ["sweep_id", "evaluation_id"], unique=False)
    op.create_index(op.f("ix_trial_sweep_id_state_position"), "trial", ["sweep_id", "state", "position"], unique=False)
    op.create_index(op.f("ix_trial_training_id"), "trial", ["training_id"], unique=False)
    # The database numbers it, so that the next project gets another number.
    op.bulk_insert(project, [{"name": "main", "open": True, "created": datetime.now(UTC)}])
    _let_the_audit_only_grow()


def _let_the_audit_only_grow() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_no_{verb.lower()} BEFORE {verb} ON audit "
                f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION audit_is_appended_to() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_is_appended_to()"
    )
