"""Whom a provider of OpenID Connect logs in, and the tokens of the browsers that it let in."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this version: no user of before is known to a provider."""
    op.add_column("account", sa.Column("issuer", sa.String(255), nullable=True))
    op.add_column("account", sa.Column("subject", sa.String(255), nullable=True))
    op.create_index(op.f("ix_account_issuer_subject"), "account", ["issuer", "subject"], unique=True)
    op.add_column("token", sa.Column("browser", sa.Boolean(), nullable=True))
