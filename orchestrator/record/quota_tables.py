"""The tables of quotas: what users and projects may have, and what attempts of deleted sweeps took of it."""

from typing import Final

import sqlalchemy as sa

from orchestrator.record.clock import UtcTime
from orchestrator.record.column_types import DOUBLE, metadata

quota: Final = sa.Table(
    "quota",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("account_id", sa.ForeignKey("account.id"), unique=True),  # this one
    sa.Column("project_id", sa.ForeignKey("project.id"), unique=True),  # or this one is set
    sa.Column("slots", sa.Integer),  # at once; null: no limit, here and below
    sa.Column("gpu_hours", DOUBLE),
    sa.Column("cpu_hours", DOUBLE),
    sa.Column("days", sa.Integer),  # the hours are of so many last days; null: of all time
)

past_attempt: Final = sa.Table(
    "past_attempt",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("owner_id", sa.Integer, index=True),  # no keys: it outlives what it was of
    sa.Column("project_id", sa.Integer, index=True),
    sa.Column("cpus", DOUBLE, nullable=False),
    sa.Column("gpus", DOUBLE, nullable=False),
    sa.Column("begun", UtcTime, nullable=False),
    sa.Column("ended", UtcTime, nullable=False),
)
