"""Versions: which a training was planned with, and what took the place of one that was planned anew."""

import sqlalchemy as sa
from alembic import op

from workers.catalog import stamp

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_CHUNK = 500


def upgrade() -> None:
    """Go to this version."""
    op.add_column("training", sa.Column("stamp", sa.Text(), server_default="", nullable=False))
    op.add_column("training", sa.Column("heir", sa.Integer(), nullable=True))
    op.add_column("trial", sa.Column("mlflow_left", sa.String(), nullable=True))
    _stamp()
    op.create_index(op.f("ix_training_state_stamp"), "training", ["state", "stamp"])
    op.create_index(op.f("ix_training_heir"), "training", ["heir"])


def _stamp() -> None:
    training = sa.table("training", sa.column("id", sa.Integer), sa.column("recipe", sa.JSON), sa.column("stamp"))
    query = sa.select(training.c.id, training.c.recipe).order_by(training.c.id).limit(_CHUNK)
    setting = sa.update(training).where(training.c.id == sa.bindparam("one")).values(stamp=sa.bindparam("said"))
    connection, last = op.get_bind(), 0
    while rows := connection.execute(query.where(training.c.id > last)).all():
        connection.execute(setting, [{"one": row.id, "said": stamp(row.recipe)} for row in rows])
        last = rows[-1].id
