"""Databases of earlier versions: of a released dump, on either kind of database, and of what a later one holds."""

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command

from orchestrator.record.migrations import config


def restore(dump: Path, url: str, folder: Path) -> None:
    """Make the empty database at the URL what the dump says."""
    sqlite = url.startswith("sqlite")
    path = sa.make_url(url).database if sqlite else folder / "dumped.db"
    with sqlite3.connect(str(path)) as connection:
        connection.executescript(dump.read_text(encoding="utf-8"))
    connection.close()
    if not sqlite:
        _transfer(sa.create_engine(f"sqlite:///{path}"), sa.create_engine(url), dump.stem)


def as_of(version: str, source: str, target: str) -> None:
    """Make the empty database at `target` what a release of that schema had written of the rows at `source`."""
    _transfer(sa.create_engine(source), sa.create_engine(target), version)


def _transfer(source: sa.Engine, target: sa.Engine, version: str) -> None:
    with source.begin() as old, target.begin() as new:
        command.upgrade(config(new), version)
        tables = sa.MetaData()
        tables.reflect(new)
        if "project" in tables.tables:  # what the steps themselves write
            new.execute(sa.delete(tables.tables["project"]))
        for table in tables.sorted_tables:
            if table.name == "alembic_version":
                continue
            rows = old.execute(sa.text(f'SELECT * FROM "{table.name}"')).mappings()
            values = [
                {key: _value(table.c[key], value) for key, value in row.items() if key in table.c} for row in rows
            ]
            if values:
                new.execute(sa.insert(table), values)
            _count_on(new, table)
    source.dispose()
    target.dispose()


def _value(column: sa.Column[Any], value: Any) -> Any:
    """What SQLite has as text and numbers, as the column's type has it."""
    if value is None:
        return None
    if isinstance(column.type, sa.JSON) and isinstance(value, str):
        return json.loads(value)
    if isinstance(column.type, sa.DateTime) and isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return bool(value) if isinstance(column.type, sa.Boolean) else value


def _count_on(connection: sa.Connection, table: sa.Table) -> None:
    """Have what is added numbered after what there is."""
    if "id" not in table.c or connection.dialect.name == "sqlite":  # which counts on by itself
        return
    sequence = sa.func.pg_get_serial_sequence(table.name, "id")
    highest = sa.select(sa.func.max(table.c.id)).scalar_subquery()
    connection.execute(sa.select(sa.func.setval(sequence, highest)))
