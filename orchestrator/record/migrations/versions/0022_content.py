"""Content: what the files that trainings read hold, as inspections found it and as each sweep was planned with it."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
    op.add_column("finding", sa.Column("facts", sa.JSON(none_as_null=True)))
    op.add_column("sweep", sa.Column("content", sa.JSON(none_as_null=True)))
