"""Changes: what event streams tell."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
    op.create_table(
        "change",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("entity", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_change")),
        sqlite_autoincrement=True,
    )
