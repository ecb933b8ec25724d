"""Operations: what slots take, why attempts failed, and since when the tracker is behind."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
    op.create_table(
        "slot",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("resources", sa.JSON(), nullable=False),
        sa.Column("attempt", sa.String(36), nullable=True),
        sa.Column("usage", sa.JSON(), nullable=True),
        sa.Column("lag", sa.Float(53), nullable=True),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_slot")),
    )
    op.add_column("attempt", sa.Column("cause", sa.String(16), nullable=True))
    op.create_index(op.f("ix_attempt_state_cause"), "attempt", ["state", "cause"])
    op.drop_index(op.f("ix_attempt_state"), "attempt")
    op.add_column("outbox", sa.Column("marked", sa.Float(53), server_default="0", nullable=False))
