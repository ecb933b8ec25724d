"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
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
        "sweep",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("idempotency_key", sa.String(), nullable=True),
        sa.Column("body_hash", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("slot", sa.JSON(), nullable=True),
        sa.Column("started", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("mlflow_experiment", sa.String(), nullable=True),
        sa.Column("mlflow_run", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweep")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_sweep_idempotency_key")),
        sa.UniqueConstraint("uid", name=op.f("uq_sweep_uid")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("sweep", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sweep_state"), ["state"], unique=False)

    op.create_table(
        "training",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", sa.String(length=36), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("recipe", sa.JSON(), nullable=False),
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
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("trace", sa.Text(), nullable=True),
        sa.Column("started", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_training")),
        sa.UniqueConstraint("fingerprint", "generation", name=op.f("uq_training_fingerprint_generation")),
        sa.UniqueConstraint("uid", name=op.f("uq_training_uid")),
        sqlite_autoincrement=True,
    )
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
        sa.ForeignKeyConstraint(["training_id"], ["training.id"], name=op.f("fk_attempt_training_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
        sa.UniqueConstraint("training_id", "number", name=op.f("uq_attempt_training_id_number")),
        sa.UniqueConstraint("uid", name=op.f("uq_attempt_uid")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempt_state"), ["state"], unique=False)

    op.create_table(
        "cell",
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("cell", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("summary", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("settled", sa.DateTime(timezone=True), nullable=True),
        sa.Column("mlflow_run", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_cell_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "cell", name=op.f("pk_cell")),
    )
    with op.batch_alter_table("cell", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_cell_settled_sweep_id_cell"), ["settled", "sweep_id", "cell"], unique=False
        )

    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("entity", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("next_try", sa.Float(precision=53), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_outbox_sweep_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("kind", "sweep_id", "entity", name=op.f("uq_outbox_kind_sweep_id_entity")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("outbox", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_outbox_next_try_id"), ["next_try", "id"], unique=False)

    op.create_table(
        "candidate",
        sa.Column("sweep_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("cell", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("candidate", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
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
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reused", sa.Boolean(), nullable=False),
        sa.Column("diverged", sa.Boolean(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column("mlflow_run", sa.String(), nullable=True),
        sa.Column("mlflow_point", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
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
    with op.batch_alter_table("trial", schema=None) as batch_op:
        batch_op.create_index("ix_trial_cell_state", ["sweep_id", "cell", "state"], unique=False)
        batch_op.create_index("ix_trial_counts", ["sweep_id", "state", "reused", "diverged"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_trial_sweep_id_state_position"), ["sweep_id", "state", "position"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_trial_training_id"), ["training_id"], unique=False)

    op.create_table(
        "request",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("trial_id", sa.Integer(), nullable=True),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("applied", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_request_sweep_id")),
        sa.ForeignKeyConstraint(["trial_id"], ["trial.id"], name=op.f("fk_request_trial_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_request")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("request", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_request_applied"), ["applied"], unique=False)
