"""A copy of a database of one moment, as a file of SQLite, while others write to it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

from orchestrator.record.transfer import Password, dump
from orchestrator.views.errors import UnavailableError


def snapshot(url: str, file: Path, password: Password) -> None:
    """Copy the database at a URL into a new file: SQLite by its online backup, Postgres row by row.

    Raises UnavailableError.
    """
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        dump(url, file, password)
        return
    if not Path(parsed.database).exists():
        raise UnavailableError(f"there is no database at {parsed.database}")
    try:
        with closing(sqlite3.connect(parsed.database)) as source, closing(sqlite3.connect(file)) as target:
            source.backup(target)  # in one step: nobody's writing begins it anew
            (verdict,) = target.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.Error as error:
        raise UnavailableError(f"the database cannot be copied: {error}") from error
    if verdict != "ok":
        raise UnavailableError(f"the copy of the database is damaged: {verdict}")
