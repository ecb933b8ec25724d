"""Users with tokens, projects, and whose a sweep is."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version: all sweeps that there are belong to the open project `main`."""
    project = op.create_table(
        "project",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
        sqlite_autoincrement=True,
    )
    # The database numbers it, so that the next one gets another number.
    op.bulk_insert(project, [{"name": "main", "open": True, "created": datetime.now(UTC)}])
    op.create_table(
        "account",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
        sa.UniqueConstraint("name", name=op.f("uq_account_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "membership",
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("steers", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_membership_account_id")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_membership_project_id")),
        sa.PrimaryKeyConstraint("account_id", "project_id", name=op.f("pk_membership")),
    )
    op.create_index(op.f("ix_membership_project_id"), "membership", ["project_id"])
    op.create_table(
        "token",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_token_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("hash", name=op.f("uq_token_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_token_account_id"), "token", ["account_id"])
    # No keys: SQLite would have to copy the table for one, and a request outlives its sweep and whoever asked.
    op.add_column("sweep", sa.Column("project_id", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("sweep", sa.Column("owner_id", sa.Integer(), nullable=True))
    op.add_column("request", sa.Column("project_id", sa.Integer(), nullable=True))
