"""Retention: of which trainings the weights were collected, when and why."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
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
    op.create_index(op.f("ix_collected_request"), "collected", ["request"])
