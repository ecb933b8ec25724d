"""The table of resolutions: what was asked to be decided of a sweep's table, and what came of it."""

from typing import Final

import sqlalchemy as sa

from orchestrator.record.clock import UtcTime
from orchestrator.record.column_types import metadata

resolution: Final = sa.Table(
    "resolution",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), nullable=False, index=True),
    sa.Column("request", sa.Integer, nullable=False, unique=True),  # by which it was asked for
    sa.Column("name", sa.String, nullable=False),  # of the sweep's table
    sa.Column("budget", sa.JSON, nullable=False),
    sa.Column("actor", sa.String),
    sa.Column("begun", UtcTime, nullable=False),
    sa.Column("position", sa.Integer),  # of the first trial that it added; null: no round was planned yet
    sa.Column("report", sa.JSON, nullable=False),  # verdicts before, rounds, verdicts after, what was spent and saved
    sa.Column("ended", UtcTime, index=True),  # null: it goes on
    sa.Column("outcome", sa.Text),  # why it ended
    sqlite_autoincrement=True,
)
