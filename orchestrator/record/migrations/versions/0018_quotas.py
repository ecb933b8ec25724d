"""Quotas of users and projects, and what each attempt holds for whom."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version: what attempts of before held was not written down, and is not counted."""
    op.create_table(
        "quota",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=True),
        sa.Column("project_id", sa.Integer(), nullable=True),
        sa.Column("slots", sa.Integer(), nullable=True),
        sa.Column("gpu_hours", sa.Float(53), nullable=True),
        sa.Column("cpu_hours", sa.Float(53), nullable=True),
        sa.Column("days", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_quota_account_id")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_quota_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quota")),
        sa.UniqueConstraint("account_id", name=op.f("uq_quota_account_id")),
        sa.UniqueConstraint("project_id", name=op.f("uq_quota_project_id")),
    )
    op.create_table(
        "past_attempt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("project_id", sa.Integer(), nullable=True),
        sa.Column("cpus", sa.Float(53), nullable=False),
        sa.Column("gpus", sa.Float(53), nullable=False),
        sa.Column("begun", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_past_attempt")),
    )
    op.create_index(op.f("ix_past_attempt_owner_id"), "past_attempt", ["owner_id"])
    op.create_index(op.f("ix_past_attempt_project_id"), "past_attempt", ["project_id"])
    op.add_column("attempt", sa.Column("owner_id", sa.Integer(), nullable=True))
    op.add_column("attempt", sa.Column("project_id", sa.Integer(), nullable=True))
    op.add_column("attempt", sa.Column("cpus", sa.Float(53), nullable=True))
    op.add_column("attempt", sa.Column("gpus", sa.Float(53), nullable=True))
    op.add_column("attempt", sa.Column("begun", sa.DateTime(timezone=True), nullable=True))
