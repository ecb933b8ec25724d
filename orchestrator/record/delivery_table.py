"""The table of deliveries: what a webhook is told of sweeps, and what became of that."""

from typing import Final

import sqlalchemy as sa

from orchestrator.record.clock import DatabaseSeconds
from orchestrator.record.column_types import BIG, DOUBLE, STATE, UID, metadata

delivery: Final = sa.Table(
    "delivery",
    metadata,
    sa.Column("id", BIG, primary_key=True),
    sa.Column("uid", UID, nullable=False, unique=True),  # its webhook-id, the same at every try
    sa.Column("event", STATE, nullable=False),
    sa.Column("sweep_id", sa.Integer, nullable=False),  # no key: how a sweep ended is told though it was deleted since
    sa.Column("said", sa.JSON, nullable=False),  # how the sweep was then
    sa.Column("created", DOUBLE, nullable=False, default=DatabaseSeconds()),
    sa.Column("state", STATE, nullable=False),  # waiting, delivered, given_up
    sa.Column("tries", sa.Integer, nullable=False, default=0),  # that were in vain
    sa.Column("next_try", DOUBLE, nullable=False, default=0.0),
    sa.Column("error", sa.Text),  # of the last try
    sa.Index(None, "state", "next_try", "id"),
    sa.Index(None, "sweep_id", "event", "created"),
    sqlite_autoincrement=True,
)
