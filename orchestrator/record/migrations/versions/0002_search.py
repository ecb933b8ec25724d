"""Adaptive search: cells to which candidates are added one by one."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
    # Not by alembic's batches: they would make the table anew, to which others refer.
    op.add_column("cell", sa.Column("open", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_index("ix_cell_open_sweep_id_cell", "cell", ["open", "sweep_id", "cell"])
    op.add_column("candidate", sa.Column("suggested", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("candidate", sa.Column("asked", sa.Integer(), nullable=True))
    op.add_column("candidate", sa.Column("told", sa.Integer(), nullable=True))
    op.add_column("candidate", sa.Column("score", sa.Float(precision=53), nullable=True))
