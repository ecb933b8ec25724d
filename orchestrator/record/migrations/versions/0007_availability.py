"""Availability: what trainings need of data roots, and what inspections found there."""

import sqlalchemy as sa
from alembic import op



revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
    op.add_column("training", sa.Column("need", sa.String(length=16), nullable=True))
    op.create_table(
        "need",
        sa.Column("key", sa.String(length=16), nullable=False),
        sa.Column("reads", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_need")),
    )
    op.create_table(
        "sweep_need",
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("need", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_sweep_need_sweep_id")),
        sa.ForeignKeyConstraint(["need"], ["need.key"], name=op.f("fk_sweep_need_need")),
        sa.PrimaryKeyConstraint("sweep_id", "need", name=op.f("pk_sweep_need")),
    )
    op.create_table(
        "finding",
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("need", sa.String(length=16), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("said", sa.Text(), nullable=False),
        sa.Column("looked", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["need"], ["need.key"], name=op.f("fk_finding_need")),
        sa.PrimaryKeyConstraint("node", "need", name=op.f("pk_finding")),
    )
