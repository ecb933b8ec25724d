"""Requests outlive their sweep, so that their senders can see what became of them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
    with op.batch_alter_table("request", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.drop_constraint("fk_request_sweep_id", type_="foreignkey")
        batch.drop_constraint("fk_request_trial_id", type_="foreignkey")
        batch.create_index(op.f("ix_request_sweep_id_id"), ["sweep_id", "id"])
