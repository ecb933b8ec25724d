"""Evaluations: trainings that evaluate what another one has kept, and trials that wait for one."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
    op.add_column("training", sa.Column("base", sa.String(64), server_default="", nullable=False))
    op.add_column("training", sa.Column("source", sa.Integer(), nullable=True))
    op.add_column("trial", sa.Column("evaluation_id", sa.Integer(), nullable=True))
    _base()
    op.create_index(op.f("ix_training_base"), "training", ["base"])
    op.create_index(op.f("ix_training_source"), "training", ["source"])
    op.create_index(op.f("ix_trial_evaluation_id"), "trial", ["evaluation_id"])
    op.create_index(op.f("ix_trial_sweep_id_evaluation_id"), "trial", ["sweep_id", "evaluation_id"])


def _base() -> None:
    """A training that was asked for no further metrics is its own base; of others nobody knows any more."""
    columns = (sa.column("recipe", sa.JSON), sa.column("fingerprint", sa.String), sa.column("base", sa.String))
    training = sa.table("training", *columns)
    plain = training.c.recipe["metrics"].as_string().is_(None)
    op.execute(sa.update(training).where(plain).values(base=training.c.fingerprint))
