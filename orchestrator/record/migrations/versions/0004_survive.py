"""Early stopping, slots of single trials, and what the nodes of the cluster offer."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
    op.add_column("sweep", sa.Column("notice", sa.Text(), nullable=True))
    op.add_column("candidate", sa.Column("pruned", sa.Integer(), nullable=True))
    op.add_column("trial", sa.Column("slot", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("trial", sa.Column("reason", sa.Text(), nullable=True))
    op.create_table(
        "node",
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("resources", sa.JSON(), nullable=False),
        sa.Column("alive", sa.Boolean(), nullable=False),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("uid", name=op.f("pk_node")),
    )
