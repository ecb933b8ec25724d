"""The first schema, in which databases are made (`orchestrator.record.migrations`)."""

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing: a database has this version from its creation."""
