"""The table of the audit: who did what when, from where. Rows are added; triggers refuse all else."""

from typing import Final

import sqlalchemy as sa

from orchestrator.record.clock import UtcTime
from orchestrator.record.column_types import BIG, metadata

audit: Final = sa.Table(
    "audit",
    metadata,
    sa.Column("id", BIG, primary_key=True),
    sa.Column("at", UtcTime, nullable=False),
    sa.Column("who", sa.String, nullable=False),
    sa.Column("account_id", sa.Integer),  # no keys: it outlives what it tells of
    sa.Column("token_id", sa.Integer),
    sa.Column("what", sa.String(32), nullable=False),
    sa.Column("target", sa.String, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("address", sa.String, nullable=False),  # of whoever asked
    sa.Column("request", sa.String(32), nullable=False),  # X-Request-ID of the answer
    sqlite_autoincrement=True,
)
