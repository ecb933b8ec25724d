"""Started: when sweeps did that were cancelled before they had trials and extended since, which was not kept."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version."""
    sweep = sa.table(
        "sweep", sa.column("id"), sa.column("state"), sa.column("total"), sa.column("created"), sa.column("started")
    )
    trial = sa.table("trial", sa.column("sweep_id"), sa.column("started"))
    its = sa.select(sa.func.count()).where(trial.c.sweep_id == sweep.c.id).correlate(sweep)
    # One that lacks rows is queued, or was cancelled while it was written: it has not started, and may go on.
    whole = (sweep.c.state != "queued", sweep.c.total > 0, its.scalar_subquery() >= sweep.c.total)
    first = its.with_only_columns(sa.func.min(trial.c.started)).scalar_subquery()
    begun = sa.func.coalesce(first, sweep.c.created)
    op.create_index(op.f("ix_sweep_started_state"), "sweep", ["started", "state"])  # by which unexpanded ones are found
    op.execute(sa.update(sweep).where(sweep.c.started.is_(None), *whole).values(started=begun))
