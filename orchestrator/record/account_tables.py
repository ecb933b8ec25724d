"""The tables of who may ask: projects, users, who is in which project, and the hashes of tokens."""

from typing import Final

import sqlalchemy as sa

from orchestrator.record.clock import UtcTime
from orchestrator.record.column_types import STATE, metadata

MAIN: Final = 1
"""The project that there always is: of all sweeps that name none."""

project: Final = sa.Table(
    "project",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("open", sa.Boolean, nullable=False),  # every user sees its sweeps
    sa.Column("created", UtcTime, nullable=False),
    sqlite_autoincrement=True,
)

account: Final = sa.Table(
    "account",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("role", STATE, nullable=False),  # viewer, member, admin
    sa.Column("created", UtcTime, nullable=False),
    sa.Column("disabled", UtcTime),
    sa.Column("issuer", sa.String(255)),  # who logs it in beside its tokens: a provider of OpenID Connect
    sa.Column("subject", sa.String(255)),  # by which number or name this provider knows it; none: nobody does
    sa.Index(None, "issuer", "subject", unique=True),
    sqlite_autoincrement=True,
)

membership: Final = sa.Table(
    "membership",
    metadata,
    sa.Column("account_id", sa.ForeignKey("account.id"), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("project.id"), primary_key=True),
    sa.Column("steers", sa.Boolean, nullable=False),  # else it looks
    sa.Index(None, "project_id"),
)

token: Final = sa.Table(
    "token",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("account_id", sa.ForeignKey("account.id"), nullable=False, index=True),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),  # SHA-256 of what opens, in hexadecimal
    sa.Column("scope", STATE, nullable=False),  # read, write, admin, mlflow, metrics
    sa.Column("created", UtcTime, nullable=False),
    sa.Column("expires", UtcTime),
    sa.Column("revoked", UtcTime),
    sa.Column("browser", sa.Boolean),  # of one that a provider let in: nobody has what it opens with
    sqlite_autoincrement=True,
)
