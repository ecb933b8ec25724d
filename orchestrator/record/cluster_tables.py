"""The tables of the cluster: its nodes and slots, and what was found of what sweeps need."""

from typing import Final

import sqlalchemy as sa

from orchestrator.record.clock import UtcTime
from orchestrator.record.column_types import DOUBLE, NEED, STATE, UID, metadata

node: Final = sa.Table(
    "node", metadata,
    sa.Column("uid", sa.String, primary_key=True),
    sa.Column("host", sa.String, nullable=False),
    sa.Column("resources", sa.JSON, nullable=False),
    sa.Column("alive", sa.Boolean, nullable=False),
    sa.Column("seen", UtcTime, nullable=False),
)  # fmt: skip

slot: Final = sa.Table(
    "slot", metadata,
    sa.Column("name", sa.String, primary_key=True),  # as `attempt.holder`
    sa.Column("node", sa.String, nullable=False),  # the first characters of its node's uid
    sa.Column("host", sa.String, nullable=False),
    sa.Column("resources", sa.JSON, nullable=False),  # what it takes of its node
    sa.Column("attempt", UID),  # that it trains; null: none
    sa.Column("usage", sa.JSON(none_as_null=True)),  # what its process takes; null: it has not said so yet
    sa.Column("lag", DOUBLE),  # seconds that the oldest message which is not recorded has waited; null: there is none
    sa.Column("seen", UtcTime, nullable=False),
)  # fmt: skip

_READS = sa.Column("reads", sa.JSON, nullable=False)
_ASKED = sa.Column("asked", UtcTime)  # when a client last wanted every node to look; null: never
need: Final = sa.Table("need", metadata, sa.Column("key", NEED, primary_key=True), _READS, _ASKED)

sweep_need: Final = sa.Table(
    "sweep_need", metadata,
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), primary_key=True),
    sa.Column("need", sa.ForeignKey("need.key"), primary_key=True),
)  # fmt: skip

finding: Final = sa.Table(
    "finding", metadata,
    sa.Column("node", sa.String, primary_key=True),
    sa.Column("need", sa.ForeignKey("need.key"), primary_key=True),
    sa.Column("host", sa.String, nullable=False),
    sa.Column("state", STATE, nullable=False),  # ok, missing, wrong
    sa.Column("said", sa.Text, nullable=False),
    sa.Column("facts", sa.JSON(none_as_null=True)),  # content and counts
    sa.Column("looked", UtcTime, nullable=False),
)  # fmt: skip
