"""One queue: priorities of sweeps, and what a request asks for in detail."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
    op.add_column("sweep", sa.Column("priority", sa.Integer(), server_default="0", nullable=False))
    op.add_column("request", sa.Column("arguments", sa.JSON(none_as_null=True), nullable=True))
