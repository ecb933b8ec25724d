"""The tables by which lists find trials: where their labels and numbers are, and the notes and tags of people."""

from typing import Final

import sqlalchemy as sa

from orchestrator.record.clock import UtcTime
from orchestrator.record.column_types import metadata

note: Final = sa.Table(
    "note",
    metadata,
    sa.Column("kind", sa.String(8), primary_key=True),  # sweep, cell, trial
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), primary_key=True),
    sa.Column("entity", sa.Integer, primary_key=True, autoincrement=False),  # sweep id, cell index, or trial id
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("actor", sa.String),
    sa.Column("changed", UtcTime, nullable=False),
    sa.Index(None, "sweep_id"),
)

tag: Final = sa.Table(
    "tag",
    metadata,
    sa.Column("kind", sa.String(8), primary_key=True),
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), primary_key=True),
    sa.Column("entity", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("tag", sa.String(64), primary_key=True),
    sa.Index(None, "tag"),
    sa.Index(None, "sweep_id"),
)

trial_column: Final = sa.Table(
    "trial_column",
    metadata,
    sa.Column("sweep_id", sa.ForeignKey("sweep.id"), primary_key=True),
    sa.Column("key", sa.String, primary_key=True),  # an axis, or a metric as checkpoint/split/metric
    sa.Column("role", sa.String(8), nullable=False),  # compare, tune, repeat, metric
    sa.Column("label", sa.Integer),  # n of label_n; null: of a metric, and of an axis past the last place
    sa.Column("number", sa.Integer),  # n of number_n; null: none of its labels is a number
    sa.Index(None, "key"),
)
