"""Resolutions: what was asked to be decided of a sweep's table, and what came of it."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
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
    op.create_index(op.f("ix_resolution_sweep_id"), "resolution", ["sweep_id"])
    op.create_index(op.f("ix_resolution_ended"), "resolution", ["ended"])
