"""Deliveries: what a webhook is told."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
    op.create_table(
        "delivery",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("event", sa.String(16), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("said", sa.JSON(), nullable=False),
        sa.Column("created", sa.Float(53), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_try", sa.Float(53), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery")),
        sa.UniqueConstraint("uid", name=op.f("uq_delivery_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_delivery_state_next_try_id"), "delivery", ["state", "next_try", "id"])
    op.create_index(op.f("ix_delivery_sweep_id_event_created"), "delivery", ["sweep_id", "event", "created"])
