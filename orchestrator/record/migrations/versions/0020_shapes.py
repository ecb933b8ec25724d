"""Shapes: what a finished training has in common with all whose steps take as long."""

import sqlalchemy as sa
from alembic import op

from orchestrator.cost.estimate import shape_key, shape_of

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_CHUNK = 500


def upgrade() -> None:
    """Go to this version."""
    op.add_column("training", sa.Column("shape", sa.String(32), nullable=True))
    _shape()
    op.create_index(op.f("ix_training_shape_id"), "training", ["shape", "id"])


def _shape() -> None:
    training = sa.table(
        "training", sa.column("id", sa.Integer), sa.column("recipe", sa.JSON), sa.column("shape"),
        sa.column("state"), sa.column("diverged"), sa.column("source"),
    )  # fmt: skip
    its = training.c
    measured = (its.state == "finished", its.diverged.is_(False), its.source.is_(None))
    query = sa.select(its.id, its.recipe).where(*measured).order_by(its.id).limit(_CHUNK)
    setting = sa.update(training).where(its.id == sa.bindparam("one")).values(shape=sa.bindparam("its"))
    connection, last = op.get_bind(), 0
    while rows := connection.execute(query.where(its.id > last)).all():
        connection.execute(setting, [{"one": row.id, "its": shape_key(shape_of(row.recipe))} for row in rows])
        last = rows[-1].id
